"""Layers that are left out at random while learning, so that none relies on all others; in evaluation all are there.

    pre:   y = x + b · (layer(x) - x) / (1 - p_l)        post:   y = b · layer(x) + (1 - b) · x
    b ∈ {0, 1} for each row of the batch, 0 with probability p_l = p · l / L, of layer l of a stack of L

Huang et al. 2016, §3 (the rate that grows with depth); Fan et al. 2020, §3 (whole transformer layers). Differs: what is
kept is scaled while learning, as dropout does, not in evaluation; behind a post-norm, which undoes a scale, it is not.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from conformkit.reference.block import TransformerBlock
from conformkit.reference.seq2seq.decoder import DecoderLayer
from conformkit.reference.seq2seq.encoder import EncoderLayer
from conformkit.reference.sizes import check_rate

__all__ = ["place_stochastic_depth"]


def place_stochastic_depth(model: nn.Module, rate: float) -> None:
    """Leave the last layer of each stack out with probability `rate`, earlier ones less often; 0 changes nothing.

    Raises: SizeError for a rate that is no probability.
    """
    check_rate(rate)
    if rate == 0:
        return
    stacks = [stack for stack in model.modules() if isinstance(stack, nn.ModuleList)]
    for stack in stacks:
        layers = [one for one in stack if isinstance(one, TransformerBlock | EncoderLayer | DecoderLayer)]
        for number, layer in enumerate(layers, 1):
            layer.register_forward_hook(partial(_left_out, rate=rate * number / len(layers)))


def _left_out(layer: nn.Module, given: tuple[Any, ...], y: Tensor, *, rate: float) -> Tensor:
    """Return what a layer gives, or in some rows what it was given. Shapes: x, y (B, T, D) → (B, T, D)."""
    if not layer.training:
        return y
    x = given[0]
    kept = torch.rand(len(x), 1, 1, device=x.device) >= rate  # (B, 1, 1)
    if layer.pre and rate < 1:
        y = x + (y - x) / (1 - rate)
    return torch.where(kept, y, x)
