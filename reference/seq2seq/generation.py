"""Writing a target, one id at a time.

    M = encode(src)        y_0 = bos        y_t ~ softmax(decode([y_0 … y_{t-1}], M) at its last position)

The source is read once. Greedy, or drawn with a temperature, then top-k, then top-p (Holtzman et
al. 2020). Padding of the source stays hidden while decoding, as in training.
"""

from __future__ import annotations

import torch
from torch import Tensor

from conformkit.reference.errors import SizeError, TokenError
from conformkit.reference.generation import _check_options, _evaluating, next_ids
from conformkit.reference.seq2seq.caches import DecoderCache, cached_logits
from conformkit.reference.seq2seq.encoder_decoder import EncoderDecoder
from conformkit.reference.seq2seq.masks import create_padding_mask

__all__ = ["check_writing", "generate"]


@torch.no_grad()
def generate(
    model: EncoderDecoder,
    src: Tensor,
    max_new_tokens: int,
    bos_id: int,
    eos_id: int | None = None,
    src_mask: Tensor | None = None,
    temperature: float = 0.0,
    top_k: int | None = None,
    top_p: float | None = None,
    use_cache: bool = False,
) -> Tensor:
    """Write a target for each source, until the row has written `eos_id`.

    A row that has ended is filled with the pad id while others go on; when all have, no more is added.

    Shapes: src (B, S), src_mask (B, 1, 1, S) → ids (B, n) without `bos_id`, n at most max_new_tokens, dtype as src
    Units:  temperature τ ≥ 0, where 0, the default, takes the most probable id; top_k counts ids; top_p ∈ (0, 1].
    Raises: SizeError for an option out of range, or more ids than max_len; TokenError for a bos_id or eos_id outside
            the target's vocabulary; whatever the model refuses.
    Source: Annotated Transformer, Greedy Decoding. Every module's mode is restored afterwards.
    """
    _check_options(max_new_tokens, temperature, top_k, top_p)
    check_writing(model, max_new_tokens, bos_id, eos_id)
    with _evaluating(model):
        memory = model.encode(src, src_mask)  # (B, S, D)
        memory_mask = create_padding_mask(src, model.pad_id) if src_mask is None else src_mask  # (B, 1, 1, S)
        cache = DecoderCache(model, memory, memory_mask) if use_cache else None
        tgt = src.new_full((len(src), 1), bos_id)  # (B, 1)
        ended = torch.zeros(len(src), 1, dtype=torch.bool, device=src.device)  # (B, 1)
        for _ in range(max_new_tokens):
            if cache is not None:
                logits = cached_logits(model, tgt[:, cache.length :], cache)[:, -1]  # (B, V)
            else:
                logits = model.decode(tgt, memory, None, memory_mask)[:, -1]  # (B, V)
            new = next_ids(logits, temperature, top_k, top_p)  # (B, 1)
            if eos_id is not None:
                new = new.masked_fill(ended, model.pad_id)
                ended = ended | (new == eos_id)
            tgt = torch.cat([tgt, new.to(tgt.dtype)], dim=1)  # (B, 1 + n)
            if ended.all():
                break
    return tgt[:, 1:]


def check_writing(model: EncoderDecoder, max_new_tokens: int, bos_id: int, eos_id: int | None) -> None:
    """Refuse a target that does not fit into the decoder, or has a begin or end id that does not exist.

    Raises: SizeError or TokenError.
    """
    if max_new_tokens > model.max_len:
        raise SizeError("max_new_tokens", max_new_tokens, f"at most max_len = {model.max_len}")
    for name, number in (("bos_id", bos_id), ("eos_id", eos_id)):
        if number is not None and not 0 <= number < model.tgt_vocab_size:
            raise TokenError(name, number, f"one from 0 to tgt_vocab_size - 1 = {model.tgt_vocab_size - 1}")
