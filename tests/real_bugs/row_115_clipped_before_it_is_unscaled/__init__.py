"""The loss is scaled up for half precision, and gradients are clipped before they are scaled down again."""

import torch
from right_code import TinyTransformerLM
from torch.nn import functional

__all__ = ["TinyTransformerLM", "train_step"]

SCALE = 1024.0


def train_step(model, optimizer, x, y, max_norm=None):
    optimizer.zero_grad()
    loss = functional.cross_entropy(model(x).flatten(0, 1), y.flatten())
    (loss * SCALE).backward()
    if max_norm is not None:
        torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    for parameter in model.parameters():
        parameter.grad /= SCALE
    optimizer.step()
    return loss.item()
