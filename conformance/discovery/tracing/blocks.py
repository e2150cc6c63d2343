"""The sublayers of a record as blocks: where norms stand, and whether all blocks are alike."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from conformkit.conformance.discovery.tracing.attending import CallShape
from conformkit.conformance.discovery.tracing.norms import FoundNorm
from conformkit.conformance.discovery.tracing.parts import read_attention, read_network, read_norm
from conformkit.conformance.discovery.tracing.reading import ReadOff
from conformkit.conformance.discovery.tracing.record import CallRecord
from conformkit.conformance.discovery.tracing.stream import Sublayer

__all__ = ["DECODER_SUBLAYERS", "SUBLAYERS", "Context", "read_blocks"]

SUBLAYERS = {"attention": "norm1", "feed_forward": "norm2"}
DECODER_SUBLAYERS = {"self_attention": "norm1", "cross_attention": "norm2", "feed_forward": "norm3"}
"""Sublayers in their order, each with its norm: of a block, and of a decoder's layer."""
_WORDS = {
    "attention": "attention", "self_attention": "attention", "cross_attention": "attention to the memory",
    "feed_forward": "the feed-forward network",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Context:
    """What reading takes besides: the record, the sizes of the call, whether attention hides later positions.

    `causal` is None where the call says nothing about it.
    """

    record: CallRecord
    shape: CallShape
    causal: bool | None


def read_blocks(
    reading: ReadOff, sublayers: Sequence[Sublayer], prefixes: Sequence[str], context: Context,
    parts: Mapping[str, str] = SUBLAYERS,
) -> list[FoundNorm] | None:  # fmt: skip
    """Note the choices and weights of blocks; return the norms left after the last, None if they are no blocks.

    `prefixes` are the canonical names of the blocks, `parts` what each is made of.
    """
    kinds = ["attention" if s.attention is not None else "feed_forward" for s in sublayers]
    if kinds != [name.removeprefix("self_").removeprefix("cross_") for name in parts] * len(prefixes):
        order = ", ".join(kinds) or "none"
        reading.open.append(f"{len(prefixes)} blocks of attention and network expected; sublayers found: {order}")
        return None
    for (prefix, part), sublayer in zip(product(prefixes, parts), sublayers, strict=True):
        _read_sublayer(reading, prefix, part, sublayer, context)
    return _read_norms(reading, sublayers, [(prefix, *each) for prefix in prefixes for each in parts.items()])


def _read_sublayer(reading: ReadOff, prefix: str, part: str, sublayer: Sublayer, context: Context) -> None:
    path = f"{prefix}{part}"
    if sublayer.attention is not None:
        memory = part == "cross_attention"
        causal = False if memory and context.causal else context.causal
        own = context.record, context.shape
        read_attention(reading, path, sublayer.attention, *own, causal=causal, memory=memory)
    elif sublayer.network is not None:
        read_network(reading, path, sublayer.network)
    if sublayer.stream is None:
        reading.find(f"{prefix}residual", f"nothing is added to what {_WORDS[part]} gives: no residual path")
    elif sublayer.skips:
        remark = f"what {_WORDS[part]} gives is added to an earlier value than it reads: x + S(y); expected y + S(y)"
        reading.find(f"{prefix}residual", remark, skips=part)


def _read_norms(
    reading: ReadOff, sublayers: Sequence[Sublayer], names: Sequence[tuple[str, str, str]]
) -> list[FoundNorm] | None:
    """Note where the norms stand, by what most sublayers do; another place in some is a mistake."""
    styles = [_style(s) for s in sublayers]
    placement = Counter(styles).most_common(1)[0][0]
    if ("pre" in styles and styles.count("pre") * 2 >= len(styles)) or all(s.onto is not None for s in sublayers):
        placement = "pre"
    parallel = _parallel(sublayers) if placement == "pre" and names[1][1] == "feed_forward" else ""
    if placement == "bare":
        reading.open.append("no norms in the blocks")
        return None
    reading.choose("blocks", "placement", parallel or placement)
    carried: list[FoundNorm] = []
    for place, (sublayer, style, (prefix, kind, norm)) in enumerate(zip(sublayers, styles, names, strict=True)):
        outer = list(sublayer.outer)
        spare = outer if place < len(sublayers) - 1 else outer[1:]  # the last one of all is no sublayer's
        own = [one for one in (sublayer.before, sublayer.after, sublayer.onto) if one is not None] or carried[:1]
        own = own or (outer if placement == "post" else spare)[:1]
        carried = [one for one in outer if one not in own]
        if style != placement:
            remark = _told(sublayer, style, kind, placement)
            reading.find(f"{prefix}residual", remark, style=style, placement=placement)
        theirs = _named(norm, placement, parallel, kind)
        if len(own) < len(theirs):
            reading.find(f"{prefix}{theirs[len(own)]}", f"{_WORDS[kind]} has no norm; others have")
        for name, one in zip(theirs, own, strict=False):
            read_norm(reading, f"{prefix}{name}", one)
    return carried


def _style(sublayer: Sublayer) -> str:
    """Return where a sublayer has its norms: pre, sandwich, output, post, or nowhere."""
    if sublayer.before is not None:
        return "pre" if sublayer.after is None else "sandwich"
    if sublayer.after is not None:
        return "output"
    return "post" if sublayer.outer else "bare"


def _parallel(sublayers: Sequence[Sublayer]) -> str:
    """Return the placement of sublayers that read the same stream; nothing if each reads what the one before gave."""
    pairs = list(zip(sublayers[::2], sublayers[1::2], strict=True))
    if not all(a.stream is not None and f.reads == a.stream for a, f in pairs):
        return ""
    if all(a.before is f.before for a, f in pairs):
        return "parallel"
    return "parallel_two_norms"


def _named(norm: str, placement: str, parallel: str, kind: str) -> list[str]:
    if parallel == "parallel":
        return [norm] if kind == "attention" else []
    return [norm, f"{norm}_after"] if placement == "sandwich" else [norm]


def _told(sublayer: Sublayer, style: str, kind: str, placement: str) -> str:
    """Say how a sublayer differs from the others."""
    name = _WORDS[kind]
    if placement == "pre" and sublayer.before is None:
        return f"the residual path of {name} goes through the norm: N x + S(N x); expected x + S(N x)"
    return f"{name} has its norm {style}, other sublayers {placement}"
