"""The loss that a model computes: where it is in the result, and which logits its targets are compared with."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from conformkit.conformance.assertions.checks import (
    NotApplicable,
    check,
    check_close,
    check_shape,
    remark,
    supposing,
    under,
)
from conformkit.conformance.assertions.draws import Draw
from conformkit.conformance.assertions.suppositions import Slips
from conformkit.conformance.binding.call_arguments import ArgumentNames
from conformkit.conformance.driver.errors import ImplementationFailure
from conformkit.conformance.evidence.logits import logsumexp, other_ids
from conformkit.conformance.evidence.loss_slips import of_loss
from conformkit.conformance.evidence.padded_texts import batch, built
from conformkit.conformance.subject.call_path import Path
from conformkit.conformance.subject.component import Instance, Subject
from conformkit.spec.arrays import Array

__all__ = [
    "Losing", "LosingText", "check_ignored", "check_loss", "check_mean", "check_pieces", "check_shift", "ignored",
    "losing", "losing_whole", "takes_targets",
]  # fmt: skip

IGNORED = (-100, -1)
"""Targets that do not count, the usual one first."""
CLOSE = 1e-5
"""Losses are often computed in float32, whatever the model computes in."""
WORDS = {0: "its own place", 1: "the place before", 2: "two places before", -1: "the place after"}
SHIFTS = (0, 1, 2, -1)
"""How many places a target may stand behind the logits that it is compared with."""
_ALLOWED = 1e-2
"""How far the changes of the loss may be from proportional to those of logits: far above float32's rounding."""

_SAME = 1e-6
"""How far a term that is the same for all targets may differ for two of them, in cross-entropies: by rounding."""


@dataclass(frozen=True, slots=True)
class Losing:
    """A model that computes its loss: targets (B, T) for it, all of which count."""

    place: Any
    """Where the loss is in the result."""
    targets: Array
    vocab_size: int
    told: Callable[[Any, Array, slice], Array]
    """Returns a part of what a call gives for these targets, some rows of the batch."""
    plain: Callable[[], Array]
    """Returns the logits (B, T, V) without targets."""
    padding: tuple[int, ...] = (0,)
    """Ids that some code takes for padding: as targets they are another clause's business."""

    def __call__(self, targets: Array, rows: slice = slice(None)) -> float:
        """Return the loss of these targets, for some rows of the batch."""
        return float(np.asarray(self.told(self.place, targets, rows)).reshape(()))

    def logits(self) -> Array:
        """Return the logits (B, T, V), without targets."""
        return np.asarray(self.plain(), np.float64)

    def _real(self, targets: Array) -> Array:
        """Return targets of which none is padding."""
        return np.where(np.isin(targets, self.padding), self._ids()[0], targets)

    def _others(self, targets: Array, draw: Draw) -> Array:
        """Return other ones, none of them padding."""
        ids = self._ids()
        return ids[other_ids(np.searchsorted(ids, targets), len(ids), draw)]

    def _ids(self) -> Array:
        return np.setdiff1d(np.arange(self.vocab_size), self.padding)

    def shift(self, draw: Draw) -> int | None:
        """Return how many places targets stand behind their logits; None where no number fits.

        If the target at a place becomes another id, the loss changes by the difference of two logits, times one number
        for all places.
        """
        targets = self._real(self.targets)
        logits, before = self.logits(), self(targets)
        found: dict[int, list[tuple[float, float]]] = {shift: [] for shift in SHIFTS}
        for place in range(2, self.targets.shape[1] - 1):
            for row in range(2):
                changed = targets.copy()
                changed[row, place] = self._others(changed[row, place], draw)
                moved = self(changed) - before
                for shift, pairs in found.items():
                    z = logits[row, place - shift]
                    pairs.append((float(z[targets[row, place]] - z[changed[row, place]]), moved))
        off = {shift: _unlike(np.asarray(pairs)) for shift, pairs in found.items()}
        best = min(off, key=lambda shift: off[shift])
        return best if off[best] < _ALLOWED else None

    def counted(self, draw: Draw) -> list[int]:
        """Return the places of the first row whose target changes the loss."""
        before = self(self.targets)
        found = []
        for place in range(self.targets.shape[1]):
            changed = self.targets.copy()
            changed[0, place] = other_ids(changed[0, place], self.vocab_size, draw)
            if self(changed) != before:
                found.append(place)
        return found

    def expected(self, targets: Array, shift: int, ignored: int = IGNORED[0], rows: slice = slice(None)) -> float:
        """Return the mean cross-entropy of the logits over the targets that count, for some rows of the ids."""
        z, wanted = self.compared(targets, shift, rows)
        counted = wanted != ignored
        chosen = np.take_along_axis(z, np.where(counted, wanted, 0)[..., None], axis=-1)[..., 0]
        return float((logsumexp(z) - chosen)[counted].mean())

    def compared(self, targets: Array, shift: int, rows: slice = slice(None)) -> tuple[Array, Array]:
        """Return the logits and the targets that they are compared with."""
        logits = self.logits()[rows]
        return (logits[:, :-shift], targets[:, shift:]) if shift else (logits, targets)

    def added(self, draw: Draw, shift: int, rows: slice = slice(None)) -> float:
        """Return what the loss has above the mean cross-entropy, if it is the same for all targets; 0 otherwise.

        So are terms that balance the experts of a mixture, or that keep logits small. What is subtracted is no such
        term: a cross-entropy without its normalizer is less, whatever the targets.
        """
        targets = self._real(self.targets)
        others = self._others(targets, draw)
        one, other = (self(t[rows], rows) - self.expected(t[rows], shift, rows=rows) for t in (targets, others))
        return one if one > 0 and abs(one - other) <= _SAME * self.expected(others[rows], shift, rows=rows) else 0.0


@dataclass(frozen=True, slots=True)
class LosingText(Losing):
    """A language model that does: ids (B, T)."""

    path: Path = field(kw_only=True)
    ids: Array = field(kw_only=True)

    def logits_beside(self, targets: Array) -> Array:
        """Return the logits (B, T, V) that come with the loss of these targets."""
        if self.place != 0:
            return self.path(self.ids, targets=targets)
        found = self.path.in_rows(self.path.result(self.ids, 1, targets=targets), self.ids)  # after the loss
        if not np.ndim(found):
            raise NotApplicable("with targets it returns its loss alone")
        check_shape("the logits", found, (*self.ids.shape, self.vocab_size))
        return np.asarray(found, np.float64)


def losing(model: Subject, draw: Draw) -> LosingText:
    """Return a language model that takes targets and returns a loss. Raises NotApplicable."""
    if model.half:
        raise NotApplicable.from_formats("half precision does not show by how much a loss changes")
    path = built(model, draw)
    path.requires("targets")
    count = batch(path)
    vocab_size = path.instance.sizes["vocab_size"]
    ids, targets = draw.ids(vocab_size, count, 6), draw.ids(vocab_size, count, 6)
    targets[0, 2] = 0  # which some code takes for padding

    def told(place: Any, targets: Array, rows: slice) -> Array:
        return path.result(ids[rows], place, targets=targets)

    place = _place(told, targets, path.call_arguments, "; conform.toml can say where it is")
    return LosingText(place, targets, vocab_size, told, lambda: path(ids), path=path, ids=ids)


def takes_targets(model: Subject) -> None:
    """Raise NotApplicable unless its call takes targets, and it computes in a format that shows what they change."""
    if model.half:
        raise NotApplicable.from_formats("half precision does not show by how much a loss changes")
    if model.bound.call_arguments.targets is None:
        raise NotApplicable("its call takes no targets", lacks="targets")


def losing_whole(instance: Instance, inputs: Sequence[Array], targets: Array, further: Mapping[str, Array]) -> Losing:
    """Return an encoder, or an encoder-decoder, that takes targets and returns a loss.

    `inputs` are those of its call, of which each has a row for each of the targets, `further` what its loss is about
    besides, by the name of the argument. Raises NotApplicable.
    """
    names = instance.subject.bound.call_arguments

    def told(place: Any, targets: Array, rows: slice) -> Array:
        own = {name: array[rows] for name, array in further.items()}
        return instance.result([array[rows] for array in inputs], place, **{str(names.targets): targets, **own})

    vocab_size = instance.sizes.get("tgt_vocab_size") or instance.sizes["vocab_size"]
    place = _place(told, targets, names, "")
    return Losing(place, targets, vocab_size, told, partial(instance, *inputs), (0, instance.sizes["pad_id"]))


def ignored(loss: Losing, further: Sequence[int] = ()) -> int:
    """Return the target that does not count: -100, or -1, or one of further ones, where those before are refused."""
    for unused in (*IGNORED, *further):
        targets = loss.targets.copy()
        targets[0, -1] = unused
        try:
            loss(targets)
        except ImplementationFailure:
            continue
        return unused
    return IGNORED[0]


def check_shift(loss: Losing, draw: Draw, wanted: Collection[int]) -> None:
    """Check that targets stand so many places behind the logits that they are compared with."""
    shift = loss.shift(draw)
    places = " or ".join(WORDS[each] for each in sorted(wanted))
    found = f"logits of {WORDS[shift]}" if shift is not None else "no logits of one place"
    if shift is None:
        counted = ", ".join(map(str, loss.counted(draw))) or "none"
        under(f"rows of {loss.targets.shape[1]} targets, of which those at {counted} change the loss")
    check(f"a target is compared with {found}, expected those of {places}", shift in wanted)


def check_mean(loss: Losing, draw: Draw, targets: Array, shift: int, unused: int = IGNORED[0]) -> None:
    """Compare with the mean cross-entropy, and what is above it with a term that is the same for all targets."""
    got, want = loss(targets), loss.expected(targets, shift, unused)
    if not _close(got, want) and (added := loss.added(draw, shift)):
        remark(
            f"the loss has a term of {added:.3g} that no target changes, as one that balances experts; judged without"
        )
        got -= added
    supposing(_slips(loss, targets, shift, unused))
    check_loss("the loss", got, want)


def _slips(loss: Losing, targets: Array, shift: int, unused: int) -> Slips:
    """Return what comes of each slip of a loss; the model is called where one is looked for."""

    def made(words: str) -> object:
        return of_loss(*loss.compared(targets, shift), ignore_index=unused)[words]()

    known = of_loss(np.zeros((1, 1, 2)), np.zeros((1, 1), np.int64))
    return {words: partial(made, words) for words in known}


def check_ignored(loss: Losing, draw: Draw, shift: int, unused: int) -> None:
    """Check that the loss is the mean over the targets that count."""
    for places in ([3], [1, 2, 4]):
        targets = loss.targets.copy()
        targets[:, places] = unused
        under(f"{int((targets == unused).sum())} of {targets.size} targets {unused}")
        check_mean(loss, draw, targets, shift, unused)


def check_pieces(loss: Losing, draw: Draw, shift: int, unused: int) -> None:
    """Check that rows, weighted by their targets that count, cost together what the batch costs."""
    targets = loss.targets.copy()
    for row in range(len(targets)):
        targets[row, 1 : 2 + row] = unused
    rows = [slice(row, row + 1) for row in range(len(targets))]
    counts = [int((targets[row, shift:] != unused).sum()) for row in rows]
    under(f"rows with {', '.join(map(str, counts))} targets that count, one by one and together")
    losses = np.asarray([loss(targets), *(loss(targets[row], row) for row in rows)])
    if not _close(losses[0], np.average(losses[1:], weights=counts)):
        losses -= [loss.added(draw, shift, row) for row in (slice(None), *rows)]
    supposing(_slips(loss, targets, shift, unused))
    check_loss("the loss of the batch", losses[0], float(np.average(losses[1:], weights=counts)))


def check_loss(label: str, got: float, want: float) -> None:
    """Compare two losses."""
    check_close(label, np.asarray(got), np.asarray(want), CLOSE)


def _close(got: float, want: float) -> bool:
    return bool(np.isclose(got, want, rtol=CLOSE, atol=0))


def _place(told: Callable[[Any, Array, slice], Array], targets: Array, names: ArgumentNames, advice: str) -> Any:
    """Return where the loss is in what a call with targets gives."""
    for place in _places(names):
        try:
            found = told(place, targets, slice(None))
        except ImplementationFailure as failure:
            if failure.kind != "output":
                raise
            continue
        if found.size == 1:
            return place
    raise NotApplicable(f"its call takes {names.targets}, and returns no single number{advice}")


def _places(names: ArgumentNames) -> Iterator[Any]:
    declared = names.config.loss_output
    yield from (["loss", 1, 0, None] if declared is None else [declared])


def _unlike(pairs: Array) -> float:
    """Return how far the second numbers are from the first ones times any one positive number, relative to them."""
    a, b = pairs[:, 0], pairs[:, 1]
    factor = float(a @ b) / max(float(a @ a), 1e-30)
    size = float(np.linalg.norm(b))
    return float(np.linalg.norm(b - factor * a)) / size if size and factor > 0 else 1.0
