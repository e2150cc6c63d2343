"""The loss that a model computes: where it is in the result, and which logits its targets are compared with."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from conformkit.conformance.assertions.checks import NotApplicable, check_shape
from conformkit.conformance.assertions.draws import Draw
from conformkit.conformance.driver.errors import ImplementationFailure
from conformkit.conformance.evidence.logits import logsumexp, other_ids
from conformkit.conformance.evidence.padded_texts import batch, built
from conformkit.conformance.subject.call_path import Path
from conformkit.conformance.subject.component import Subject
from conformkit.spec.arrays import Array

__all__ = ["IGNORED", "Losing", "losing"]

IGNORED = (-100, -1)
"""Targets that do not count, the usual one first."""
SHIFTS = (0, 1, 2, -1)
"""How many places a target may stand behind the logits that it is compared with."""
_ALLOWED = 1e-2
"""How far the changes of the loss may be from proportional to those of logits: far above float32's rounding."""

_SAME = 1e-6
"""How far a term that is the same for all targets may differ for two of them, in cross-entropies: by rounding."""


@dataclass(frozen=True, slots=True)
class Losing:
    """A model that computes its loss: ids (B, T) and targets (B, T) for it, all of which count."""

    path: Path
    place: Any
    """Where the loss is in the result."""
    ids: Array
    targets: Array

    def __call__(self, targets: Array, rows: slice = slice(None)) -> float:
        """Return the loss of these targets, for some rows of the ids."""
        return float(np.asarray(self.path.result(self.ids[rows], self.place, targets=targets)).reshape(()))

    def logits(self, targets: Array | None = None) -> Array:
        """Return the logits (B, T, V), with targets or without."""
        if targets is not None and self.place == 0:  # they come after the loss
            found = self.path.in_rows(self.path.result(self.ids, 1, targets=targets), self.ids)
            check_shape("the logits", found, (*self.ids.shape, self.path.instance.sizes["vocab_size"]))
            return np.asarray(found, np.float64)
        return self.path(self.ids, targets=targets)

    def shift(self, draw: Draw) -> int | None:
        """Return how many places targets stand behind their logits; None where no number fits.

        If the target at a place becomes another id, the loss changes by the difference of two logits, times one number
        for all places.
        """
        vocab_size = self.path.instance.sizes["vocab_size"]
        targets = np.maximum(self.targets, 1)  # id 0 is some code's padding, which is another clause's business
        logits, before = self.logits(), self(targets)
        found: dict[int, list[tuple[float, float]]] = {shift: [] for shift in SHIFTS}
        for place in range(2, self.ids.shape[1] - 1):
            for row in range(2):
                changed = targets.copy()
                changed[row, place] = 1 + other_ids(changed[row, place] - 1, vocab_size - 1, draw)
                moved = self(changed) - before
                for shift, pairs in found.items():
                    z = logits[row, place - shift]
                    pairs.append((float(z[targets[row, place]] - z[changed[row, place]]), moved))
        off = {shift: _unlike(np.asarray(pairs)) for shift, pairs in found.items()}
        best = min(off, key=lambda shift: off[shift])
        return best if off[best] < _ALLOWED else None

    def counted(self, draw: Draw) -> list[int]:
        """Return the places of the first row whose target changes the loss."""
        vocab_size = self.path.instance.sizes["vocab_size"]
        before = self(self.targets)
        found = []
        for place in range(self.ids.shape[1]):
            changed = self.targets.copy()
            changed[0, place] = other_ids(changed[0, place], vocab_size, draw)
            if self(changed) != before:
                found.append(place)
        return found

    def expected(self, targets: Array, shift: int, ignored: int = IGNORED[0], rows: slice = slice(None)) -> float:
        """Return the mean cross-entropy of the logits over the targets that count, for some rows of the ids."""
        logits = self.logits()[rows]
        z, wanted = (logits[:, :-shift], targets[:, shift:]) if shift else (logits, targets)
        counted = wanted != ignored
        chosen = np.take_along_axis(z, np.where(counted, wanted, 0)[..., None], axis=-1)[..., 0]
        return float((logsumexp(z) - chosen)[counted].mean())

    def added(self, draw: Draw, shift: int, rows: slice = slice(None)) -> float:
        """Return what the loss has above the mean cross-entropy, if it is the same for all targets; 0 otherwise.

        So are terms that balance the experts of a mixture, or that keep logits small. What is subtracted is no such
        term: a cross-entropy without its normalizer is less, whatever the targets.
        """
        others = other_ids(self.targets, self.path.instance.sizes["vocab_size"], draw)
        one, other = (self(t[rows], rows) - self.expected(t[rows], shift, rows=rows) for t in (self.targets, others))
        return one if one > 0 and abs(one - other) <= _SAME * self.expected(others[rows], shift, rows=rows) else 0.0


def losing(model: Subject, draw: Draw) -> Losing:
    """Return a model that takes targets and returns a loss. Raises NotApplicable."""
    if model.half:
        raise NotApplicable.from_formats("half precision does not show by how much a loss changes")
    path = built(model, draw)
    path.requires("targets")
    count = batch(path)
    vocab_size = path.instance.sizes["vocab_size"]
    ids, targets = draw.ids(vocab_size, count, 6), draw.ids(vocab_size, count, 6)
    targets[0, 2] = 0  # which some code takes for padding
    for place in _places(path):
        try:
            found = path.result(ids, place, targets=targets)
        except ImplementationFailure as failure:
            if failure.kind != "output":
                raise
            continue
        if found.size == 1:
            return Losing(path, place, ids, targets)
    raise NotApplicable(
        f"its call takes {path.call_arguments.targets}, and returns no single number; conform.toml can say where it is"
    )


def _places(path: Path) -> Iterator[Any]:
    declared = path.call_arguments.config.loss_output
    yield from (["loss", 1, 0] if declared is None else [declared])


def _unlike(pairs: Array) -> float:
    """Return how far the second numbers are from the first ones times any one positive number, relative to them."""
    a, b = pairs[:, 0], pairs[:, 1]
    factor = float(a @ b) / max(float(a @ a), 1e-30)
    size = float(np.linalg.norm(b))
    return float(np.linalg.norm(b - factor * a)) / size if size and factor > 0 else 1.0
