"""Whatever stands in conform.toml, a reply, an archive or a list of parameters: no error but the known ones."""

from __future__ import annotations

import contextlib
import os
import re
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from conformkit.conformance.apps.grade.course import CourseError, adjustments, roster, submitted
from conformkit.conformance.apps.grade.declared import permitted
from conformkit.conformance.apps.grade.policy import Allowed, ArchiveLimits
from conformkit.conformance.apps.grade.policy_file import example, parse_policy
from conformkit.conformance.apps.grade.unpack import SubmissionError, unpack
from conformkit.conformance.assertions.checks import ClauseFailure
from conformkit.conformance.binding.config import Config, parse_config
from conformkit.conformance.binding.declarations import KIND_OF_KEY, excuses
from conformkit.conformance.binding.exports import ExportMismatch, bind_export
from conformkit.conformance.binding.sizes import LimitWithoutValue, NoSizeError, complete
from conformkit.conformance.binding.toml_nodes import ConfigError
from conformkit.conformance.driver.client.interface import Reply
from conformkit.conformance.driver.client.replies import check_reply
from conformkit.conformance.driver.errors import ProtocolError
from conformkit.conformance.driver.wire import frames
from conformkit.conformance.subject.parameters import check_parameters
from conformkit.spec.components import COMPONENTS
from tests.binding.test_exports import export
from tests.costs import numbers
from tests.shares import CASES

QUICK, EVERYTHING = 120, 10_000
TIERS = [QUICK, pytest.param(EVERYTHING, marks=pytest.mark.full)]
NAMES = st.sampled_from([
    "MultiHeadAttention", "FeedForward", "TinyTransformerLM", "ScaledDotProductAttention", "get_batch", "Nothing",
])  # fmt: skip
WORDS = st.sampled_from(
    [
        "x",
        "d_model",
        "1 / 0",
        "d_model // (num_heads - 3)",
        "sqrt(-1)",
        "9 ** 9 ** 9",
        "q.weight",
        "q.weight * 2",
        "t5_scale(q.weight)",
        "t5_scale(t5_scale(q.weight))",
        "q.weight, k.weight -> (s h d) m",
        "*",
        "a.*",
        "{i}",
        "always",
        "bool",
        "hide",
        "bfloat16",
        "mypkg:name",
        "math:sqrt",
        "'",
        "[",
        "logits",
        "0.1.2",
        "\u202e",
        "",
        "d_model if 1 else",
        "object",
        "arguments",
        "lookup",
        "call",
        "method",
        "output",
        "dtype",
        "min",
        "multiple_of",
        "T // T",
        "seed",
    ]
)
SCALARS = st.one_of(
    WORDS, st.integers(-(2**70), 2**70), st.booleans(), st.floats(), st.text(max_size=8).filter(str.isprintable)
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(WORDS, inner, max_size=3)),
    max_leaves=6,
)
EXTENTS = st.one_of(st.integers(0, 9), st.sampled_from([2**24, 2**31, 2**62, 2**63, 10**200, 10**300]))


def toml(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict):
        return "{" + ", ".join(f"{quoted(key)} = {toml(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(toml, value)) + "]"
    return quoted(value) if isinstance(value, str) else repr(value)


def quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


@st.composite
def documents(draw: st.DrawFn) -> str:
    """A conform.toml whose keys exist, with whatever values."""
    lines = []
    for key in draw(st.lists(st.sampled_from(sorted(KIND_OF_KEY)), max_size=4, unique=True)):
        table, _, rest = key.partition(".")
        parts = [table, *rest.split(".")] if table not in {"components", "tools"} else []
        parts = parts or ["components", draw(NAMES), *rest.split(".")]
        lines.append(f"{'.'.join(part for part in parts if part)} = {toml(draw(VALUES))}")
    return "\n".join(lines)


def fuzzed(cases: int) -> Any:
    """Return the settings for so many cases; where dear families take turns, of many cases each run draws its share."""
    if cases == EVERYTHING and (chosen := os.environ.get(CASES, "all")) != "all":
        cases //= numbers(CASES, chosen)[1]
    quiet = [HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large]
    return settings(max_examples=cases, deadline=None, database=None, suppress_health_check=quiet)


@pytest.mark.parametrize("cases", TIERS)
def test_a_declaration_is_read_or_refused(cases: int) -> None:
    @fuzzed(cases)
    @given(documents())
    def tried(text: str) -> None:
        config = Config()
        with contextlib.suppress(ConfigError):
            config = parse_config(text)
        told = list(excuses(config))
        assert all(excuse.words and len(excuse.words) < 500 for excuse in told)
        allowed, _ = permitted(config, Allowed())
        assert not any(excuse.kind in {"weights", "t5_scale", "factors", "output"} for excuse in excuses(allowed))
        for name in ("MultiHeadAttention", "FeedForward"):
            with contextlib.suppress(NoSizeError, LimitWithoutValue):
                complete({}, COMPONENTS[name], config.variant_for(name), config.limits_for(name))

    tried()


KEYS = sorted(set(re.findall(r"^#? ?([a-z_]+) =", example(), re.MULTILINE)))
HUGE = st.sampled_from(["9" * 5000, "0x" + "f" * 400, "1e400", "-inf", "nan", "1979-05-27", '"\\u0000"'])


@pytest.mark.parametrize("cases", TIERS)
def test_a_policy_is_read_or_refused(cases: int) -> None:
    """Somebody else may have written it: no integer, date or nested table in place of what is wanted is a traceback."""

    @fuzzed(cases)
    @given(
        st.lists(st.tuples(st.sampled_from(KEYS), VALUES.map(toml) | HUGE), max_size=4, unique_by=lambda pair: pair[0]),
        st.sampled_from(["", "allow", "limits", "archive", "course", "lose", "[groups]"]),
    )
    def one(pairs: list[tuple[str, str]], table: str) -> None:
        head = f"[{table}]\n" if table else ""
        with contextlib.suppress(ConfigError):
            parse_policy(head + "\n".join(f"{key} = {value}" for key, value in pairs))

    one()


CELLS = st.sampled_from(
    [b"a", b"", b"=1+1", b"\0", b"\xff", b'"', b'"a\nb"', b"1e999", b"nan", b"9" * 5000, b"\r", b"-1"]
)
MOMENTS = st.sampled_from(
    [b"2026-01-01T00:00+01:00", b"9999-12-31T23:59-23:59", b"0001-01-01T00:00+23:59", b"x" * 200_000]
)
TABLES = {b"id,name": roster, b"who,points,comment": adjustments, b"submission,time": submitted}


@pytest.mark.parametrize("cases", TIERS)
def test_tables_of_a_course_are_read_or_refused(cases: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    """They come out of spreadsheets and other systems."""
    path = Path(tmp_path_factory.mktemp("course") / "table.csv")

    @fuzzed(cases)
    @given(st.sampled_from(sorted(TABLES)), st.lists(st.lists(CELLS | MOMENTS, max_size=4), max_size=3))
    def one(head: bytes, rows: list[list[bytes]]) -> None:
        path.write_bytes(b"\n".join([head, *(b",".join(row) for row in rows)]))
        with contextlib.suppress(CourseError):
            TABLES[head](path)

    one()


@pytest.mark.parametrize("cases", TIERS)
def test_a_declaration_is_bound_or_refused(cases: int) -> None:
    """Whatever arguments a constructor and a call have, and whichever a file gives them."""
    names = st.sampled_from(["d_model", "num_heads", "x", "mask", "dropout", "causal", "legacy", "h", "d", "p", "seed"])
    written = st.lists(st.tuples(names, st.sampled_from(["", "="])), max_size=6, unique_by=lambda pair: pair[0])
    optional_last = written.map(lambda pairs: [n + e for n, e in sorted(pairs, key=lambda pair: pair[1] == "=")])

    @fuzzed(cases)
    @given(documents(), optional_last, optional_last, st.booleans())
    def tried(text: str, construct: list[str], call: list[str], refusing: bool) -> None:
        config = Config()
        with contextlib.suppress(ConfigError):
            config = parse_config(text)
        if refusing:
            config, _ = permitted(config, Allowed())
        for name in ("MultiHeadAttention", "FeedForward", "TinyTransformerLM"):
            with contextlib.suppress(ExportMismatch):
                bound = bind_export(COMPONENTS[name], export(construct, call), config, None)
                assert all(one.words for one in bound.further)

    tried()


@pytest.mark.parametrize("cases", TIERS)
def test_parameters_are_listed_within_bounds_or_refused(cases: int) -> None:
    listed = st.fixed_dictionaries({
        "name": st.text(max_size=400), "shape": st.none() | st.lists(EXTENTS, max_size=20), "trainable": st.booleans(),
        "alias": st.none() | st.text(max_size=3), "lazy": st.booleans(),
    })  # fmt: skip

    @fuzzed(cases)
    @given(st.lists(listed, max_size=4))
    def tried(parameters: list[dict[str, Any]]) -> None:
        with contextlib.suppress(ClauseFailure):
            check_parameters(parameters)
            for parameter in parameters:
                if parameter["trainable"] and parameter["shape"] is not None:
                    np.broadcast_to(np.float64(0), parameter["shape"])  # what passes, NumPy can make

    tried()


@pytest.mark.parametrize("cases", TIERS)
def test_a_reply_has_its_form_or_ends_its_worker(cases: int) -> None:
    operations = st.sampled_from(["load", "describe", "build", "parameters", "read", "call", "vjp", "trace", "batch"])
    plain = st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=5),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
        max_leaves=8,
    )  # fmt: skip
    keys = st.sampled_from([
        "ok", "seq", "handle", "parameters", "lazy", "exports", "replies", "dtypes", "rng", "error", "parts", "none",
    ])  # fmt: skip

    @fuzzed(cases)
    @given(operations, st.dictionaries(keys, plain, max_size=6), st.binary(max_size=80))
    def tried(operation: str, header: dict[str, Any], payload: bytes) -> None:
        request = {"op": operation, "targets": {}, "requests": []}
        with contextlib.suppress(ProtocolError):
            check_reply(request, 1, Reply({"seq": 1, "ok": True, **header}))
        with contextlib.suppress(ProtocolError):
            frames.decode(b"{}", payload, foreign=True)

    tried()


@st.composite
def payloads(draw: st.DrawFn) -> bytes:
    """Arrays as a hostile worker may send them: tables that are almost right, and values of some other length."""
    near = st.integers(0, 5) | st.sampled_from([2**24, 2**31, 2**62, 2**64 - 1])
    entries = [
        struct.pack(
            f"<HBB{len(shape)}Q", draw(st.sampled_from([len(name), len(name), 0, 999])), code, len(shape), *shape
        )
        + name
        for name, code, shape in draw(
            st.lists(st.tuples(st.binary(max_size=2), st.integers(0, 4), st.lists(near, max_size=3)), max_size=3)
        )
    ]
    table = b"".join(entries)
    front = struct.pack("<II", draw(st.sampled_from([len(entries), 0, 7])), draw(st.sampled_from([len(table), 2**31])))
    return front + table + bytes(-len(table) % 8) + bytes(8 * draw(st.integers(0, 8)))


@pytest.mark.parametrize("cases", TIERS)
def test_arrays_of_a_reply_are_read_within_bounds_or_refused(cases: int) -> None:
    @fuzzed(cases)
    @given(payloads())
    def tried(payload: bytes) -> None:
        with contextlib.suppress(ProtocolError):
            _, arrays = frames.decode(b"{}", payload, foreign=True)
            assert sum(array.nbytes for array in arrays.values()) <= len(payload)
            assert {array.dtype.name for array in arrays.values()} <= frames.WIRE_DTYPES
            again = frames.encode({}, arrays)
            assert frames.decode(b"{}", again[frames.LENGTHS + 2 :])[1].keys() == arrays.keys()

    tried()


@pytest.mark.parametrize("cases", TIERS)
def test_an_archive_is_unpacked_or_refused(cases: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    from tests.apps.grade.conftest import tarred, zipped

    files = (("pkg/a.py", "x = 1\n" * 20), ("pkg/b.py", "y = 2\n"))
    packed = {"zip": zipped(*files), "tar": tarred(*files)}
    bytes_at = st.tuples(st.integers(0, 10**6), st.sampled_from([0, 1, 0x7F, 0x80, 0xFF]))
    folder = tmp_path_factory.mktemp("archives")

    @fuzzed(cases)
    @given(st.sampled_from(sorted(packed)), st.lists(bytes_at, max_size=12))
    def tried(kind: str, damage: list[tuple[int, int]]) -> None:
        data, target = bytearray(packed[kind]), folder / str(len(list(folder.iterdir())))
        for place, value in damage:
            data[place % len(data)] = value
        target.mkdir()
        with contextlib.suppress(SubmissionError):
            unpack(bytes(data), kind, "", target, ArchiveLimits(bytes=1 << 20, files=20, depth=4))

    tried()
