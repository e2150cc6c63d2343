"""Steps of an optimizer, clipping, checkpoints: Protocols and oracle."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, SupportsFloat, runtime_checkable

import numpy as np

from conformkit.spec.arrays import Array
from conformkit.spec.protocols import ArrayT, ArrayT_contra, Named

__all__ = [
    "ADAM_FORMS", "AdamForm", "AdamW", "AdamWConstructor", "ClipGradNorm", "LoadCheckpoint", "SaveCheckpoint",
    "TrainStep", "adamw", "clipped", "global_norm",
]  # fmt: skip


@runtime_checkable
class ClipGradNorm(Named, Protocol[ArrayT]):
    """Multiply all gradients by min(1, max_norm / norm), in place; what is returned should be their norm before.

    Source: Pascanu et al. 2013, §3.2.
    """

    def __call__(self, parameters: list[ArrayT], max_norm: float) -> SupportsFloat | None: ...


@runtime_checkable
class AdamW(Protocol):
    """Adam with corrected averages and decoupled weight decay. Source: Loshchilov and Hutter 2019."""

    def step(self) -> object:
        """Update every parameter that has a gradient."""

    def zero_grad(self) -> object:
        """Clear all gradients."""


@runtime_checkable
class AdamWConstructor(Protocol[ArrayT_contra]):
    """The class AdamW, or a function that builds one. `params` may be a generator."""

    def __call__(
        self, params: Iterator[ArrayT_contra], lr: float = 1e-3, betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8, weight_decay: float = 0.01,
    ) -> AdamW: ...  # fmt: skip


@runtime_checkable
class TrainStep(Named, Protocol[ArrayT_contra]):
    """Zero the gradients, forward in training mode, loss, backward, clip if requested, step; return the loss before.

    Shapes: x, y (B, T) → a number, in nats per token
    Source: PyTorch, `torch.optim.Optimizer`.
    """

    def __call__(
        self, model: Any, optimizer: Any, x: ArrayT_contra, y: ArrayT_contra, max_norm: float | None = None
    ) -> SupportsFloat: ...


@runtime_checkable
class SaveCheckpoint(Named, Protocol):
    """Write weights, the optimizer's state and the step to a file. Source: PyTorch, `torch.save`."""

    def __call__(self, path: str, model: Any, optimizer: Any, step: int) -> object: ...


@runtime_checkable
class LoadCheckpoint(Named, Protocol):
    """Restore a model and an optimizer from such a file, and return the step."""

    def __call__(self, path: str, model: Any, optimizer: Any) -> int: ...


def global_norm(gradients: Mapping[str, Array]) -> float:
    """Return the root of the sum of all squares."""
    return math.sqrt(sum(float((g**2).sum()) for g in gradients.values()))


def clipped(gradients: Mapping[str, Array], max_norm: float) -> dict[str, Array]:
    """Return the gradients times one common factor, so that their norm is at most max_norm."""
    factor = min(1.0, max_norm / max(global_norm(gradients), 1e-30))
    return {name: factor * g for name, g in gradients.items()}


@dataclass(frozen=True, slots=True)
class AdamForm:
    """In which order the definition is computed; every order is right, and small gradients and decays tell them apart.

    Source: Kingma and Ba 2015, alg. 1, and the more efficient order at the end of its section 2, to which ε is added
    before the root is corrected; Loshchilov and Hutter 2019, alg. 2.
    """

    corrects_eps_apart: bool = True
    """m̂ / (√v̂ + ε), and not η √(1 - β₂ᵗ) / (1 - β₁ᵗ) · m / (√v + ε)."""
    decays_first: bool = True
    """Decay is taken off the weights before the step, and not after it."""


ADAM_FORMS = tuple(AdamForm(*order) for order in itertools.product((True, False), repeat=2))
"""The usual one first."""


def adamw(
    weights: Array, gradients: Sequence[Array | None], *, lr: float = 1e-3, betas: tuple[float, float] = (0.9, 0.999),
    eps: float = 1e-8, weight_decay: float = 0.01, form: AdamForm | None = None,
) -> Array:  # fmt: skip
    """Return one array of weights after these gradients in turn; a missing gradient changes and counts nothing."""
    form, theta = form or AdamForm(), np.asarray(weights, np.float64)
    mean, square, count = np.zeros_like(theta), np.zeros_like(theta), 0
    for gradient in gradients:
        if gradient is None:
            continue
        count += 1
        mean = betas[0] * mean + (1.0 - betas[0]) * gradient
        square = betas[1] * square + (1.0 - betas[1]) * gradient**2
        first, second = 1.0 - betas[0] ** count, 1.0 - betas[1] ** count
        root = math.sqrt(second)
        beside = np.sqrt(square) / root + (eps if form.corrects_eps_apart else eps / root)
        step = lr * (mean / first) / beside
        theta = theta - step - lr * weight_decay * (theta if form.decays_first else theta - step)
    return theta
