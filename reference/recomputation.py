"""Gradient checkpointing: keep what enters a part of the computation, and compute the part again for its gradients.

    memory: inputs of all parts + one part whole, in place of all parts whole        time: one forward pass more

Chen et al. 2016, §4. The random state is kept with the inputs, so that dropout drops the same
entries both times: gradients are those of the plain computation to the last bit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from typing import Any

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

__all__ = ["recompute_blocks", "recomputed", "regions_seen_by"]

Region = Callable[..., Any]
_observer: ContextVar[Callable[[Region], Region] | None] = ContextVar("_observer", default=None)


def recomputed(region: Region, *given: Any, **options: Any) -> Any:
    """Return what a function returns for these arguments, and forget how it came about until the backward pass."""
    if not torch.is_grad_enabled():
        return region(*given, **options)
    observer = _observer.get()
    if observer is None:
        return checkpoint(region, *given, use_reentrant=False, **options)
    token = _observer.set(None)  # what is recomputed inside is not seen
    try:
        return observer(region)(*given, **options)
    finally:
        _observer.reset(token)


def recompute_blocks(model: nn.Module) -> None:
    """Compute each block of the model's stacks again in the backward pass; a second call changes nothing."""
    blocks = [block for stack in model.modules() if isinstance(stack, nn.ModuleList) for block in stack]
    for block in blocks:
        if "forward" not in vars(block):
            setattr(block, "forward", partial(recomputed, block.forward))  # noqa: B010 - of this block, not its class


@contextmanager
def regions_seen_by(observer: Callable[[Region], Region]) -> Iterator[None]:
    """Compute each region once, as what `observer` makes of it: so one can measure what a region keeps."""
    token = _observer.set(observer)
    try:
        yield
    finally:
        _observer.reset(token)
