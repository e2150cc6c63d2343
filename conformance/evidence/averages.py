"""The mean over many draws of dropout, compared with its expected value."""

from __future__ import annotations

import numpy as np

from conformkit.conformance.assertions.checks import NotApplicable, check
from conformkit.conformance.binding.sizes import nearest_allowed
from conformkit.conformance.subject.component import Instance
from conformkit.spec.arrays import Array

__all__ = ["check_mean_over_dropout"]

DRAWS = 2000
CALLS = 8
"""Even a mask drawn once per call, not per element, must be right on average."""
SIGMAS = 7.0
"""Standard errors allowed: under a normal distribution, a right mean is further off once in 4e11 entries."""


def check_mean_over_dropout(instance: Instance, x: Array) -> None:
    """Check that the mean output in training mode, over `draws` copies of x (1, T, D), equals that in eval mode."""
    draws = nearest_allowed("batch", DRAWS, instance.subject.bound.limits)
    if draws < DRAWS:
        raise NotApplicable(f"its batches are limited to {draws}")
    copies = np.repeat(x, draws // CALLS, axis=0)
    outputs = np.concatenate([instance(copies, mode="train", seed=seed) for seed in range(CALLS)]).astype(np.float64)
    want = instance(x).astype(np.float64)[0]
    scale = float(np.abs(want).max(initial=0.0))
    allowed = SIGMAS * outputs.std(axis=0) / np.sqrt(draws) + instance.subject.tolerance() * scale
    error = np.abs(outputs.mean(axis=0) - want)
    at = tuple(int(i) for i in np.unravel_index(int(np.argmax(error / np.maximum(allowed, 1e-300))), error.shape))
    check(
        f"the mean of output{list(at)} over {draws} draws of dropout is {outputs.mean(axis=0)[at]:.4g}, "
        f"want {want[at]:.4g} as in eval mode, give or take {allowed[at]:.2g}",
        bool((error <= allowed).all()),
        f"{int((error > allowed).sum())} of {error.size} entries are further off",
    )
