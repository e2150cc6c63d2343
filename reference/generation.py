"""Sampling from a language model, one token id at a time.

    z = logits of the last position / τ        next id ~ softmax(z), restricted to the top k and then to the top p

Holtzman et al. 2020, §3. Temperature comes first, then top-k, then
top-p among what top-k left.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

from conformkit.reference.errors import ShapeError, SizeError
from conformkit.reference.language_model import LanguageModel, WithModes
from conformkit.reference.sizes import check_at_least

__all__ = ["generate", "next_ids"]


@torch.no_grad()
def generate(
    model: LanguageModel,
    idx: Tensor,
    max_new_tokens: int,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
) -> Tensor:
    """Continue each row by `max_new_tokens` ids, each drawn given the last block_size ids before it.

    Shapes: idx (B, T), T at least 1 → (B, T + max_new_tokens), of the same dtype
    Units:  temperature τ ≥ 0, where 0 takes the most probable id; top_k counts ids; top_p ∈ (0, 1] is a probability.
    Raises: SizeError for an option out of range; ShapeError for an empty prompt; whatever the model refuses.
    Source: nanoGPT, `model.py`, `GPT.generate`. Dropout is off, and each module's mode is restored after.
    """
    _check_options(max_new_tokens, temperature, top_k, top_p)
    model.check_ids(idx)
    if idx.shape[1] == 0:
        raise ShapeError("the length of the prompt", 0, "at least 1")
    ids = idx.clone()
    with _evaluating(model):
        for _ in range(max_new_tokens):
            context = ids[:, -model.block_size :]  # (B, at most block_size)
            logits = model(context)[:, -1]  # (B, V)
            new = next_ids(logits, temperature, top_k, top_p)  # (B, 1)
            ids = torch.cat([ids, new.to(ids.dtype)], dim=1)  # (B, T + 1)
    return ids


def next_ids(logits: Tensor, temperature: float, top_k: int | None, top_p: float | None) -> Tensor:
    """Draw one id for each row of logits, each row on its own.

    Shapes: logits (B, V) → ids (B, 1)
    Source: Holtzman et al. 2020, eq. 2-3: the smallest set whose probability reaches p, which
            includes the id that crosses it.
    """
    ranked, order = logits.sort(dim=-1, descending=True, stable=True)  # (B, V) each; order[b, r] is the id of rank r
    if temperature == 0:
        return order[:, :1]  # (B, 1)
    probabilities = _probabilities(ranked, temperature)  # (B, V), falling
    if top_k is not None:
        probabilities[:, top_k:] = 0.0
        probabilities = probabilities / probabilities.sum(dim=-1, keepdim=True)
    if top_p is not None and top_p < 1:
        before = probabilities.cumsum(dim=-1) - probabilities  # (B, V), the probability of all more probable ids
        probabilities = probabilities.masked_fill(before >= top_p, 0.0)
    rank = torch.multinomial(probabilities, 1)  # (B, 1); multinomial normalizes
    return order.gather(-1, rank)  # (B, 1)


def _probabilities(logits: Tensor, temperature: float) -> Tensor:
    """Softmax of logits over τ, finite for any τ > 0, at least in float32."""
    wide = logits.to(torch.promote_types(logits.dtype, torch.float32))
    below_best = wide - wide.amax(dim=-1, keepdim=True)
    return torch.softmax(below_best / max(temperature, torch.finfo(wide.dtype).tiny), dim=-1)


def _check_options(max_new_tokens: int, temperature: float, top_k: int | None, top_p: float | None) -> None:
    check_at_least(0, max_new_tokens=max_new_tokens)
    if not temperature >= 0:  # also true for NaN
        raise SizeError("temperature", temperature, "at least 0")
    if top_k is not None:
        check_at_least(1, top_k=top_k)
    if top_p is not None and not 0 < top_p <= 1:
        raise SizeError("top_p", top_p, "above 0 and at most 1")


@contextmanager
def _evaluating(model: WithModes) -> Iterator[None]:
    """Put every module into eval mode, and each back into its own mode afterwards, even after an error."""
    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        yield
    finally:
        for module, training in modes:
            module.training = training
