"""Experts that no position chose: code that leaves them out of a call gives their parameters no gradient."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from conformkit.conformance.subject.component import Instance
from conformkit.spec.arrays import Array

__all__ = ["with_unchosen"]


def with_unchosen(instance: Instance, gradients: Mapping[str, Array | None]) -> dict[str, Array | None]:
    """Return gradients with zeros for parameters that have none, where there are experts: few may be chosen."""
    if not instance.subject.variant.experts:
        return dict(gradients)
    shapes = {listed["name"]: listed["shape"] for listed in instance.trainable}
    return {
        name: np.zeros(shapes[name]) if gradient is None and name in shapes else gradient
        for name, gradient in gradients.items()
    }
