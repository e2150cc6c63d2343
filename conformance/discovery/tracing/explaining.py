"""What the record of one call of a component says about it: the whole model, a block, attention, a network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from conformkit.conformance.discovery.tracing.attending import CallShape
from conformkit.conformance.discovery.tracing.blocks import Context, read_blocks
from conformkit.conformance.discovery.tracing.encoder import OF_ENCODERS, read_encoder
from conformkit.conformance.discovery.tracing.encoder_decoder import OF_TWO_SIDES, read_two_sides
from conformkit.conformance.discovery.tracing.norms import FoundNorm
from conformkit.conformance.discovery.tracing.numbers import by_text, close
from conformkit.conformance.discovery.tracing.parts import read_attention, read_network, read_norm
from conformkit.conformance.discovery.tracing.reading import ReadOff
from conformkit.conformance.discovery.tracing.record import CallRecord
from conformkit.conformance.discovery.tracing.starting import read_start
from conformkit.conformance.discovery.tracing.stream import ResidualStream
from conformkit.spec.arrays import Array
from conformkit.spec.components import component as component_of

__all__ = ["EXPLAINED", "explained"]

EXPLAINED = ("MultiHeadAttention", "FeedForward", "TransformerBlock", "TinyTransformerLM", *OF_TWO_SIDES, *OF_ENCODERS)
"""Components whose records can be read."""


def explained(
    component: str, record: CallRecord, sizes: Mapping[str, Any], given: Array, *further: Array
) -> ReadOff:  # fmt: skip
    """Return what a record says; `given` is the component's input, ids (B, T) or x (B, T, D), `further` its others."""
    reading = ReadOff()
    if record.out is None:
        reading.open.append("the record does not reach the result")
        return reading
    shape = CallShape(given.shape[0], given.shape[1], sizes["d_model"])
    stream = ResidualStream(record, shape)
    context = Context(record, shape, sizes.get("causal", True))
    if component in OF_TWO_SIDES:
        read_two_sides(reading, stream, component, context, sizes, (given, *further), _read_head)
    elif component in OF_ENCODERS:
        read_encoder(reading, stream, context, sizes, given, further[0])
    elif component_of(component).is_language_model:
        _model(reading, stream, context, sizes, given)
    elif component == "TransformerBlock":
        walk = stream.walk(record.out)
        left = read_blocks(reading, walk.sublayers, [""], context)
        if left or walk.first or not _is_input(stream, walk.start, given):
            reading.open.append("the block has more in it than its sublayers and their norms")
    else:
        _part(reading, stream, component, context)
    _unused(reading, record)
    return reading


def _is_input(stream: ResidualStream, place: int, given: Array) -> bool:
    array = stream.record[place].array
    return any(close(a, given) for a in by_text(array, *given.shape[:2]))


def _part(reading: ReadOff, stream: ResidualStream, component: str, context: Context) -> None:
    found = stream.branch(stream.record.out or 0)
    if found is None or found.after is not None:
        reading.open.append(f"no {component} was found in what is computed")
    elif component == "FeedForward" and found.network is not None:
        read_network(reading, "", found.network)
    elif component == "MultiHeadAttention" and found.attention is not None:
        read_attention(reading, "", found.attention, context.record, context.shape, causal=context.causal)
    else:
        reading.open.append(f"what is computed is no {component}")


def _model(reading: ReadOff, stream: ResidualStream, context: Context, sizes: Mapping[str, Any], ids: Array) -> None:
    place = _read_head(reading, stream)
    if place is None:
        return
    walk = stream.walk(place, whole=True).of_blocks()
    left = read_blocks(reading, walk.sublayers, [f"blocks.{n}." for n in range(sizes["num_layers"])], context)
    if left is not None:
        _read_norms(reading, left, walk.first)
    table = read_start(reading, stream, walk.start, ids)
    matrix, rows = reading.weights.get("head.weight"), reading.weights.get("embedding.weight")
    tied = table is not None and matrix is not None and rows is not None and _is_one(matrix, rows)
    reading.choose("head", "tied", tied)
    if tied:
        del reading.weights["head.weight"]


def _is_one(matrix: Array, rows: Array) -> bool:
    return matrix.shape == rows.shape and np.array_equal(matrix, rows)


def _read_norms(reading: ReadOff, left: Sequence[FoundNorm], first: Sequence[FoundNorm]) -> None:
    """Note the norms after the last block and before the first.

    Where each sublayer has its norm inside the branch and the stream ends without one, one before the first block is
    that of the end in a wrong place: no model does without it there and has one on its embeddings.
    """
    if len(first) == 1 and not left and reading.choices.get("placement") == ["pre"]:
        reading.find("norm", "the final norm stands before the first block; expected after the last")
        left, first = first, []
    reading.choose("norm", "final_norm", len(left) == 1)
    reading.choose("embedding_norm", "embedding_norm", len(first) == 1)
    if max(len(left), len(first)) > 1:
        reading.open.append("there are several norms after the last block, or before the first")
    for path, norms in (("norm", left), ("embedding_norm", first)):
        for norm in norms[:1]:
            read_norm(reading, path, norm)


def _read_head(reading: ReadOff, stream: ResidualStream) -> int | None:
    """Note the head; return the place of what it reads, None if there is none."""
    place = stream.record.origin(stream.record.out or 0, whole=True)
    value = stream.record[place]
    logarithms = value.op == "_log_softmax" and bool(value.given)
    place = value.given[0] if logarithms else place
    if value.op == "_softmax" and value.given:
        reading.find("head", "probabilities are returned; expected logits", returns="probabilities")
        place = value.given[0]
    linear = stream.linears.at(place)
    if linear is None:
        reading.open.append("the result is not what a linear map gives: no head was found")
        return None
    reading.choose("head", "log_probabilities", logarithms)
    reading.choose("head", "head_bias", linear.bias is not None)
    reading.weights["head.weight"] = linear.matrix
    if linear.bias is not None:
        reading.weights["head.bias"] = linear.bias
    return linear.x


def _unused(reading: ReadOff, record: CallRecord) -> None:
    """Note parameters that nothing was computed from."""
    used = {record.origin(g) for value in record.values for g in value.given} | {
        g for value in record.values for g in value.given
    }
    idle = sorted({value.name for value in record.values if value.op == "parameter" and value.place not in used})
    if idle:
        named = ", ".join(idle[:5]) + (f" and {len(idle) - 5} more" if len(idle) > 5 else "")
        reading.find("", f"parameters that are never used: {named}", names=idle)
        if reading.choices.get("final_norm") == [False]:
            reading.choices["final_norm"] = [True]  # what else would it be for
