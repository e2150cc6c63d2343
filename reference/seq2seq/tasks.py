"""Copy and reverse: the smallest tasks that need all of an encoder-decoder.

    copy: y = [s_1 … s_n]        reverse: y = [s_n … s_1]        s_i uniform over the ids from 3, n over 4 … 8

Sources are new in every batch, so that nothing is learned by heart: an id is known from the memory alone, and its place
from positions. Rows differ in length, so that padding has to be hidden. The sizes here need 200 updates for
a copy and 300 for a reversal, a second or two on one core.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from conformkit.reference.generation import _evaluating
from conformkit.reference.schedules import cosine_schedule
from conformkit.reference.seq2seq.data import collate
from conformkit.reference.seq2seq.model import Transformer
from conformkit.reference.sizes import check_at_least
from conformkit.spec.variants import CANONICAL, Variant

__all__ = [
    "BOS", "COPY", "EOS", "PAD", "REVERSE", "Batch", "Task", "learn", "small_model", "token_accuracy",
    "written_accuracy",
]  # fmt: skip

PAD, BOS, EOS = 0, 1, 2
Batch = tuple[Tensor, Tensor, Tensor]
"""src (B, S), tgt_in (B, T), tgt_out (B, T)."""


@dataclass(frozen=True)
class Task:
    """What is to be written for a source: the same ids, in the same order or reversed."""

    name: str
    reverse: bool
    updates: int
    """Updates after which a right model is well above 95 %."""
    vocab_size: int = 13
    shortest: int = 4
    longest: int = 8

    def batch(self, size: int, generator: torch.Generator) -> Batch:
        """Draw `size` sources and their targets, padded."""
        pairs = []
        for length in torch.randint(self.shortest, self.longest + 1, (size,), generator=generator).tolist():
            source = torch.randint(EOS + 1, self.vocab_size, (length,), generator=generator)
            target = source.flip(0) if self.reverse else source
            pairs.append((source, target))
        return collate(pairs, PAD, BOS, EOS)


COPY, REVERSE = Task("copy", reverse=False, updates=200), Task("reverse", reverse=True, updates=300)


def small_model(task: Task, variant: Variant = CANONICAL) -> Transformer:
    """Return a new model that is large enough for a task: one layer on each side, 32 wide, two heads."""
    size = task.vocab_size
    return Transformer(size, size, 32, 2, 1, 1, 64, task.longest + 1, pad_id=PAD, variant=variant)


def learn(
    model: Transformer,
    task: Task,
    steps: int,
    batch_size: int = 32,
    rate: float = 1e-2,
    warmup: int = 50,
    seed: int = 0,
) -> list[float]:
    """Teach a model a task by teacher forcing, and return the loss before each update.

    Units:  nats a token, averaged over the targets that are no padding.
    Raises: SizeError for a size below 1.
    Source: Vaswani et al. 2017, §5: shift right, forward, cross-entropy without padding, backward, Adam with a warm-up.
            Differs: the rate falls along half a cosine after that, so that the last updates settle.
    """
    check_at_least(0, steps=steps)
    check_at_least(1, batch_size=batch_size, warmup=warmup)
    generator = torch.Generator().manual_seed(seed)
    optimizer = torch.optim.Adam(model.parameters(), betas=(0.9, 0.98), eps=1e-9)
    losses = []
    model.train()
    for step in range(1, steps + 1):
        src, tgt_in, tgt_out = _beside(model, task.batch(batch_size, generator))
        for group in optimizer.param_groups:
            group["lr"] = cosine_schedule(step, rate, 0.0, warmup, steps)
        logits = model(src, tgt_in)  # (B, T, V)
        loss = F.cross_entropy(logits.flatten(0, 1), tgt_out.flatten(), ignore_index=PAD)
        optimizer.zero_grad()
        torch.autograd.backward(loss)
        optimizer.step()
        losses.append(loss.item())
    return losses


@torch.no_grad()
def token_accuracy(model: Transformer, batch: Batch) -> float:
    """Return the share of ids, ends included, that are the most probable ones given the right ids before them."""
    src, tgt_in, tgt_out = _beside(model, batch)
    with _evaluating(model):
        guessed = model(src, tgt_in).argmax(dim=-1)  # (B, T)
    return _share(guessed, tgt_out)


@torch.no_grad()
def written_accuracy(model: Transformer, batch: Batch) -> float:
    """Return the share of ids, ends included, that the model writes in the right place, given the source only."""
    src, _, tgt_out = _beside(model, batch)
    written = model.generate(src, tgt_out.shape[1], BOS, EOS, use_cache=True)  # (B, n)
    written = F.pad(written, (0, tgt_out.shape[1] - written.shape[1]), value=PAD)  # (B, T)
    return _share(written, tgt_out)


def _beside(model: Transformer, batch: Batch) -> Batch:
    """Move a batch, which is drawn on the CPU, so that a seed gives the same one everywhere, to the model's device."""
    device = next(model.parameters()).device
    src, tgt_in, tgt_out = (rows.to(device) for rows in batch)
    return src, tgt_in, tgt_out


def _share(guessed: Tensor, wanted: Tensor) -> float:
    counted = wanted != PAD  # (B, T)
    return (guessed == wanted)[counted].double().mean().item()
