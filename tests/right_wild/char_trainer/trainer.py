import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F

from .data import get_batch


@dataclass
class TrainerConfig:
    steps: int = 1000
    batch_size: int = 32
    peak: float = 3e-4
    floor: float = 3e-5
    warmup: int = 100
    max_norm: float = 1.0
    weight_decay: float = 0.1


def cosine_schedule(step, peak, floor, warmup, total):
    """Linear from 0 to the peak, half a cosine down to the floor, then constant."""
    if step < warmup:
        return peak * step / warmup
    if step >= total:
        return floor
    return floor + (peak - floor) * (0.5 + 0.5 * math.cos(math.pi * (step - warmup) / (total - warmup)))


def perplexity(loss):
    return math.exp(loss)


def bits_per_character(loss, tokens_per_character=1.0):
    return loss / math.log(2) * tokens_per_character


def train_step(model, optimizer, x, y, max_norm=None):
    model.train()
    loss = F.cross_entropy(model(x).flatten(0, 1), y.flatten())
    optimizer.zero_grad()
    loss.backward()
    if max_norm is not None:
        torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm)
    optimizer.step()
    return loss.item()


@torch.no_grad()
def evaluate(model, batches):
    modes = {m: m.training for m in model.modules()}
    model.eval()
    total = tokens = 0
    for x, y in batches:
        total += F.cross_entropy(model(x).flatten(0, 1), y.flatten(), reduction="sum").item()
        tokens += (y != -100).sum().item()
    for m, mode in modes.items():
        m.training = mode
    return total / tokens


class Trainer:
    def __init__(self, model, train_ids, val_ids, config=None):
        self.model, self.train_ids, self.val_ids = model, train_ids, val_ids
        self.config = config or TrainerConfig()
        self.optimizer = torch.optim.AdamW(
            model.parameters(), lr=self.config.peak, weight_decay=self.config.weight_decay
        )
        self.history = []

    def run(self):
        c = self.config
        for step in range(1, c.steps + 1):
            for group in self.optimizer.param_groups:
                group["lr"] = cosine_schedule(step, c.peak, c.floor, c.warmup, c.steps)
            x, y = get_batch(self.train_ids, c.batch_size, self.model.block_size)
            self.history.append(train_step(self.model, self.optimizer, x, y, c.max_norm))
        return self.history
