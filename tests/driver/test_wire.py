"""Frames: they arrive unchanged, and anything else is refused."""

import contextlib
import json
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

NAMES = st.text(min_size=1, max_size=12).filter(lambda name: name != "__metadata__")
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


@pytest.mark.parametrize(
    "view",
    [lambda a: a.T, lambda a: a[:, ::2], lambda a: a[::-1], lambda a: np.broadcast_to(a[0], (4, 6))],
    ids=["transposed", "sliced", "reversed", "broadcast"],
)
def test_values_do_not_depend_on_the_strides(view):
    # safetensors takes the bytes in memory order
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


@pytest.mark.parametrize("dtype", ["F16", "I32", "C64", "BF16", "U8"])
def test_other_dtypes_are_refused_on_arrival(dtype):
    size = {"F16": 2, "I32": 4, "C64": 8, "BF16": 2, "U8": 1}[dtype]
    inner = json.dumps({"x": {"dtype": dtype, "shape": [1], "data_offsets": [0, size]}}).encode()
    with pytest.raises(ProtocolError):
        wire.decode(b"{}", struct.pack("<Q", len(inner)) + inner + bytes(size))


@pytest.mark.parametrize("dtype", [np.float16, np.int32, np.complex64, object])
def test_other_dtypes_are_refused_on_departure(dtype):
    with pytest.raises(ProtocolError, match="want one of"):
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
