"""Beam search: keep the most probable continuations, several at a time.

    score(y) = Σ_t ln p(y_t | y_<t) / n^α        n the number of ids generated, an end id included; α = length_penalty

Graves 2012; Sutskever et al. 2014, §3.2. With α = 0 the score is the log-probability; Wu et al. 2016 call a division by
a power of the length length normalization. A width of V^n or more finds the best of all continuations of n ids.
"""

from __future__ import annotations

import torch
from torch import Tensor

from conformkit.reference.errors import ShapeError
from conformkit.reference.generation import _evaluating
from conformkit.reference.language_model import LanguageModel
from conformkit.reference.sizes import check_at_least

__all__ = ["beam_search"]


@torch.no_grad()
def beam_search(
    model: LanguageModel,
    ids: Tensor,
    max_new_tokens: int,
    beam_width: int,
    length_penalty: float = 0.0,
    eos_id: int | None = None,
) -> tuple[Tensor, Tensor]:
    """Find `beam_width` continuations of each row, the best first.

    A continuation that ends is set aside and not extended; it no longer takes a place in the beam. After an end id
    the row is filled with end ids. Where there are fewer continuations than the beam is wide, the rest score -inf.

    Shapes: ids (B, T), T at least 1 → ids (B, W, T + n), scores (B, W); n = max_new_tokens, W = beam_width
    Units:  scores are log-probabilities in nats, divided by n^α.
    Raises: SizeError for a width below 1 or a negative number of ids; ShapeError for an empty prompt; whatever the
            model refuses.
    """
    check_at_least(0, max_new_tokens=max_new_tokens)
    check_at_least(1, beam_width=beam_width)
    model.check_ids(ids)
    batch, length = ids.shape
    if length == 0:
        raise ShapeError("the length of the prompt", 0, "at least 1")
    filling = ids.new_full((batch, beam_width, max_new_tokens), 0 if eos_id is None else eos_id)
    live = torch.cat([ids[:, None].expand(-1, beam_width, -1), filling], dim=-1)  # (B, W, T + n)
    ended = live.clone()
    live_sums = torch.full((batch, beam_width), float("-inf"), device=ids.device, dtype=_dtype(model))  # (B, W)
    ended_scores = live_sums.clone()
    live_sums[:, 0] = 0.0  # one beam at the start: equal ones would stay equal
    with _evaluating(model):
        for count in range(1, max_new_tokens + 1):
            place = length + count - 1
            log_p = _log_probabilities(model, live[..., :place])  # (B, W, V)
            live_sums, parents, new = _best_children(live_sums, log_p)  # (B, W) each
            live = live.gather(1, parents[..., None].expand_as(live))  # (B, W, T + n)
            live[..., place] = new.to(live.dtype)
            if eos_id is not None:
                ends = new == eos_id  # (B, W)
                scores = live_sums.masked_fill(~ends, float("-inf")) / count**length_penalty
                ended, ended_scores = _best(ended, ended_scores, live, scores)
                live_sums = live_sums.masked_fill(ends, float("-inf"))
    return _best(ended, ended_scores, live, live_sums / max(max_new_tokens, 1) ** length_penalty)


def _log_probabilities(model: LanguageModel, beams: Tensor) -> Tensor:
    """Return the log-probabilities of the next id after each beam: ids (B, W, t) → (B, W, V)."""
    rows = beams.flatten(0, 1)[:, -model.block_size :]  # (B·W, at most block_size)
    logits = model(rows)[:, -1].unflatten(0, beams.shape[:2])  # type: ignore[no-untyped-call]  # (B, W, V)
    return torch.log_softmax(logits.to(_dtype(model)), dim=-1)


def _best_children(sums: Tensor, log_p: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return the sums, parents and ids of the W best of all W·V children: (B, W), (B, W, V) → (B, W) each."""
    vocabulary = log_p.shape[-1]
    children = (sums[..., None] + log_p).flatten(1)  # (B, W·V)
    best, number = children.topk(sums.shape[1], dim=1)  # (B, W) each
    return best, number // vocabulary, number % vocabulary


def _best(first: Tensor, first_scores: Tensor, second: Tensor, second_scores: Tensor) -> tuple[Tensor, Tensor]:
    """Return the W best of twice W beams, in falling order: (B, W, T + n), (B, W) → the same."""
    beams, scores = torch.cat([first, second], dim=1), torch.cat([first_scores, second_scores], dim=1)
    best, number = scores.topk(first.shape[1], dim=1)  # (B, W) each
    return beams.gather(1, number[..., None].expand(-1, -1, beams.shape[-1])), best


def _dtype(model: LanguageModel) -> torch.dtype:
    """Half precision as float32, since many terms are summed; other types stay."""
    return torch.promote_types(model.head.weight.dtype, torch.float32)
