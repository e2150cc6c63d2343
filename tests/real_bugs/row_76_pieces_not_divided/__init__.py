"""Training that adds the gradients of pieces, and divides only the loss that it returns."""

from right_code import TinyTransformerLM
from torch.nn import functional

__all__ = ["TinyTransformerLM", "train_step"]


def train_step(model, optimizer, x, y, max_norm=None):
    optimizer.zero_grad()
    pieces, total = list(zip(x.split(2), y.split(2))), 0.0
    for ids, targets in pieces:
        loss = functional.cross_entropy(model(ids).flatten(0, 1), targets.flatten())
        loss.backward()
        total += loss.item() * targets.numel() / y.numel()
    optimizer.step()
    return total
