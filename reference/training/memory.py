"""How much memory an update takes, before the first one is made.

    bytes a parameter (weight, gradient, moments) + what the backward pass of a batch needs of its forward pass

The second part is measured, not derived: one row goes through the model, and what autograd keeps of it is counted and
multiplied by the rows of a batch; of parts that are computed again, the largest is added. So every variant, kernel and
precision is counted as it is; without fused attention its largest part is 4·H·T² bytes a layer and row for scores and
weights each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from conformkit.reference.recomputation import regions_seen_by
from conformkit.reference.training.run import Run
from conformkit.reference.training.speed import Fast

__all__ = ["memory_estimate", "shown"]

BYTES_A_PARAMETER = {"adamw": 16, "lamb": 16, "lion": 12, "adafactor": 8}
"""Weight and gradient, and two moments, one, or rows and columns, which are few beside a matrix."""
LOGITS = 2
"""Copies of the logits that the backward pass adds: their gradient, and that of the softmax."""


def memory_estimate(run: Run) -> int:
    """Return the bytes that weights, optimizer and one update take at most, without what the process needs itself.

    The random state stays as it is, and no gradient is kept.
    """
    parameters = list(run.model.parameters())
    own = {parameter.untyped_storage().data_ptr() for parameter in parameters}
    fixed = BYTES_A_PARAMETER[run.config.optimizer.kind] * sum(parameter.numel() for parameter in parameters)
    devices = [run.device] if run.device.type == "cuda" else []
    with torch.random.fork_rng(devices):
        given, wanted = run.draw()
        kept, again, logits = _kept(run, _first(given), wanted[:1], own)
    return fixed + len(wanted) * (kept + again + LOGITS * logits)


def shown(size: int) -> str:
    """Return a number of bytes as people read it: 480 MiB, 1.2 GiB."""
    if size < 2**30:
        return f"{max(size / 2**20, 1):.0f} MiB"
    return f"{size / 2**30:.1f} GiB"


def _kept(run: Run, given: Any, wanted: Tensor, own: set[int]) -> tuple[int, int, int]:
    """Return the bytes that autograd keeps of one row, those of the largest part that it computes again, and logits."""
    plain = Fast(run.bare, replace(run.config.speed, compile="none"))  # what is compiled would be compiled twice
    plain.train()
    parts = [0]

    def observed(region: Callable[..., Any]) -> Callable[..., Any]:
        def seen(*arguments: Any, **options: Any) -> Any:
            with _counting(own) as sizes:
                out = region(*arguments, **options)
            parts.append(sum(sizes.values()))
            return out

        return seen

    with _counting(own) as sizes:
        logits: Any = plain(given)
        loss = run.criterion(logits, wanted)
    with regions_seen_by(observed):
        plain(given)
    del loss
    outputs = logits if isinstance(logits, tuple) else (logits,)
    return sum(sizes.values()), max(parts), 4 * sum(output.numel() for output in outputs)


@contextmanager
def _counting(own: set[int]) -> Iterator[dict[int, int]]:
    """Count the bytes of what autograd keeps, by where it lies, without the parameters themselves."""
    seen: dict[int, int] = {}

    def pack(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in own:
            seen[storage.data_ptr()] = storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        yield seen


def _first(given: Any) -> Any:
    """Return the first row of what a model is called with."""
    return tuple(part[:1] for part in given) if isinstance(given, tuple) else given[:1]
