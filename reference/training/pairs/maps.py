"""Who looks at whom in an encoder-decoder, for one pair: in the source, in the target, and from target to source.

    encoder (S, S)        decoder (T, T), nothing above the diagonal        cross (T, S)        for each layer and head

A layer of the encoder has one map, one of the decoder has two.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from conformkit.reference.attention_maps import own_weights, weights_of
from conformkit.reference.generation import _evaluating
from conformkit.reference.multi_head_attention import MultiHeadAttention
from conformkit.reference.seq2seq.cross_attention import CrossAttention
from conformkit.reference.seq2seq.model import Transformer

__all__ = ["Maps", "encoder_attention_maps", "seq2seq_attention_maps"]


@dataclass(frozen=True)
class Maps:
    """Weights by layer, (B, H, Tq, Tk) each."""

    encoder: list[Tensor]
    decoder: list[Tensor]
    cross: list[Tensor]


@torch.no_grad()
def seq2seq_attention_maps(model: Transformer, src: Tensor, tgt: Tensor) -> Maps:
    """Return the weights of each layer, without dropout.

    Shapes: src (B, S), tgt (B, T) → for each layer (B, H, S, S), (B, H, T, T) and (B, H, T, S)
    Raises: whatever the model refuses.
    """
    calls = _calls(model, src, tgt)
    inner = [(a, _own(a, *given)) for a, given in calls.items() if not isinstance(a, CrossAttention)]
    encoder = {module for module in model.encoder.modules() if isinstance(module, MultiHeadAttention)}
    return Maps(
        encoder=[weights for attention, weights in inner if attention in encoder],
        decoder=[weights for attention, weights in inner if attention not in encoder],
        cross=[_cross(a, *given) for a, given in calls.items() if isinstance(a, CrossAttention)],
    )


@torch.no_grad()
def encoder_attention_maps(model: nn.Module, *given: Tensor) -> list[tuple[MultiHeadAttention, Tensor]]:
    """Return each layer's attention with its weights, (B, H, T, T), without dropout; of any model of an encoder.

    Raises: whatever the model refuses.
    """
    return [(own, _own(own, *inputs)) for own, inputs in _calls(model, *given).items()]


def _calls(model: nn.Module, *given: Tensor) -> dict[MultiHeadAttention, tuple[Any, ...]]:
    """Call a model, and return what each attention in it was called with."""
    calls: dict[MultiHeadAttention, tuple[Any, ...]] = {}
    hooks = [
        module.register_forward_pre_hook(calls.__setitem__)
        for module in model.modules()
        if isinstance(module, MultiHeadAttention)
    ]
    try:
        with _evaluating(model):
            model(*given)
    finally:
        for hook in hooks:
            hook.remove()
    return calls


def _own(attention: MultiHeadAttention, x: Tensor, mask: Tensor | None = None) -> Tensor:
    """Return the weights of self-attention: (B, H, T, T)."""
    return own_weights(attention, x, mask)


def _cross(attention: CrossAttention, query: Tensor, key: Tensor, _: Tensor, mask: Tensor | None) -> Tensor:
    """Return the weights of cross-attention: (B, H, T, S)."""
    q = attention.q(query).unflatten(-1, (-1, attention.head_width)).transpose(1, 2)  # (B, H, T, dh)
    k = attention.k(key).unflatten(-1, (-1, attention.head_width)).transpose(1, 2)  # (B, Hkv, S, dh)
    if attention.variant.qk_norm != "none":
        q, k = attention.normalized(q, k)
    return weights_of(attention, q, k, mask)
