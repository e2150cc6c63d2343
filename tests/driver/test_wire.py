"""Frames: they arrive unchanged, and anything else is refused."""

import contextlib
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from conformkit.conformance.driver.client.interface import Reply
from conformkit.conformance.driver.client.replies import check_reply
from conformkit.conformance.driver.errors import ProtocolError
from conformkit.conformance.driver.wire import frames as wire
from conformkit.conformance.driver.wire import packing

NAMES = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
ARRAYS = hnp.arrays(
    st.sampled_from([np.float64, np.float32, np.int64, np.bool_]),
    hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4),
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(alphabet=st.characters(min_codepoint=32, max_codepoint=126)),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=8,
)  # fmt: skip


def unpack(frame: bytes, *, foreign: bool = False) -> tuple[dict, dict]:
    head, payload = wire.lengths(frame[: wire.LENGTHS])
    rest = frame[wire.LENGTHS :]
    return wire.decode(rest[:head], rest[head : head + payload], foreign=foreign)


def frame(head: bytes, payload: bytes = b"") -> bytes:
    return struct.pack("<QQ", len(head), len(payload)) + head + payload


@given(st.dictionaries(st.sampled_from("abc"), JSON), st.dictionaries(NAMES, ARRAYS, max_size=3))
def test_a_frame_comes_back_bit_for_bit(header, arrays):
    got_header, got = unpack(wire.encode(header, arrays))
    assert got_header == header
    assert got.keys() == arrays.keys()
    for name, array in arrays.items():
        assert (got[name].dtype, got[name].shape) == (array.dtype, array.shape)
        assert got[name].tobytes() == array.tobytes()


def test_large_arrays_are_sent_from_where_they_are():
    # a copy of each frame was most of what the harness had in memory
    array = np.ones(wire._JOINED)
    found = wire.pieces({"op": "write"}, {"x": array})
    assert any(np.shares_memory(array, piece) for piece in found)
    assert b"".join(found) == wire.encode({"op": "write"}, {"x": array})


@given(st.lists(st.binary(min_size=1, max_size=5), max_size=6), st.integers(0, 30))
def test_what_is_left_of_a_frame_is_what_was_not_sent(parts, count):
    # a socket takes as many bytes as it has room for, which end anywhere
    whole = b"".join(parts)
    left = wire.unsent([memoryview(part) for part in parts], min(count, len(whole)))
    assert b"".join(left) == whole[count:]
    assert all(len(piece) for piece in left)


@pytest.mark.parametrize(
    "view",
    [lambda a: a.T, lambda a: a[:, ::2], lambda a: a[::-1], lambda a: np.broadcast_to(a[0], (4, 6))],
    ids=["transposed", "sliced", "reversed", "broadcast"],
)
def test_values_do_not_depend_on_the_strides(view):
    # what is sent are bytes in memory order
    array = view(np.arange(24.0).reshape(4, 6))
    np.testing.assert_array_equal(unpack(wire.encode({}, {"x": array}))[1]["x"], array)


def test_non_finite_values_cross():
    array = np.array([np.nan, np.inf, -np.inf, -0.0])
    assert unpack(wire.encode({}, {"x": array}))[1]["x"].tobytes() == array.tobytes()


def test_received_arrays_can_be_written_to():
    assert unpack(wire.encode({}, {"x": np.zeros(3)}))[1]["x"].flags.writeable


@given(st.binary(max_size=64), st.binary(max_size=64))
def test_arbitrary_bytes_are_refused_or_read_but_never_crash(head, payload):
    try:
        header, arrays = unpack(frame(head, payload))
    except ProtocolError:
        return
    assert isinstance(header, dict)
    assert isinstance(arrays, dict)


@given(st.data())
def test_a_damaged_payload_is_refused_or_gives_plain_arrays(data):
    # without this, a header that lies about its arrays would raise the library's exception, not ours
    good = bytearray(wire.encode({}, {"x": np.arange(6.0).reshape(2, 3), "y": np.ones(2, dtype=bool)}))
    start = wire.LENGTHS + 2
    for _ in range(data.draw(st.integers(1, 4))):
        good[data.draw(st.integers(start, len(good) - 1))] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(start, len(good)))
    try:
        _, arrays = wire.decode(good[wire.LENGTHS : start], good[start:cut])
    except ProtocolError:
        return
    assert all(array.dtype.name in wire.WIRE_DTYPES for array in arrays.values())


@pytest.mark.parametrize("lengths", [(wire.HEADER_LIMIT + 1, 0), (0, wire.PAYLOAD_LIMIT + 1), (2**64 - 1, 2**64 - 1)])
def test_huge_lengths_are_refused_before_anything_is_read(lengths):
    with pytest.raises(ProtocolError, match="the limit is"):
        wire.lengths(struct.pack("<QQ", *lengths))


@pytest.mark.parametrize(
    "head",
    [b"", b"[]", b"3", b"{", b'{"a": NaN}', b'{"a": Infinity}', b"\xff\xfe", b"[" * 100_000, b'{"a":' * 50_000,
     b'{"a": ' + b"9" * 5000 + b"}"],
    ids=["empty", "list", "number", "cut", "nan", "infinity", "no-utf8", "deep-list", "deep-object", "endless-number"],
)  # fmt: skip
def test_a_header_that_is_not_an_object_is_refused(head):
    with pytest.raises(ProtocolError):
        wire.decode(head, b"")


def entry(name=b"x", code=0, shape=(1,), length=None):
    """What a table says of an array; format 0 is float64, 3 is bool."""
    named = len(name) if length is None else length
    return struct.pack(f"<HBB{len(shape)}Q", named, code, len(shape), *shape) + name


def payload(*entries, values=8, count=None, length=None):
    table = b"".join(entries)
    said = len(entries) if count is None else count
    front = struct.pack("<II", said, len(table) if length is None else length) + table
    return front + bytes(-len(front) % packing.ALIGNED) + (values if isinstance(values, bytes) else bytes(values))


def test_a_payload_made_by_hand_is_read():
    found = wire.decode(b"{}", payload(entry(shape=(2, 1)), entry(b"y", 3, (3,)), values=64 + 64))[1]
    assert {name: (array.dtype.name, array.shape) for name, array in found.items()} == {
        "x": ("float64", (2, 1)), "y": ("bool", (3,)),
    }  # fmt: skip


@pytest.mark.parametrize(
    ("lie", "told"),
    [
        (b"\0", "holds no arrays"),
        (payload(entry(code=4)), "holds no arrays"),
        (payload(entry(code=255)), "holds no arrays"),
        (payload(entry(shape=(2,))), "'x' ends behind it"),
        (payload(entry(shape=(1 << 40, 1 << 40))), "extents of more than"),
        (payload(entry(shape=(0, 1 << 62)), values=0), "extents of more than"),
        (payload(entry(shape=(2**64 - 1,))), "extents of more than"),
        (payload(entry(), entry(), values=128), "'x' twice"),
        (payload(entry(), entry(b"y"), values=64), "'y' ends behind it"),
        (payload(entry(), values=128), "has 192 bytes, its arrays take 128"),
        (payload(entry(), values=0), "ends behind it"),
        (payload(count=1, values=0), "holds no arrays"),
        (payload(entry(), count=0), "its table has 13 bytes for 0 arrays"),
        (payload(entry(), count=2), "holds no arrays"),
        (payload(entry(), length=1 << 30), "its table has"),
        (payload(entry(length=200)), "a name ends behind its table"),
        (payload(entry(b"\xff")), "holds no arrays"),
        (payload(entry(shape=(1,) * 200)), "holds no arrays"),
        (payload(entry(code=3), values=b"\2" + bytes(63)), "neither 0 nor 1"),
    ],
    ids=[
        "one-byte", "no-such-format", "last-format", "beyond-the-end", "huge", "huge-and-empty", "negative", "twice",
        "one-behind-the-other", "trailing-bytes", "no-values", "no-table", "more-in-the-table", "less-in-the-table",
        "a-table-beyond", "a-name-beyond", "no-unicode", "too-many-axes", "no-truth-value",
    ],
)  # fmt: skip
def test_a_payload_that_lies_is_refused(lie, told):
    """Would break if a worker could make the harness read beyond what it sent, or make arrays without bounds."""
    with pytest.raises(ProtocolError, match=told):
        wire.decode(b"{}", lie)


def test_a_table_without_bounds_is_refused_on_both_sides():
    names = {f"{number:05}".rjust(60_000, "x"): np.zeros(1) for number in range(20)}
    with pytest.raises(ProtocolError, match="names and shapes of"):
        wire.encode({}, names)
    table = [entry(name.encode()) for name in names]
    assert sum(map(len, table)) > packing.TABLE_LIMIT
    with pytest.raises(ProtocolError, match="its table has"):
        wire.decode(b"{}", payload(*table, values=8 * len(table)))


@pytest.mark.parametrize("name", ["\ud800", "x" * 70_000], ids=["half-a-character", "endless"])
def test_a_name_that_cannot_be_sent_is_refused(name):
    with pytest.raises(ProtocolError, match="no name that can be sent"):
        wire.encode({}, {name: np.zeros(1)})


def test_received_arrays_lie_as_frameworks_place_theirs():
    """Would break if a right call gave another last digit the second time: sums depend on where a matrix begins."""
    for count in (1, 2, 7):
        frame = wire.encode({}, {"x": np.zeros(3, np.bool_), "a longer name": np.zeros((count, 5)), "z": np.zeros(1)})
        head, size = wire.lengths(frame[: wire.LENGTHS])
        payload = wire.room(size)
        payload[:] = frame[wire.LENGTHS + head :]
        arrays = wire.decode(frame[wire.LENGTHS : wire.LENGTHS + head], payload)[1]
        assert [array.ctypes.data % 64 for array in arrays.values()] == [0, 0, 0]


def test_arrays_of_one_frame_do_not_overlap():
    """Would break if what is written into one array of a reply changed another."""
    found = unpack(wire.encode({}, {"x": np.zeros(3, np.bool_), "y": np.zeros(2, np.float32), "z": np.zeros(1)}))[1]
    found["y"][:] = 7.0
    assert not found["x"].any()
    assert not found["z"].any()


def test_the_other_order_of_bytes_crosses():
    array = np.arange(3.0).astype(">f8")
    np.testing.assert_array_equal(unpack(wire.encode({}, {"x": array}))[1]["x"], array)


@pytest.mark.parametrize("dtype", [np.float16, np.int32, np.complex64, object])
def test_other_dtypes_are_refused_on_departure(dtype):
    with pytest.raises(ProtocolError, match="expected one of"):
        wire.encode({}, {"x": np.zeros(2, dtype=dtype)})


def test_a_header_over_the_bound_is_not_sent():
    with pytest.raises(ProtocolError, match="a header of"):
        wire.encode({"a": "x" * wire.HEADER_LIMIT}, {})


@pytest.mark.parametrize("text", ["\x1b[31mred\x1b[0m", "a\x00b", "\u202eabc", "\ud800"])
def test_texts_in_a_foreign_header_arrive_without_control_characters(text):
    header, _ = unpack(wire.encode({"name": [text], text: 1}, {}), foreign=True)
    assert not any(c in repr(header) for c in ("\\x", "\\u"))


def test_a_foreign_header_that_is_nested_too_deeply_is_refused():
    # cleaning it would end in a RecursionError of the harness
    depth = 900
    with pytest.raises(ProtocolError, match="nested too deeply"):
        unpack(frame(b'{"seq": 1, "deep": ' + b"[" * depth + '"\u202e"'.encode() + b"]" * depth + b"}"), foreign=True)


def test_texts_in_our_own_header_arrive_as_they_are():
    header = {"path": "/tmp/\u200dfolder\x01"}
    assert unpack(wire.encode(header, {}))[0] == header


OK = {"seq": 3, "ok": True}
ERROR = {"kind": "exception", "type": "ValueError", "base": "ValueError", "message": "no", "where": ""}
CALLED = {
    "dtypes": {"out": "float64"},
    "requires_grad": False,
    "rng": [],
    "training": None,
    "modes": [],
    "structure": "",
    "graph": False,
}


@pytest.mark.parametrize(
    ("request_", "header"),
    [
        ({}, {**OK, "seq": 4}),
        ({}, {**OK, "seq": True}),
        ({}, {**OK, "seq": 3.0}),
        ({}, {"seq": 3}),
        ({}, {"seq": 3, "ok": 1}),
        ({}, {"seq": 3, "ok": False}),
        ({}, {"seq": 3, "ok": False, "error": {**ERROR, "kind": "pass"}}),
        ({}, {"seq": 3, "ok": False, "error": {**ERROR, "more": ""}}),
        ({}, {"seq": 3, "ok": False, "error": {**ERROR, "message": 3}}),
        ({"op": "call"}, {**OK, **CALLED}),
        ({"op": "build"}, {**OK, "handle": "1", "parameters": [], "lazy": False, "dtype_refused": None}),
        ({"op": "build"}, {**OK, "handle": 1, "parameters": [{"name": 3}], "lazy": False, "dtype_refused": None}),
        ({"op": "describe"}, {**OK, "exports": {"A": {"found": True}}}),
        ({"op": "list"}, {**OK, "items": [{"path": "a:B"}], "left_out": []}),
        ({"op": "describe"}, {**OK, "exports": {"A": {"found": False, "error": "x"}}}),
        ({"op": "batch", "requests": [{"op": "copy"}]}, {**OK, "replies": []}),
        ({"op": "batch", "requests": [{"op": "copy"}]}, {**OK, "replies": [{"ok": True}]}),
        ({"op": "batch", "requests": [{"op": "copy"}]}, {**OK, "replies": [3]}),
    ],
)
def test_a_reply_that_is_not_in_form_is_refused(request_, header):
    # without this, the harness would raise KeyError instead of reporting that the worker misbehaved
    with pytest.raises(ProtocolError):
        check_reply(request_, 3, Reply(header))


@given(st.sampled_from(["load", "describe", "list", "build", "parameters", "call", "vjp", "batch"]), JSON)
def test_any_json_as_a_reply_is_accepted_or_refused_but_never_crashes(operation, body):
    request = {"op": operation, "requests": []}
    header = {**OK, **(body if isinstance(body, dict) else {}), "exports": body, "replies": body, "parameters": body}
    with contextlib.suppress(ProtocolError):
        check_reply(request, 3, Reply(header))


@pytest.mark.parametrize("name", ["x", "1/x", "-1/x", "²/x", "/x"])
def test_an_array_that_belongs_to_no_request_of_a_batch_is_refused(name):
    with pytest.raises(ProtocolError, match="has an array"):
        wire.split({name: np.zeros(1)}, 1)
