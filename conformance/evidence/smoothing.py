"""The implementation's smoothed loss: an object per smoothing, batches or single rows, its definition of ε."""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import numpy as np

from conformkit.conformance.assertions.checks import check
from conformkit.conformance.assertions.values import TOLERANCE, number
from conformkit.conformance.driver.errors import ImplementationFailure
from conformkit.conformance.subject.tool import Tool, ToolObject
from conformkit.spec.arrays import Array
from conformkit.spec.loss import log_softmax
from conformkit.spec.smoothing_loss import READINGS, Reading

__all__ = ["Smoothed"]

_FAR = 1e4
"""How far the logit of padding is below the others: its probability is 0."""


class Smoothed:
    """`LabelSmoothingLoss` on logits (B, T, V) and targets (B, T); flattened first where it takes (N, V) only.

    Where only an id of the vocabulary can be ignored, one is added whose probability is 0: padding.
    """

    def __init__(self, tool: Tool) -> None:
        self.tool = tool
        self.flat = self.padded = False
        self._made: dict[tuple[int, float, int | None], ToolObject] = {}
        for padded, flat in product((False, True), repeat=2):
            self.padded, self.flat = padded, flat
            try:
                self.value(np.zeros((2, 3, 5)), np.ones((2, 3), np.int64))
            except ImplementationFailure:
                continue
            return
        self.padded, self.flat = False, True

    def __call__(self, logits: Array, targets: Array, smoothing: float = 0.1, **options: Any) -> float:
        """Return the loss, one finite number."""
        return number("the loss", self.value(logits, targets, smoothing, **options))

    def value(self, logits: Array, targets: Array, smoothing: float = 0.1, *, ignore_index: int | None = None) -> Any:
        """Return the loss, whatever it is."""
        given, wanted = self._shaped(logits, targets, ignore_index)
        loss = self._loss(given, smoothing, ignore_index).call("", logits=given, targets=wanted)
        return loss / self._counted(targets, ignore_index) if isinstance(loss, float) else loss

    def gradient(self, logits: Array, targets: Array, smoothing: float = 0.1) -> Array:
        """Return the derivative with respect to the logits (B, T, V)."""
        given, wanted = self._shaped(logits, targets, None)
        slope = self._loss(given, smoothing, None).slope("logits", logits=given, targets=wanted)[1]
        if self.tool.bound.logits:  # with respect to the logarithms, of which each depends on all logits
            slope = slope - np.exp(given) * slope.sum(axis=-1, keepdims=True)
        slope = slope[..., : logits.shape[-1]].reshape(logits.shape)
        return np.asarray(slope / self._counted(targets, None))

    def _counted(self, targets: Array, ignore_index: int | None) -> int:
        """Return the number of targets by which a sum becomes the mean; 1 for a mean."""
        return max(1, int((targets != ignore_index).sum())) if self.tool.bound.reduction else 1

    def reading(self) -> Reading:
        """Return which of the known definitions gives its losses for single targets; fail if none does."""
        logits, target = np.array([[[2.0, -1.0, 0.5, 0.0, 1.5]]]), np.array([[3]])
        found: dict[float, float] = {smoothing: self(logits, target, smoothing) for smoothing in (0.1, 0.4)}
        for reading in READINGS:
            if all(_near(loss, reading.loss(logits, target, smoothing)) for smoothing, loss in found.items()):
                return reading
        wanted = [f"{reading.loss(logits, target, 0.1):.7g}" for reading in READINGS]
        check(
            f"with ε = 0.1, the loss of id 3 of 5 is {found[0.1]:.7g}, expected one of {', '.join(wanted)}", holds=False
        )
        raise AssertionError

    def _loss(self, logits: Array, smoothing: float, ignore_index: int | None) -> ToolObject:
        key = (logits.shape[-1], smoothing, ignore_index)
        if key not in self._made:
            given: dict[str, Any] = {"vocab_size": key[0]} if self.tool.offers("vocab-size") else {}
            ignored = key[0] - 1 if self.padded else ignore_index
            given |= {"ignore_index": ignored} if ignored is not None else {}
            self._made[key] = self.tool.make(**given, smoothing=smoothing)
        return self._made[key]

    def _shaped(self, logits: Array, targets: Array, ignore_index: int | None) -> tuple[Array, Array]:
        if self.padded:
            targets = (
                np.where(targets == ignore_index, logits.shape[-1], targets) if ignore_index is not None else targets
            )
            logits = np.concatenate([logits, np.full((*logits.shape[:-1], 1), logits.min() - _FAR)], axis=-1)
        if self.tool.bound.logits:
            logits = log_softmax(logits)
        if self.flat:
            return logits.reshape(-1, logits.shape[-1]), targets.reshape(-1)
        return logits, targets


def _near(one: float, other: float) -> bool:
    return math.isclose(one, other, rel_tol=TOLERANCE, abs_tol=TOLERANCE)
