"""AdamW, and the two things done to gradients and weights around it.

    m ← β₁ m + (1 - β₁) g        v ← β₂ v + (1 - β₂) g²        m̂ = m / (1 - β₁ᵗ)        v̂ = v / (1 - β₂ᵗ)
    θ ← θ - η λ θ - η m̂ / (√v̂ + ε)

g the gradient of a parameter θ, t = 1, 2, … the number of the update, η the rate, λ the weight decay, which is no part
of g (Loshchilov & Hutter 2019, alg. 2). ε stands outside the root (Kingma & Ba 2015, alg. 1).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from conformkit.reference.errors import SizeError

__all__ = ["AdamW", "clip_grad_norm", "decay_groups"]

Group = dict[str, Any]
"""Parameters that share options: `params`, `lr`, `betas`, `eps`, `weight_decay`."""


class AdamW:
    """Move each parameter along its smoothed gradient, scaled by the gradient's usual size; shrink it separately.

    `params` are tensors, or groups `{"params": tensors, …}` with options of their own. A parameter without a gradient
    stays as it is, decay included, and its count t does not advance.

    Raises: SizeError for an option out of range, no parameters, or one that is given twice.
    Source: Loshchilov & Hutter 2019, alg. 2. Differs: none from `torch.optim.AdamW`.
    """

    def __init__(
        self,
        params: Iterable[Tensor] | Iterable[Mapping[str, Any]],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.01,
    ) -> None:
        options = {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay}
        self.param_groups = [{**options, **group} for group in _groups(params)]
        for group in self.param_groups:
            _check_options(group)
        self.state: dict[Tensor, dict[str, Any]] = {}
        """For each parameter that was updated: `step` t, and the moments `m` and `v`."""

    @torch.no_grad()
    def step(self) -> None:
        """Update every parameter that has a gradient."""
        for group in self.param_groups:
            for parameter in group["params"]:
                if parameter.grad is not None:
                    self._update(parameter, parameter.grad, group)

    def zero_grad(self) -> None:
        """Forget all gradients."""
        for group in self.param_groups:
            for parameter in group["params"]:
                parameter.grad = None

    def _update(self, parameter: Tensor, gradient: Tensor, group: Group) -> None:
        rate, (beta1, beta2) = group["lr"], group["betas"]
        state = self.state.setdefault(parameter, {"step": 0, "m": None, "v": None})
        if state["m"] is None:
            state["m"], state["v"] = torch.zeros_like(parameter), torch.zeros_like(parameter)
        state["step"] += 1
        step, m, v = state["step"], state["m"], state["v"]
        m.mul_(beta1).add_(gradient, alpha=1 - beta1)
        v.mul_(beta2).addcmul_(gradient, gradient, value=1 - beta2)
        size = (v / (1 - beta2**step)).sqrt_().add_(group["eps"])  # √v̂ + ε
        parameter.mul_(1 - rate * group["weight_decay"])
        parameter.addcdiv_(m, size, value=-rate / (1 - beta1**step))

    def state_dict(self) -> dict[str, Any]:
        """Return options and moments; parameters are numbered through all groups, in their order."""
        numbers = {parameter: number for number, parameter in enumerate(self._parameters())}
        groups = [{**group, "params": [numbers[p] for p in group["params"]]} for group in self.param_groups]
        return {"state": {numbers[p]: dict(state) for p, state in self.state.items()}, "param_groups": groups}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take over what `state_dict` gave for parameters of the same shapes in the same groups."""
        parameters = self._parameters()
        for group, saved in zip(self.param_groups, state["param_groups"], strict=True):
            group.update({name: value for name, value in saved.items() if name != "params"})
        kept = {parameters[int(number)]: entries for number, entries in state["state"].items()}
        self.state = {parameter: self._restored(parameter, entries) for parameter, entries in kept.items()}

    def _restored(self, parameter: Tensor, entries: Mapping[str, Any]) -> dict[str, Any]:
        return _like(parameter, entries)

    def _parameters(self) -> list[Tensor]:
        return [parameter for group in self.param_groups for parameter in group["params"]]


@torch.no_grad()
def clip_grad_norm(parameters: Tensor | Iterable[Tensor], max_norm: float) -> Tensor:
    """Scale all gradients by one factor, min(1, max_norm / ‖g‖), and return ‖g‖ as it was before.

    Shapes: → (), ‖g‖ = √(Σ g²) over all entries of all gradients
    Raises: SizeError for a norm that is not above 0.
    Source: Pascanu et al. 2013, alg. 1. Differs: parameters without a gradient count as 0.
    """
    if not max_norm > 0:
        raise SizeError("max_norm", max_norm, "above 0")
    chosen = [parameters] if isinstance(parameters, Tensor) else list(parameters)
    gradients = [parameter.grad for parameter in chosen if parameter.grad is not None]
    if not gradients:
        return torch.zeros(())
    norm: Tensor = torch.linalg.vector_norm(torch.stack([torch.linalg.vector_norm(g) for g in gradients]))  # ()
    factor = (max_norm / norm).clamp(max=1.0)  # (); infinite before clamping where all gradients are 0
    for gradient in gradients:
        gradient.mul_(factor)
    return norm


def decay_groups(model: nn.Module, weight_decay: float) -> list[Group]:
    """Decay matrices, embeddings among them; leave biases and the scales of norms, which are vectors, alone.

    Source: usual since GPT-2 and 3; a norm's scale that decays moves away from 1, where it does nothing.
    """
    parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
    return [
        {"params": [p for p in parameters if p.ndim >= 2], "weight_decay": weight_decay},
        {"params": [p for p in parameters if p.ndim < 2], "weight_decay": 0.0},
    ]


def _groups(params: Iterable[Tensor] | Iterable[Mapping[str, Any]]) -> list[Group]:
    given: list[Any] = list(params)
    groups = [dict(item) for item in given if isinstance(item, Mapping)] or [{"params": given}]
    for group in groups:
        group["params"] = list(group["params"])
    found: Sequence[Tensor] = [parameter for group in groups for parameter in group["params"]]
    if not found:
        raise SizeError("the number of parameters", 0, "at least 1")
    if len(set(found)) < len(found):
        raise SizeError("the number of times that a parameter is given", 2, "once")
    return groups


def _check_options(group: Group) -> None:
    for name in ("lr", "eps", "weight_decay"):
        if not group[name] >= 0:  # also true for NaN
            raise SizeError(name, group[name], "at least 0")
    for beta in group["betas"]:
        if not 0 <= beta < 1:
            raise SizeError("betas", group["betas"], "two numbers, each at least 0 and below 1")


def _like(parameter: Tensor, state: Mapping[str, Any]) -> dict[str, Any]:
    """Copy a parameter's state, moments to its own type and device."""
    moments = {name: state[name].to(parameter, copy=True) for name in ("m", "v")}
    return {"step": int(state["step"]), **moments}
