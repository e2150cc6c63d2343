"""Beam search over targets: keep the most probable ones, several at a time.

    score(y) = Σ_t ln p(y_t | y_<t, src) / n^α        n the number of ids written, an end id included

α = length_penalty: 0 leaves the log-probability as it is, 1 makes it a mean. Graves 2012; Sutskever et al. 2014, §3.2.
A width of V^n or more finds the best of all targets of n ids.
"""

from __future__ import annotations

import torch
from torch import Tensor

from conformkit.reference.beam import _best, _best_children
from conformkit.reference.generation import _evaluating
from conformkit.reference.seq2seq.caches import DecoderCache, cached_logits
from conformkit.reference.seq2seq.encoder_decoder import EncoderDecoder
from conformkit.reference.seq2seq.generation import check_writing
from conformkit.reference.seq2seq.masks import create_padding_mask
from conformkit.reference.sizes import check_at_least

__all__ = ["seq2seq_beam_search"]


@torch.no_grad()
def seq2seq_beam_search(
    model: EncoderDecoder,
    src: Tensor,
    max_new_tokens: int,
    bos_id: int,
    beam_width: int,
    length_penalty: float = 0.0,
    eos_id: int | None = None,
    src_mask: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Find `beam_width` targets for each source, the best first.

    A target that ends is set aside and not extended; it no longer takes a place in the beam. After an end id the row
    is filled with the pad id. Where there are fewer targets than the beam is wide, the rest score -inf.

    Shapes: src (B, S), src_mask (B, 1, 1, S) → ids (B, W, n) without `bos_id`, scores (B, W); n = max_new_tokens
    Units:  scores are log-probabilities in nats, divided by n^α.
    Raises: SizeError for a width below 1, a negative number of ids, or more than max_len; TokenError for a bos_id or
            eos_id outside the target's vocabulary; whatever the model refuses.
    """
    check_at_least(0, max_new_tokens=max_new_tokens)
    check_at_least(1, beam_width=beam_width)
    check_writing(model, max_new_tokens, bos_id, eos_id)
    with _evaluating(model):
        memory = model.encode(src, src_mask)  # (B, S, D)
        memory_mask = create_padding_mask(src, model.pad_id) if src_mask is None else src_mask  # (B, 1, 1, S)
        cache = _cache_for_beams(model, memory, memory_mask, beam_width)
        first_row = torch.arange(len(src), device=src.device)[:, None] * beam_width  # (B, 1), of each source's beams
        live = src.new_full((len(src), beam_width, max_new_tokens), model.pad_id)  # (B, W, n)
        ended = live.clone()
        sums = torch.full((len(src), beam_width), float("-inf"), dtype=_dtype(model), device=src.device)  # (B, W)
        ended_scores = sums.clone()
        sums[:, 0] = 0.0  # one beam at the start: equal ones would stay equal
        new = src.new_full((len(src), beam_width), bos_id)  # (B, W)
        for count in range(1, max_new_tokens + 1):
            log_p = _log_probabilities(model, new, cache)  # (B, W, V)
            sums, parents, new = _best_children(sums, log_p)  # (B, W) each
            cache.reorder((first_row + parents).flatten())
            live = live.gather(1, parents[..., None].expand_as(live))  # (B, W, n)
            live[..., count - 1] = new.to(live.dtype)
            if eos_id is not None:
                ends = new == eos_id  # (B, W)
                scores = sums.masked_fill(~ends, float("-inf")) / count**length_penalty
                ended, ended_scores = _best(ended, ended_scores, live, scores)
                sums = sums.masked_fill(ends, float("-inf"))
    return _best(ended, ended_scores, live, sums / max(max_new_tokens, 1) ** length_penalty)


def _cache_for_beams(model: EncoderDecoder, memory: Tensor, memory_mask: Tensor, width: int) -> DecoderCache:
    """Give each beam its own past and its source's memory: (B, S, D) → (B·W, S, D)."""
    mask = memory_mask.expand(len(memory), -1, -1, -1).repeat_interleave(width, dim=0)  # (B·W, 1, 1, S)
    return DecoderCache(model, memory.repeat_interleave(width, dim=0), mask)


def _log_probabilities(model: EncoderDecoder, new: Tensor, cache: DecoderCache) -> Tensor:
    """Return the log-probabilities of the next id after each beam's newest one: (B, W) → (B, W, V)."""
    logits = cached_logits(model, new.reshape(-1, 1), cache).reshape(*new.shape, -1)  # (B, W, V)
    return torch.log_softmax(logits.to(_dtype(model)), dim=-1)


def _dtype(model: EncoderDecoder) -> torch.dtype:
    """Half precision as float32, since many terms are summed; other types stay."""
    return torch.promote_types(model.head.weight.dtype, torch.float32)
