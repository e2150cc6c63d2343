"""What the record of one call says about an encoder-decoder or one of its parts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from conformkit.conformance.discovery.tracing.blocks import DECODER_SUBLAYERS, SUBLAYERS, Context, read_blocks
from conformkit.conformance.discovery.tracing.norms import FoundNorm
from conformkit.conformance.discovery.tracing.numbers import by_text, close
from conformkit.conformance.discovery.tracing.parts import read_attention, read_norm
from conformkit.conformance.discovery.tracing.reading import ReadOff
from conformkit.conformance.discovery.tracing.starting import read_start
from conformkit.conformance.discovery.tracing.stream import FoundAttention, ResidualStream, Sublayer
from conformkit.spec.arrays import Array

__all__ = ["OF_TWO_SIDES", "read_two_sides"]

_STACKS = {"Encoder": SUBLAYERS, "Decoder": DECODER_SUBLAYERS}
_LAYERS = {"EncoderLayer": SUBLAYERS, "DecoderLayer": DECODER_SUBLAYERS}
OF_TWO_SIDES = ("CrossAttention", *_LAYERS, *_STACKS, "Transformer")
"""Components whose records are read here."""

Head = Callable[[ReadOff, ResidualStream], int | None]


def read_two_sides(
    reading: ReadOff, stream: ResidualStream, component: str, context: Context, sizes: Mapping[str, Any],
    given: Sequence[Array], head: Head,
) -> None:  # fmt: skip
    """Note what a record says about a component; `given` are its inputs without masks, `head` reads a model's head."""
    if component == "CrossAttention":
        _attention(reading, stream, context, given)
    elif component == "Transformer":
        _model(reading, stream, context, sizes, given, head)
    else:
        stack = component in _STACKS
        prefixes = [f"layers.{n}." for n in range(sizes["num_layers"])] if stack else [""]
        parts = (_STACKS if stack else _LAYERS)[component]
        _layers(reading, stream, stream.record.out or 0, prefixes, parts, context, given, final=stack)


def _attention(reading: ReadOff, stream: ResidualStream, context: Context, given: Sequence[Array]) -> None:
    found = stream.branch(stream.record.out or 0)
    if found is None or found.after is not None or found.attention is None:
        reading.open.append("what is computed is no attention")
        return
    read_attention(reading, "", found.attention, context.record, context.shape, causal=None, memory=None)
    _check_reads(reading, stream, found.attention, given)


def _check_reads(reading: ReadOff, stream: ResidualStream, attention: FoundAttention, given: Sequence[Array]) -> None:
    """Leave open what does not read the first input for its queries and so on: it may be called otherwise."""
    for core in attention.cores:
        for name, wanted in zip("qkv", given, strict=True):
            read = [stream.record[stream.record.origin(s.linear.x, whole=True)] for s in getattr(core, name) if s]
            if not all(_is(value.array, wanted) for value in read):
                reading.open.append(f"{name} reads another input")
                return


def _is(array: Array, wanted: Array) -> bool:
    return any(close(a, wanted) for a in by_text(array, *wanted.shape[:2]))


def _layers(
    reading: ReadOff, stream: ResidualStream, place: int, prefixes: Sequence[str], parts: Mapping[str, str],
    context: Context, given: Sequence[Array], *, final: bool,
) -> None:  # fmt: skip
    walk = stream.walk(place)
    left = read_blocks(reading, walk.sublayers, prefixes, context, parts)
    if left is None:
        return
    if final:
        _final_norm(reading, "", left)
    elif left:
        reading.open.append("the layer has more in it than its sublayers and their norms")
    if walk.first or not _is(stream.record[walk.start].array, given[0]):
        reading.open.append("what the first sublayer reads is not the input")
    for memory in _memories(walk.sublayers, parts):
        if not _is(stream.record[memory].array, given[1]):
            reading.open.append("attention to the memory reads another thing")


def _memories(sublayers: Sequence[Sublayer], parts: Mapping[str, str]) -> list[int]:
    """Return the places that attention to the memory reads, each once; what reads one thing alone reads no memory."""
    if "cross_attention" not in parts:
        return []
    own = [s.attention for s in sublayers[1 :: len(parts)] if s.attention is not None]
    return list(dict.fromkeys(a.reads[-1] for a in own if len(a.reads) > 1))


def _final_norm(reading: ReadOff, path: str, left: Sequence[FoundNorm]) -> None:
    known = reading.choices.get("final_norm")
    if len(left) > 1 or (known is not None and known != [len(left) == 1]):
        reading.open.append("the norms after the last layers are not those of any variant")
        return
    reading.choose("norm", "final_norm", len(left) == 1)
    for norm in left:
        read_norm(reading, f"{path}norm", norm)


def _model(
    reading: ReadOff, stream: ResidualStream, context: Context, sizes: Mapping[str, Any], given: Sequence[Array],
    head: Head,
) -> None:  # fmt: skip
    place = head(reading, stream)
    if place is None:
        return
    table, memories = _side(reading, stream, place, "decoder", sizes["num_decoder_layers"], context, given[1])
    if len(memories) > 1 or not (memories or reading.findings):
        reading.open.append(f"attention to the memory reads {len(memories)} things")
    if len(memories) != 1:
        return
    whole = Context(context.record, context.shape, causal=False)
    source, _ = _side(reading, stream, memories[0], "encoder", sizes["num_encoder_layers"], whole, given[0])
    if table is None or source is None:
        return
    reading.choose("embedding", "shared_embeddings", table == source)
    weights = reading.weights
    tied = np.array_equal(weights["head.weight"], weights["tgt_embedding.weight"])
    reading.choose("head", "tied", tied)
    _drop_shared(reading, tied=tied, shared=table == source)


def _drop_shared(reading: ReadOff, *, tied: bool, shared: bool) -> None:
    """Keep each matrix once, under the name that the definition has for it."""
    weights = reading.weights
    one, other = (weights.get(f"{side}_positions.weight") for side in ("src", "tgt"))
    if one is not None and other is not None:
        same = one.shape == other.shape and np.array_equal(one, other)
        reading.choose("positions", "shared_positions", same)
        if same:
            del weights["tgt_positions.weight"]
    if tied:
        del weights["head.weight"]
    if shared:
        del weights["tgt_embedding.weight"]


def _side(
    reading: ReadOff, stream: ResidualStream, place: int, side: str, layers: int, context: Context, ids: Array
) -> tuple[str | None, list[int]]:
    """Note one side; return the name of its table, and the places that attention to the memory reads."""
    name = "tgt_" if side == "decoder" else "src_"
    parts = DECODER_SUBLAYERS if side == "decoder" else SUBLAYERS
    walk = stream.walk(place).of_blocks()
    prefixes = [f"{side}.layers.{n}." for n in range(layers)]
    left = read_blocks(reading, walk.sublayers, prefixes, context, parts)
    if left is not None:
        _final_norm(reading, f"{side}.", left)
    if len(walk.first) > 1:
        reading.open.append("there are several norms before the first layer")
    reading.choose("embedding_norm", "embedding_norm", len(walk.first) == 1)
    for norm in walk.first[:1]:
        read_norm(reading, f"{name}embedding_norm", norm)
    table = read_start(reading, stream, walk.start, ids, name)
    return table, [] if left is None else _memories(walk.sublayers, parts)
