"""Whether a mistake is visible to a task: in the behavior of a submission that is used as the task says.

Two submissions, of the reference and of a copy with the mistake, get the same weights and the same inputs of many
shapes, ordinary and large numbers, in training and in evaluation. The mistake is visible if one raises, or if outputs,
gradients or the inputs afterwards differ by more than rounding, or if the mistaken one is not deterministic.
Neither judge influences this.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType
from typing import Any

import torch
from tasks import Call, Task
from torch import Tensor, nn

__all__ = ["shows"]

TOLERANCE = 1e-5
"""Relative to the largest entry; computed in float64."""


def shows(task: Task, right: ModuleType, mistaken: ModuleType) -> bool:
    """Whether some use that the task allows distinguishes the two."""
    torch.manual_seed(0)
    ours = task.submission(right)
    try:
        theirs = task.submission(mistaken)
        return any(_differ(ours, theirs, call, number) for number, call in enumerate(task.calls()))
    except Exception:  # noqa: BLE001 - any exception that only the mistake raises makes it visible
        return True


def _differ(ours: Any, theirs: Any, call: Call, number: int) -> bool:
    mode = number % 2 == 0
    wanted = _used(_made(ours, call, mode), call)
    first, again = _used(_made(theirs, call, mode), call), _used(_made(theirs, call, mode), call)
    return not (_same(first, wanted) and _same(again, first))


def _made(submission: Any, call: Call, training: bool) -> Any:
    """Return the callable: the function itself, or an instance whose weights depend only on the call's sizes."""
    if not isinstance(submission, type):
        return submission
    module: nn.Module = submission(**call.sizes).to(torch.float64).train(training)
    noise = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for _, parameter in sorted(module.named_parameters()):
            parameter.copy_(torch.randn(parameter.shape, generator=noise, dtype=torch.float64))
    return module


def _used(made: Any, call: Call) -> list[tuple[str, Tensor]]:
    """Return all results of a use, by name."""
    copies: dict[int, Tensor] = {id(x): x.clone().requires_grad_() for x in call.inputs}
    given = [copies[id(x)] for x in call.inputs]  # one tensor passed three times stays one
    parameters = dict(made.named_parameters()) if isinstance(made, nn.Module) else {}
    output = made(*given)
    weights = torch.randn(output.shape, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    leaves = [*copies.values(), *parameters.values()]
    gradients = torch.autograd.grad((output * weights).sum(), leaves, allow_unused=True)
    names = [*(f"input {number}" for number in range(len(copies))), *parameters]
    found = [("output", output), *((f"{name} afterwards", x) for name, x in zip(names, leaves, strict=True))]
    for name, leaf, gradient in zip(names, leaves, gradients, strict=True):
        found.append((f"gradient of {name}", torch.zeros_like(leaf) if gradient is None else gradient))
    return [(name, x.detach()) for name, x in found]


def _same(some: Sequence[tuple[str, Tensor]], others: Sequence[tuple[str, Tensor]]) -> bool:
    if [name for name, _ in some] != [name for name, _ in others]:
        return False
    return all(_close(x, y) for (_, x), (_, y) in zip(some, others, strict=True))


def _close(x: Tensor, y: Tensor) -> bool:
    if x.shape != y.shape or x.dtype != y.dtype:
        return False
    allowed = TOLERANCE * max(1.0, float(y.abs().nan_to_num().max())) if y.numel() else 0.0
    return torch.allclose(x, y, rtol=0.0, atol=allowed, equal_nan=True)
