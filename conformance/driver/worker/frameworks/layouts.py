"""Modules whose parameters have other names or places in training: fused in evaluation, say."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from torch import nn

__all__ = ["in_evaluation"]


@contextmanager
def in_evaluation(component: Any) -> Iterator[None]:
    """Put what trains, and does more than that when its mode changes, into evaluation mode for a while.

    There its parameters were bound to their meanings. All other components stay as they are.
    """
    changes = isinstance(component, nn.Module) and component.training and _has_own_train(component)
    if changes:
        component.eval()
    try:
        yield
    finally:
        if changes:
            component.train()


def _has_own_train(module: nn.Module) -> bool:
    return any(type(part).train is not nn.Module.train for part in module.modules())
