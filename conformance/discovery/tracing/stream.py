"""The residual stream of a record: what is added to it and normalized, from the result back to where it starts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from conformkit.conformance.discovery.tracing.activations import FoundNetwork, network
from conformkit.conformance.discovery.tracing.attending import CallShape, Core, cores_behind
from conformkit.conformance.discovery.tracing.linears import FoundLinear, Linears
from conformkit.conformance.discovery.tracing.norms import FoundNorm, Norms
from conformkit.conformance.discovery.tracing.numbers import close
from conformkit.conformance.discovery.tracing.record import CallRecord

__all__ = ["FoundAttention", "ResidualStream", "Sublayer", "Walk"]


@dataclass(frozen=True, eq=False)
class FoundAttention:
    """Heads, and the map that mixes them, if there is one; `place` is where they lie side by side."""

    cores: list[Core]
    place: int
    out: FoundLinear | None
    reads: tuple[int, ...]
    part: str


@dataclass(eq=False)
class Sublayer:
    """What was added to the stream, which was at `stream` before; `before` and `after` are norms inside the branch.

    `outer` are the norms of the stream that follow. `stream` is None where nothing was added to: no residual path.
    `skips`: it was added to an earlier place of the stream than it read, so what came between is lost.
    """

    place: int
    attention: FoundAttention | None = None
    network: FoundNetwork | None = None
    stream: int | None = None
    reads: int | None = None
    before: FoundNorm | None = None
    after: FoundNorm | None = None
    outer: list[FoundNorm] = field(default_factory=list)
    entry: int | None = None
    skips: bool = False
    onto: FoundNorm | None = None
    """The norm that its residual path goes through, where no sublayer before it has given it."""


@dataclass(frozen=True)
class Walk:
    """Sublayers from the first to the last, the norms of the stream before them, and where it starts."""

    sublayers: list[Sublayer]
    first: list[FoundNorm]
    start: int

    def of_blocks(self) -> Walk:
        """Return it with a norm before the first block as that of its attention, where it belongs to that block.

        It does where networks have norms and attention has none, and where its parameters lie in the block: then the
        residual path goes through the norm in each block, and the embeddings have none.
        """
        attentions = [s for s in self.sublayers if s.attention is not None]
        normed = any(s.before is not None for s in self.sublayers if s.attention is None)
        bare = all(s.before is None and s.after is None and not s.outer for s in attentions)
        if len(self.first) != 1 or not attentions:
            return self
        if normed and bare:
            self.sublayers[0].onto = self.first[0]
        elif self._begins_in_a_block(attentions):
            before = self.first[0]
            for sublayer in self.sublayers:
                sublayer.onto, following = before, sublayer.outer[:1]
                if not following or sublayer is self.sublayers[-1]:
                    break
                before, sublayer.outer = following[0], sublayer.outer[1:]
        else:
            return self
        return replace(self, first=[])

    def _begins_in_a_block(self, attentions: Sequence[Sublayer]) -> bool:
        """Whether the first norm lies in the block of the first attention, and all norms stand where it does."""
        if any(s.before is not None or s.after is not None for s in self.sublayers):
            return False
        parts = [s.attention.part.split(".") for s in attentions if s.attention is not None]
        shared = min(_shared(part, parts[-1]) for part in parts)
        names = [name.split(".") for name in self.first[0].names]
        return bool(names) and all(_shared(name, parts[0]) > shared for name in names)


def _shared(one: Sequence[str], other: Sequence[str]) -> int:
    """Return with how many equal words both begin."""
    return next((n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


class ResidualStream:
    """Walks back through a record."""

    def __init__(self, record: CallRecord, shape: CallShape) -> None:
        self.record, self.shape = record, shape
        self.linears = Linears(record)
        self.norms = Norms(record, self.linears)

    def walk(self, place: int, *, whole: bool = False) -> Walk:
        """Follow the stream from a place back to its start; that of a `whole` model may end in a norm of its own."""
        found: list[Sublayer] = []
        norms: list[FoundNorm] = []
        while True:
            place = self.record.origin(place, whole=True)
            added = self._added(place)
            if added:
                for sublayer in added:
                    sublayer.outer, norms = norms, []
                    found.append(sublayer)
                inside = not whole or len(found) > len(added) or self._is_normed(added[-1])
                place = self._onward(added[-1], after_norms=inside and bool(added[-1].outer))
            elif (norm := self.norms.at(place)) is not None:
                norms.insert(0, norm)
                place = norm.x
            elif (alone := self.branch(place)) is not None and self._read(alone) is not None:
                alone.outer, norms = norms, []
                found.append(alone)
                place = self._read(alone) or 0
            else:
                return Walk(found[::-1], norms, place)

    def _onward(self, sublayer: Sublayer, *, after_norms: bool) -> int:
        """Return where the stream goes on: at what was added to, or at what was read, where that is further on.

        `after_norms`: norms follow what is added, so one before the branch is that of the sublayer before.
        """
        assert sublayer.stream is not None
        reads, stream = sublayer.reads, sublayer.stream
        if (
            reads in {None, stream}
            or not self.record.reaches(reads or 0, stream)
            or self._is_norm_of(reads or 0, stream)
        ):
            return stream
        sublayer.skips = True
        if sublayer.before is None or not after_norms:
            return sublayer.reads or 0
        sublayer.before, sublayer.reads = None, sublayer.entry
        return sublayer.entry or 0

    def _is_norm_of(self, place: int, stream: int) -> bool:
        """Whether a value is a norm of the stream without weights: multiplied by them it looks like one more norm."""
        norm = self.norms.at(place)
        return norm is not None and norm.weight is None and norm.x == stream

    def _is_normed(self, sublayer: Sublayer) -> bool:
        """Whether what a sublayer was added to is what a norm gives, as where norms stand there."""
        return sublayer.stream is not None and self.norms.at(sublayer.stream) is not None

    def branch(self, place: int) -> Sublayer | None:
        """Return what a branch computes: attention or a network; None if it is neither."""
        linear = self.linears.at(place)
        if linear is None:
            norm = self.norms.at(place)
            if norm is not None:
                inner = self.branch(norm.x)
                if inner is not None and inner.after is None:
                    inner.after = norm
                    return inner
                return None
            bare = cores_behind(self.record, self.linears, place, self.shape)
            return Sublayer(place, self._attention(bare, place, None)) if bare else None
        cores = cores_behind(self.record, self.linears, linear.x, self.shape)
        if cores:
            return Sublayer(place, self._attention(cores, linear.x, linear))
        found = network(self.record, self.linears, linear)
        return None if found is None else Sublayer(place, network=found)

    def _attention(self, cores: list[Core], place: int, out: FoundLinear | None) -> FoundAttention:
        known = [s for core in cores for each in (core.q, core.k, core.v) for s in each if s is not None]
        reads = tuple(dict.fromkeys(self.record.origin(s.linear.x, whole=True) for s in known))
        return FoundAttention(cores, place, out, reads, self.record[place].part)

    def _added(self, place: int) -> list[Sublayer]:
        """Return the sublayers whose results were added to the stream to give a value; none if it is no such sum."""
        pair = self.sum(place)
        if pair is None:
            return []
        for branch, stream in (pair, pair[::-1]):
            if self.record.reaches(branch, self.record.origin(stream, whole=True)):
                found = self.branch(branch)
                if found is not None:
                    return [self._joined(found, stream)]
                inner = self.sum(branch)
                both = [self.branch(one) for one in inner] if inner else []
                if both and all(both):
                    return [self._joined(one, stream) for one in both if one is not None]
        for branch, stream in (pair, pair[::-1]):  # in parallel: the branch reads the stream before the other one
            found = self.branch(branch)
            if found is not None and self.sum(self.record.origin(stream, whole=True)) is not None:
                return [self._joined(found, stream)]
        return []

    def _joined(self, sublayer: Sublayer, stream: int) -> Sublayer:
        """Say what a sublayer reads, seen from the stream to which it is added."""
        sublayer.stream = self.record.origin(stream, whole=True)
        reads = sublayer.entry = self._read(sublayer)
        if reads is not None and reads != sublayer.stream:
            norm = self.norms.at(reads)
            if norm is not None:
                sublayer.before, reads = norm, self.record.origin(norm.x, whole=True)
        sublayer.reads = reads
        return sublayer

    def _read(self, sublayer: Sublayer) -> int | None:
        if sublayer.network is not None:
            return self.record.origin(sublayer.network.reads, whole=True)
        return sublayer.attention.reads[0] if sublayer.attention is not None and sublayer.attention.reads else None

    def sum(self, place: int) -> tuple[int, int] | None:
        """Return the two values of which one is the sum; None if it is no sum of two that depend on the input."""
        value = self.record[self.record.origin(place, whole=True)]
        if value.op != "add" or len(value.given) < 2 or self.linears.at(value.place) is not None:
            return None
        one, other = (self.record.origin(g, whole=True) for g in value.given[:2])
        a, b = (self.record[g].array for g in value.given[:2])
        if not {one, other} <= self.record.lively or a.ndim == 0 or b.ndim == 0:
            return None
        try:
            return (one, other) if close(a + b, value.array) else None
        except ValueError:
            return None
