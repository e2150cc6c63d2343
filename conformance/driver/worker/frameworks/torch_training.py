"""PyTorch: arrays that hold gradients, and the steps of AdamW."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from conformkit.conformance.driver.wire.arrays import Array

__all__ = ["AdamSteps", "Descent", "Holder"]

_BETAS = (0.9, 0.99)
_EPS = 1e-8
IGNORED = -100


class Holder(nn.Module):
    """A module with the given parameters and nothing else."""

    def __init__(self, arrays: Mapping[str, Array]) -> None:
        super().__init__()
        for name, array in arrays.items():
            self.register_parameter(name, nn.Parameter(torch.from_numpy(array)))


class Descent(torch.optim.Optimizer):
    """Gradient descent and nothing else: θ ← θ - rate · gradient.

    A subclass of torch's Optimizer, for code that checks. Constructing it as one would import torch's compiler.
    `names` are the method names that an implementation uses for its own optimizers.
    """

    def __init__(self, params: Iterable[Tensor], lr: float, names: Mapping[str, str] | None = None) -> None:
        for method, name in (names or {}).items():
            vars(self).setdefault(name, getattr(self, method))
        self.defaults = {"lr": lr}
        self.param_groups = [{"params": list(params), "lr": lr}]
        self.state = defaultdict(dict)

    def step(self, closure: Any = None) -> Any:
        """Update every parameter that has a gradient."""
        loss = closure() if closure is not None else None
        with torch.no_grad():
            for group in self.param_groups:
                for parameter in group["params"]:
                    if parameter.grad is not None:
                        parameter.sub_(parameter.grad, alpha=group["lr"])
        return loss

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Clear the gradients."""
        for group in self.param_groups:
            for parameter in group["params"]:
                if set_to_none or parameter.grad is None:
                    parameter.grad = None
                else:
                    parameter.grad.zero_()


class AdamSteps:
    """Steps of AdamW without decay (Loshchilov and Hutter 2019), gradients clipped by global norm.

    Each operation is carried out on all parameters in one call: a small model has many small ones.
    """

    def __init__(self, parameters: Sequence[Tensor]) -> None:
        self._parameters = list(parameters)
        self._means = [torch.zeros_like(p) for p in self._parameters]
        self._squares = [torch.zeros_like(p) for p in self._parameters]
        self._count = 0

    def step(self, logits: Any, targets: Array, rate: float, max_norm: float) -> float:
        """Descend from the mean cross-entropy of logits (…, V) on targets (…); return it."""
        wanted = torch.from_numpy(targets).reshape(-1).to(logits.device)  # (N,)
        loss = F.cross_entropy(logits.reshape(-1, logits.shape[-1]).float(), wanted, ignore_index=IGNORED)
        for parameter in self._parameters:
            parameter.grad = None
        loss.backward()  # type: ignore[no-untyped-call]
        with torch.no_grad():
            self._update(rate, max_norm)
        return float(loss.detach())

    def _update(self, rate: float, max_norm: float) -> None:
        gradients = [torch.zeros_like(p) if p.grad is None else p.grad for p in self._parameters]
        norm = float(torch.stack(torch._foreach_norm(gradients)).norm())  # noqa: SLF001 - no public name
        if norm > max_norm:
            torch._foreach_mul_(gradients, max_norm / norm)
        self._count += 1
        first, second = (1.0 - beta**self._count for beta in _BETAS)
        torch._foreach_lerp_(self._means, gradients, 1.0 - _BETAS[0])
        torch._foreach_mul_(self._squares, _BETAS[1])
        torch._foreach_addcmul_(self._squares, gradients, gradients, value=1.0 - _BETAS[1])
        roots = torch._foreach_div(self._squares, second)  # noqa: SLF001 - no public name
        torch._foreach_sqrt_(roots)
        torch._foreach_add_(roots, _EPS)
        torch._foreach_addcdiv_(self._parameters, self._means, roots, value=-rate / first)
