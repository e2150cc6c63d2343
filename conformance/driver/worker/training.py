"""Train a component: forward, cross-entropy, backward, clip, AdamW without decay.

The optimizer is written out: constructing one of torch's imports its compiler, which takes longer than training a
small model.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from conformkit.conformance.driver.wire.arrays import Array
from conformkit.conformance.driver.worker.frameworks.base import Framework, TrainingLoop

__all__ = ["Loop"]


class Loop:
    """Trains one component, and keeps the optimizer's state from step to step."""

    def __init__(self, framework: Framework, component: Any) -> None:
        self.component = component
        self._framework = framework
        self._learner: TrainingLoop = framework.learner(component)

    def run(self, forward: Callable[[int], Any], targets: Array, rates: Sequence[float], max_norm: float) -> Array:
        """Take a step on each batch at its rate, targets (K, …); return the losses before each step (K,)."""
        self._framework.set_mode(self.component, "train")
        losses = [
            self._learner.step(forward(step), wanted, rate, max_norm)
            for step, (wanted, rate) in enumerate(zip(targets, rates, strict=True))
        ]
        self._framework.set_mode(self.component, "eval")
        return np.array(losses, np.float64)
