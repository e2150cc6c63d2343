"""The switches that make training faster or smaller: fused kernels, lower precision, compilation, recomputation.

They compute what the written-out path computes, except for rounding. Under lower precision weights, gradients and
the optimizer's state stay in float32; matrix products run in the short type (Micikevicius et al. 2018). float16 has a
small range: the loss is scaled up before the backward pass, and gradients down after it.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from conformkit.reference.chunked_attention import place_chunks
from conformkit.reference.loss import cross_entropy
from conformkit.reference.model import TinyTransformerLM
from conformkit.reference.optimization import AdamW, decay_groups
from conformkit.reference.optimizers import Adafactor, Lamb, Lion
from conformkit.reference.recomputation import recompute_blocks
from conformkit.reference.training.config import Speed, TrainingConfig, TrainingConfigError
from conformkit.reference.training.fused import FusedLM

__all__ = ["Fast", "LossScale", "check_device", "criterion_for", "optimizer_for"]

_TYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}


class Fast(nn.Module):
    """A model with the switches of a configuration turned on; it shares the parameters of the model that it is given.

    Only the language model has a fused form; another model, such as an encoder-decoder with its loss, runs as it is.

    Shapes: ids (B, T), or what else the model takes → logits (B, T, V), float32
    """

    def __init__(self, model: nn.Module, speed: Speed) -> None:
        super().__init__()
        if speed.chunk:
            place_chunks(model, speed.chunk)
        self.inner: nn.Module = model
        if speed.fused and isinstance(model, TinyTransformerLM):
            self.inner = FusedLM(model).to(speed.device)
        if speed.recompute:
            recompute_blocks(self.inner)
        self.kind, self.dtype = torch.device(speed.device).type, _TYPES[speed.precision]
        if speed.compile != "none":
            _check_compiler(speed.compile, self.kind)
            self.inner.compile(backend=speed.compile)

    def forward(self, ids: Any) -> Tensor:
        """Map ids (B, T) to logits (B, T, V)."""
        lower = self.dtype != torch.float32
        with torch.autocast(self.kind, self.dtype) if lower else nullcontext():
            logits: Tensor = self.inner(ids)
        return logits.float() if lower else logits


class LossScale:
    """What the loss is multiplied by before the backward pass: 1, or for float16 a number adapted to the gradients."""

    def __init__(self, speed: Speed) -> None:
        device = torch.device(speed.device).type
        self.scaler = torch.amp.GradScaler(device, enabled=speed.precision == "float16")
        self.device = device

    @property
    def factor(self) -> Tensor | float:
        """The number to multiply by."""
        if not self.scaler.is_enabled():
            return 1.0
        return self.scaler.scale(torch.ones((), device=self.device))

    def unscale(self, optimizer: AdamW | torch.optim.Optimizer) -> None:
        """Divide the gradients by it again, before they are clipped."""
        self.scaler.unscale_(optimizer)  # type: ignore[arg-type]

    def step(self, optimizer: AdamW | torch.optim.Optimizer) -> None:
        """Update, unless gradients overflowed; then only lower the scale."""
        self.scaler.step(optimizer)  # type: ignore[arg-type]
        self.scaler.update()


def criterion_for(speed: Speed, smoothing: float = 0.0) -> Callable[[Tensor, Tensor], Tensor]:
    """Return the loss, with label smoothing: written out, or PyTorch's."""
    return partial(_fused_cross_entropy if speed.fused else cross_entropy, label_smoothing=smoothing)


def optimizer_for(model: nn.Module, config: TrainingConfig) -> AdamW | torch.optim.Optimizer:
    """Return the optimizer over decayed matrices and undecayed vectors: written out, or PyTorch's AdamW."""
    rate = config.optimizer
    groups = [group for group in decay_groups(model, rate.weight_decay) if group["params"]]
    betas = (rate.beta1, rate.beta2)
    if config.speed.fused_optimizer:
        return torch.optim.AdamW(groups, fused=True, lr=rate.peak, betas=betas, eps=rate.eps)
    if rate.kind == "lion":
        return Lion(groups, rate.peak, betas)
    if rate.kind == "adafactor":
        return Adafactor(groups, rate.peak)
    return (Lamb if rate.kind == "lamb" else AdamW)(groups, rate.peak, betas, rate.eps)


def check_device(device: str) -> None:
    """Refuse a device that is not available. Raises ConfigError."""
    try:
        torch.zeros(1, device=device)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        reason = str(error).splitlines()[0][:200]
        raise TrainingConfigError(
            "speed.device", repr(device), f"a device that is here, such as cpu ({reason})"
        ) from error


def _fused_cross_entropy(logits: Tensor, targets: Tensor, label_smoothing: float) -> Tensor:
    return F.cross_entropy(logits.flatten(0, -2), targets.flatten(), label_smoothing=label_smoothing)


def _check_compiler(backend: str, device: str) -> None:
    compilers = ("c++", "g++", "clang++") if device == "cpu" else ("cc", "gcc", "clang")
    if backend == "inductor" and not any(shutil.which(name) for name in compilers):
        raise TrainingConfigError(
            "speed.compile", repr(backend), f"none or aot_eager: no compiler ({', '.join(compilers)}) is here"
        )
