"""The implementation's cross-entropy, whether it takes batches of rows, single rows, or both."""

from __future__ import annotations

from typing import Any

import numpy as np

from conformkit.conformance.assertions.checks import supposing
from conformkit.conformance.assertions.values import number
from conformkit.conformance.driver.errors import ImplementationFailure
from conformkit.conformance.evidence.loss_slips import of_loss
from conformkit.conformance.subject.tool import Tool
from conformkit.spec.arrays import Array

__all__ = ["Scoring"]


class Scoring:
    """`cross_entropy` on logits (B, T, V) and targets (B, T); flattened first where it takes (N, V) and (N,) only."""

    def __init__(self, tool: Tool) -> None:
        self.tool = tool
        self.flat = False
        try:
            self._ask(np.zeros((2, 3, 5)), np.ones((2, 3), np.int64))
        except ImplementationFailure:
            self.flat = True

    def __call__(self, logits: Array, targets: Array, **options: Any) -> float:
        """Return the loss, one finite number."""
        supposing(of_loss(logits, targets, **options))
        return number("the loss", self.value(logits, targets, **options))

    def value(self, logits: Array, targets: Array, **options: Any) -> Any:
        """Return the loss, whatever it is."""
        return self._ask(logits, targets, **options)

    def gradient(self, logits: Array, targets: Array, **options: Any) -> Array:
        """Return the derivative with respect to the logits (B, T, V)."""
        given, wanted = self._shaped(logits, targets)
        return self.tool.slope("logits", logits=given, targets=wanted, **options)[1].reshape(logits.shape)

    def _ask(self, logits: Array, targets: Array, **options: Any) -> Any:
        given, wanted = self._shaped(logits, targets)
        return self.tool(logits=given, targets=wanted, **options)

    def _shaped(self, logits: Array, targets: Array) -> tuple[Array, Array]:
        if self.flat:
            return logits.reshape(-1, logits.shape[-1]), targets.reshape(-1)
        return logits, targets
