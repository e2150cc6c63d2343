"""Three other optimizers, written as AdamW is: what each keeps of a parameter, and how far that moves it.

    Lion        c = β₁ m + (1 - β₁) g        θ ← θ - η λ θ - η sign(c)        m ← β₂ m + (1 - β₂) g
    LAMB        r = m̂ / (√v̂ + ε) + λ θ        θ ← θ - η (‖θ‖ / ‖r‖) r        m̂ and v̂ as in AdamW
    Adafactor   R ← β R + (1 - β) mean_j (g² + ε₁)        C ← β C + (1 - β) mean_i (g² + ε₁)        β = 1 - t^-0.8
                u = g / √(R Cᵀ / mean R)        θ ← θ - η λ θ - max(ε₂, rms θ) · min(η, t^-½) · u / max(1, rms u)

g the gradient of a parameter θ, t = 1, 2, … the number of its update, η the rate, λ the weight decay. Lion keeps one
number a weight where AdamW keeps two; Adafactor a row and a column in place of a matrix, and a vector's squares whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import torch
from torch import Tensor

from conformkit.reference.optimization import AdamW, Group

__all__ = ["Adafactor", "Lamb", "Lion"]

Parameters = Iterable[Tensor] | Iterable[Mapping[str, Any]]
LEAST_SQUARE = 1e-30
"""ε₁: no estimate of a square is below it."""
LEAST_SCALE = 1e-3
"""ε₂: a parameter that is all 0 moves as if its weights were this large."""
FORGETTING = 0.8
"""How fast β nears 1: 1 - t^-0.8."""


class Lion(AdamW):
    """Move each weight by the rate, up or down as its smoothed gradient says; its size plays no part.

    A good rate is three to ten times smaller than AdamW's, and a good decay as much larger.

    Raises: as AdamW.
    Source: Chen et al. 2023, alg. 2. Differs: none.
    """

    def __init__(
        self, params: Parameters, lr: float = 1e-4, betas: tuple[float, float] = (0.9, 0.99), weight_decay: float = 0.0
    ) -> None:
        super().__init__(params, lr, betas, 0.0, weight_decay)

    def _update(self, parameter: Tensor, gradient: Tensor, group: Group) -> None:
        rate, (beta1, beta2) = group["lr"], group["betas"]
        state = self.state.setdefault(parameter, {"step": 0, "m": torch.zeros_like(parameter)})
        state["step"] += 1
        direction = (beta1 * state["m"] + (1 - beta1) * gradient).sign_()
        parameter.mul_(1 - rate * group["weight_decay"]).add_(direction, alpha=-rate)
        state["m"].mul_(beta2).add_(gradient, alpha=1 - beta2)

    def _restored(self, parameter: Tensor, entries: Mapping[str, Any]) -> dict[str, Any]:
        return _copied(parameter, entries)


class Lamb(AdamW):
    """Move each parameter as AdamW does, but by a share of its own norm: the rate is that share.

    Layers with small weights move little, so that batches can be large and the rate with them.

    Raises: as AdamW.
    Source: You et al. 2020, alg. 2. Differs: none; φ is the identity, and a norm of 0 leaves the rate as it is.
    """

    def _update(self, parameter: Tensor, gradient: Tensor, group: Group) -> None:
        rate, (beta1, beta2) = group["lr"], group["betas"]
        zeros = {"m": torch.zeros_like(parameter), "v": torch.zeros_like(parameter)}
        state = self.state.setdefault(parameter, {"step": 0, **zeros})
        state["step"] += 1
        step, m, v = state["step"], state["m"], state["v"]
        m.mul_(beta1).add_(gradient, alpha=1 - beta1)
        v.mul_(beta2).addcmul_(gradient, gradient, value=1 - beta2)
        size = (v / (1 - beta2**step)).sqrt_().add_(group["eps"])  # √v̂ + ε
        move = m / (1 - beta1**step) / size + group["weight_decay"] * parameter  # r
        own, whole = torch.linalg.vector_norm(parameter), torch.linalg.vector_norm(move)  # ‖θ‖, ‖r‖
        parameter.sub_(rate * torch.where((own > 0) & (whole > 0), own / whole, 1.0) * move)


class Adafactor(AdamW):
    """Move each weight by its gradient over the gradient's usual size, of which only rows and columns are kept.

    The rate is a share of the parameter's own size, and at most t^-½; there is no momentum.

    Shapes: for a matrix (…, n, m) rows (…, n, 1) and columns (…, 1, m) are kept, for a vector (n,) its squares (n,)
    Raises: as AdamW.
    Source: Shazeer & Stern 2018, alg. 4 to 6. Differs: weight decay, decoupled as in AdamW; the paper has none.
    """

    def __init__(self, params: Parameters, lr: float = 1e-2, weight_decay: float = 0.0) -> None:
        super().__init__(params, lr, (0.0, 0.0), 0.0, weight_decay)

    def _update(self, parameter: Tensor, gradient: Tensor, group: Group) -> None:
        rate, square = group["lr"], gradient.square() + LEAST_SQUARE
        means = {"squares": square} if square.ndim < 2 else {
            "rows": square.mean(dim=-1, keepdim=True), "columns": square.mean(dim=-2, keepdim=True)
        }  # fmt: skip
        zeros = {name: torch.zeros_like(mean) for name, mean in means.items()}
        state = self.state.setdefault(parameter, {"step": 0, **zeros})
        state["step"] += 1
        step = state["step"]
        for name, mean in means.items():
            state[name].lerp_(mean, step**-FORGETTING)  # (1 - β) of what is new
        move = gradient * _estimate(state).rsqrt()
        share = max(LEAST_SCALE, _rms(parameter)) * min(rate, step**-0.5)
        parameter.mul_(1 - rate * group["weight_decay"]).add_(move, alpha=-share / max(1.0, _rms(move)))

    def _restored(self, parameter: Tensor, entries: Mapping[str, Any]) -> dict[str, Any]:
        return _copied(parameter, entries)


def _copied(parameter: Tensor, entries: Mapping[str, Any]) -> dict[str, Any]:
    """Copy what was kept of a parameter, whatever that is, to its own type and device."""
    kept = {name: value.to(parameter, copy=True) for name, value in entries.items() if isinstance(value, Tensor)}
    return {"step": int(entries["step"]), **kept}


def _estimate(state: Mapping[str, Any]) -> Tensor:
    """Return what the squares of a gradient usually are: kept whole, or rows times columns over the mean of rows."""
    if "squares" in state:
        return torch.as_tensor(state["squares"])
    rows, columns = torch.as_tensor(state["rows"]), torch.as_tensor(state["columns"])
    return rows * columns / rows.mean(dim=-2, keepdim=True)


def _rms(x: Tensor) -> float:
    return float(x.square().mean().sqrt())
