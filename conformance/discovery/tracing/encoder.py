"""What the record of one call says about an encoder of texts, as BERT is one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from conformkit.conformance.discovery.tracing.blocks import Context, read_blocks
from conformkit.conformance.discovery.tracing.linears import FoundLinear
from conformkit.conformance.discovery.tracing.parts import read_norm
from conformkit.conformance.discovery.tracing.reading import ReadOff
from conformkit.conformance.discovery.tracing.starting import read_start
from conformkit.conformance.discovery.tracing.stream import ResidualStream
from conformkit.spec.arrays import Array

__all__ = ["OF_ENCODERS", "read_encoder"]

OF_ENCODERS = ("BertModel",)
"""Components whose records are read here."""


def read_encoder(
    reading: ReadOff, stream: ResidualStream, context: Context, sizes: Mapping[str, Any], ids: Array, segments: Array
) -> None:
    """Note what a record says about an encoder, of ids (B, T) and segments (B, T) without padding."""
    walk = stream.walk(stream.record.out or 0).of_blocks()
    prefixes = [f"layers.{n}." for n in range(sizes["num_layers"])]
    left = read_blocks(reading, walk.sublayers, prefixes, Context(context.record, context.shape, causal=False))
    norms = [("norm", left or []), ("embedding_norm", walk.first)]
    for (path, found), choice in zip(norms, ("final_norm", "embedding_norm"), strict=True):
        reading.choose("norm", choice, len(found) == 1)
        if len(found) > 1:
            reading.open.append("there are several norms after the last layer, or before the first")
        for norm in found[:1]:
            read_norm(reading, path, norm)
    read_start(reading, stream, walk.start, ids, segments=segments)
    reading.choose("embedding", "segments", "segments.weight" in reading.weights)
    _read_pooler(reading, stream)


def _read_pooler(reading: ReadOff, stream: ResidualStream) -> None:
    """Note the map of the first row, which the result does not need."""
    used = set(stream.record.behind(stream.record.out or 0))
    beside = (stream.linears.at(value.place) for value in stream.record.values if value.place not in used)
    pooler: FoundLinear | None = next((one for one in beside if one is not None and one.bias is not None), None)
    reading.choose("pooler", "pooler", pooler is not None)
    if pooler is not None and pooler.bias is not None:
        reading.weights |= {"pooler.weight": pooler.matrix, "pooler.bias": pooler.bias}
