"""Where the stream starts: rows of a table by id, and what says where each position is."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np

from conformkit.conformance.discovery.tracing.numbers import by_text, close, factor
from conformkit.conformance.discovery.tracing.reading import ReadOff
from conformkit.conformance.discovery.tracing.stream import ResidualStream
from conformkit.spec.arrays import Array
from conformkit.spec.positional_encoding import sinusoids
from conformkit.spec.variants import CANONICAL

__all__ = ["read_start"]

_TERMS = 4
_OFFSETS: tuple[Any, ...] = (0, "pad_id + 1", 2)
"""What numbers the first position so, where there is no padding id."""


def read_start(
    reading: ReadOff, stream: ResidualStream, place: int, ids: Array, side: str = "", segments: Array | None = None
) -> str | None:  # fmt: skip
    """Note the embedding and the positions; return the name of the embedding's table, None if it is not found.

    `side`: how names of weights begin, `src_` or `tgt_` where there are two; `segments` (B, T) have a table too.
    """
    tables: list[str] = []
    positions: list[str] = []
    for term in _terms(stream, place):
        if segments is not None and (rows := _rows(stream, term, segments)) is not None:
            reading.weights["segments.weight"] = rows
        elif (name := _by_id(reading, stream, term, ids, side)) is not None:
            tables.append(name)
        else:
            positions.append(_by_position(reading, stream, term, side))
    if len(tables) != 1 or len(positions) > 1:
        reading.open.append(f"the stream starts from {len(tables)} tables of ids and {len(positions)} other terms")
        return None
    if not positions and "positions" not in reading.choices:
        reading.choose("positions", "positions", "none")
    return tables[0]


def _rows(stream: ResidualStream, term: int, ids: Array) -> Array | None:
    """Return the table of which a term is the rows of some ids, as they are; None if it is none's."""
    tables = [value.array for value in stream.record.values if value.op == "parameter" and value.array.ndim == 2]
    for table in (one for one in tables if ids.max() < len(one)):
        if any(close(given, table[ids]) for given in by_text(stream.record[term].array, *ids.shape)):
            return table
    return None


def _terms(stream: ResidualStream, place: int) -> list[int]:
    """Return what is added to give a value."""
    found: list[int] = []
    queue = [place]
    while queue and len(found) < _TERMS:
        here = stream.record.origin(queue.pop(0), whole=True)
        value = stream.record[here]
        inner = [stream.record.origin(g, whole=True) for g in value.given[:2]]
        if value.op == "add" and len(inner) > 1 and stream.linears.at(here) is None and _is_sum(stream, here):
            queue += inner
        else:
            found.append(here)
    return found


def _is_sum(stream: ResidualStream, place: int) -> bool:
    value = stream.record[place]
    one, other = (stream.record[g].array for g in value.given[:2])
    try:
        return one.ndim > 1 and other.ndim > 1 and close(one + other, value.array)
    except ValueError:
        return False


def _by_id(reading: ReadOff, stream: ResidualStream, term: int, ids: Array, side: str) -> str | None:
    """Note the table of which a term is the rows of the ids, and its factor; return the table's name."""
    for value in stream.record.values:
        if value.op != "parameter" or value.array.ndim != 2 or ids.max() >= len(value.array):
            continue
        width = value.array.shape[1]
        for given in by_text(stream.record[term].array, *ids.shape):
            times = factor(given, value.array[ids]) if given.shape[-1] == width else None
            if times is None:
                continue
            scaled = abs(times - math.sqrt(width)) < 1e-4 * times
            reading.choose("embedding", "embedding_scale", scaled)
            if not scaled and abs(times - 1.0) > 1e-4:
                reading.find("embedding", f"embeddings are multiplied by {times:.4g}", factor=times)
            reading.weights[f"{side}embedding.weight"] = value.array
            return value.name
    return None


def _by_position(reading: ReadOff, stream: ResidualStream, term: int, side: str) -> str:
    """Note what kind of positions a term is."""
    length, array = stream.shape.length, stream.record[term].array
    width = array.shape[-1] if array.ndim else 0
    if array.size == length * width:
        given = array.reshape(length, width)
    elif array.size == stream.shape.batch * length * width:
        every = by_text(array, stream.shape.batch, length)
        whole = next((w for w in every if close(w, np.broadcast_to(w[:1], w.shape))), None)
        if whole is None:
            reading.find("positions", "what is added for positions differs between texts of a batch")
            return "unknown"
        given = whole[0]
    elif array.size == stream.shape.batch * width:
        reading.find("positions", "what is added for positions differs between texts of a batch, not between positions")
        return "unknown"
    else:
        reading.open.append("positions: what is added to the embeddings is not a row for each position")
        return "unknown"
    return _kind(reading, stream, given, side)


def _kind(reading: ReadOff, stream: ResidualStream, given: Array, side: str) -> str:
    length, width = given.shape
    for value in stream.record.values:
        if value.op == "parameter" and value.array.size and value.array.shape[-1] == width:
            table = value.array.reshape(-1, width)
            for first in range(min(3, len(table) - length + 1)):
                if close(table[first : first + length], given):
                    reading.choose("positions", "positions", "learned")
                    reading.choose("positions", "position_offset", _OFFSETS[first])
                    reading.weights[f"{side}positions.weight"] = table
                    return "learned"
    for layout, kind, first in itertools.product(("interleaved", "halves"), ("vaswani", "tensor2tensor"), (0, 1, 2)):
        variant = CANONICAL.but(sinusoid_layout=layout, sinusoid_frequencies=kind)
        if close(np.asarray(sinusoids(length, width, variant, first)), given, 1e-4):
            reading.choose("positions", "positions", "sinusoidal")
            reading.choose("positions", "sinusoid_layout", layout)
            reading.choose("positions", "sinusoid_frequencies", kind)
            reading.choose("positions", "position_offset", _OFFSETS[first])
            return "sinusoidal"
    reading.find("positions", "what is added for positions is neither a learned table nor the sinusoids")
    return "unknown"
