"""What a trained model does inside: how far its heads look, how unlike they are, which heads and units are dead.

    distance = mean over queries of Σ_j a_j |i - j|        unlike = mean over pairs of heads of ½ Σ_j |a_j - b_j|
    share of a head = ‖its part of the layer's output‖ / ‖the largest part of a head of that layer‖

Clark et al. 2019 (heads that look at one place), Michel et al. 2019 (heads that can be left
out). A leak is what a mask should hide and does not: weight on it, or an output that depends on it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from conformkit.reference.analysis import attention_entropy
from conformkit.reference.attention_maps import attention_maps
from conformkit.reference.feed_forward import FeedForward
from conformkit.reference.generation import _evaluating
from conformkit.reference.model import TinyTransformerLM
from conformkit.reference.multi_head_attention import MultiHeadAttention
from conformkit.reference.seq2seq.model import Transformer
from conformkit.reference.training.pairs.maps import encoder_attention_maps, seq2seq_attention_maps

__all__ = [
    "Anatomy",
    "HeadFacts",
    "Leak",
    "Units",
    "anatomy_of_encoder",
    "anatomy_of_language_model",
    "anatomy_of_translator",
]

DEAD_UNIT = 1e-6
"""A unit whose activations are all this small passes nothing on."""
LEAK = 1e-4
"""A change of the logits above rounding in float32."""


@dataclass(frozen=True)
class HeadFacts:
    """One head, averaged over queries that see at least two keys."""

    place: str
    entropy: float
    most: float
    """The entropy of equal weights."""
    distance: float | None
    """Positions between query and key; None between two sequences."""
    unlike: float | None
    """How unlike the other heads of its layer: 0 equal, 1 without a common key; None for a single head."""
    first: float
    """The mean weight of the first key."""
    share: float
    """How much it adds to the layer's output, compared with the head that adds most."""


@dataclass(frozen=True)
class Units:
    """The hidden units of a layer, and how many were 0 at every position."""

    place: str
    dead: int
    units: int


@dataclass(frozen=True)
class Leak:
    """Something hidden that is not hidden, and by how much."""

    what: str
    size: float


@dataclass(frozen=True)
class Anatomy:
    """What was seen in one batch."""

    heads: Sequence[HeadFacts]
    units: Sequence[Units]
    leaks: Sequence[Leak]


@torch.no_grad()
def anatomy_of_language_model(model: TinyTransformerLM, ids: Tensor) -> Anatomy:
    """Look into a decoder-only model. Shapes: ids (B, T), T at least 2. Raises: whatever the model refuses."""
    with _evaluating(model), _watched(model) as seen:
        before = model(ids)
    maps = attention_maps(model, ids)
    layers = [module for module in model.modules() if isinstance(module, MultiHeadAttention)]
    heads = [
        one
        for number, (attention, weights) in enumerate(zip(layers, maps, strict=True), 1)
        for one in _heads(f"layer {number}", attention, weights, seen[attention], causal=True)
    ]
    changed = ids.clone()
    changed[:, -1] = (changed[:, -1] + 1) % model.vocab_size
    with _evaluating(model):
        after = model(changed)
    found = [Leak("later positions, by their weight", max(_above(weights) for weights in maps))]
    found.append(Leak("the last position, by the logits before it", _largest(after[:, :-1] - before[:, :-1])))
    return Anatomy(heads, _units(model, seen), [leak for leak in found if leak.size > LEAK])


@torch.no_grad()
def anatomy_of_encoder(model: nn.Module, *given: Tensor) -> Anatomy:
    """Look into an encoder, which sees both sides: nothing is hidden, so nothing leaks. Raises as the model does."""
    with _evaluating(model), _watched(model) as seen:
        model(*given)
    heads = [
        one
        for number, (attention, weights) in enumerate(encoder_attention_maps(model, *given), 1)
        for one in _heads(f"layer {number}", attention, weights, seen[attention], causal=False)
    ]
    return Anatomy(heads, _units(model, seen), [])


@torch.no_grad()
def anatomy_of_translator(model: Transformer, src: Tensor, tgt: Tensor) -> Anatomy:
    """Look into an encoder-decoder. Shapes: src (B, S), tgt (B, T), T at least 2. Raises as the model does."""
    with _evaluating(model), _watched(model) as seen:
        before = model(src, tgt)
    maps = seq2seq_attention_maps(model, src, tgt)
    encoder: Any = model.encoder.layers
    decoder: Any = model.decoder.layers
    groups = (
        ("encoder", [layer.attention for layer in encoder], maps.encoder, (src, src)),
        ("decoder", [layer.self_attention for layer in decoder], maps.decoder, (tgt, tgt)),
        ("cross", [layer.cross_attention for layer in decoder], maps.cross, (tgt, src)),
    )
    heads = []
    for name, layers, weights, (queries, _) in groups:
        real = queries != model.pad_id
        for number, (attention, one) in enumerate(zip(layers, weights, strict=True), 1):
            place = f"{name} {number}"
            heads += _heads(place, attention, one, seen[attention], causal=name == "decoder", real=real,
                            apart=name == "cross")  # fmt: skip
    return Anatomy(heads, _units(model, seen), list(_leaks(model, src, tgt, before, maps)))


def _leaks(model: Transformer, src: Tensor, tgt: Tensor, before: Tensor, maps: Any) -> Iterator[Leak]:
    """Yield what of the target's future and of the source's padding is not hidden."""
    later = tgt.clone()
    later[:, -1] = (later[:, -1] % (model.tgt_vocab_size - 1)) + 1
    with _evaluating(model):
        future = _largest(model(src, later)[:, :-1] - before[:, :-1])
        room = min(3, model.max_len - src.shape[1])
        padded = torch.cat([src, src.new_full((len(src), room), model.pad_id)], dim=1)
        longer = _largest(model(padded, tgt) - before)
    hidden = (src == model.pad_id)[:, None, None, :]
    on_padding = max((_largest(one * hidden) for one in [*maps.encoder, *maps.cross]), default=0.0)
    found = (
        Leak("later target positions, by their weight", max(map(_above, maps.decoder), default=0.0)),
        Leak("the last target position, by the logits before it", future),
        Leak("padding of the source, by its weight", on_padding),
        Leak("padding of the source, by the logits", longer),
    )
    yield from (leak for leak in found if leak.size > LEAK)


def _heads(
    place: str, attention: MultiHeadAttention, weights: Tensor, mixed: Tensor, *, causal: bool,
    real: Tensor | None = None, apart: bool = False,
) -> list[HeadFacts]:  # fmt: skip
    """Describe the heads of one layer. Shapes: weights (B, H, Tq, Tk), mixed (B, Tq, H·dh), real (B, Tq)."""
    seen = (weights > 0).any(dim=1).sum(dim=-1)  # (B, Tq), keys that some head uses
    counted = seen > 1
    if real is not None:
        counted = counted & real
    rows = weights.transpose(0, 1)[:, counted]  # (H, n, Tk)
    if rows.shape[1] == 0:
        return []
    most = seen[counted].double().log().mean().item()
    away = (torch.arange(weights.shape[-2])[:, None] - torch.arange(weights.shape[-1])).abs().to(weights)  # (Tq, Tk)
    far = (weights * away).sum(dim=-1).transpose(0, 1)[:, counted].mean(dim=-1)  # (H,)
    pairs = 0.5 * (rows[:, None] - rows[None]).abs().sum(dim=-1).mean(dim=-1)  # (H, H)
    count = len(rows)
    parts = _parts(attention, mixed)  # (H,)
    first = rows[:, 1:] if causal and rows.shape[1] > 1 else rows
    return [
        HeadFacts(
            place=f"{place}, head {head + 1}",
            entropy=attention_entropy(rows[head]).mean().item(),
            most=most,
            distance=None if apart else far[head].item(),
            unlike=(pairs[head].sum() / (count - 1)).item() if count > 1 else None,
            first=first[head, :, 0].mean().item(),
            share=(parts[head] / parts.max().clamp(min=torch.finfo(parts.dtype).tiny)).item(),
        )
        for head in range(count)
    ]


def _parts(attention: MultiHeadAttention, mixed: Tensor) -> Tensor:
    """Return the norm of what each head adds to the output: (B, T, H·dh) → (H,)."""
    split = (attention.num_heads, mixed.shape[-1] // attention.num_heads)
    own = mixed.reshape(*mixed.shape[:-1], *split)  # (B, T, H, dh)
    if attention.out is not None:
        matrix = attention.out.weight.reshape(-1, *split)  # (D, H, dh)
        own = torch.einsum("bthw,dhw->bthd", own, matrix)  # (B, T, H, D)
    norms: Tensor = torch.linalg.vector_norm(own, dim=(0, 1, 3))  # (H,)
    return norms


def _units(model: nn.Module, seen: dict[nn.Module, Tensor]) -> list[Units]:
    found = []
    for name, module in model.named_modules():
        if isinstance(module, FeedForward):
            hidden = seen[module].flatten(0, -2)  # (N, F)
            dead = int((hidden.abs().amax(dim=0) < DEAD_UNIT).sum())
            found.append(Units(name, dead, hidden.shape[-1]))
    return found


@contextmanager
def _watched(model: nn.Module) -> Iterator[dict[nn.Module, Tensor]]:
    """Yield what heads mix, before the output projection, and what hidden units give, by module, as calls are made."""
    seen: dict[nn.Module, Tensor] = {}
    hooks = []

    def keep(owner: nn.Module) -> Any:
        return lambda _, given: seen.__setitem__(owner, given[0])

    for module in model.modules():
        if isinstance(module, MultiHeadAttention):
            inner = module.dropout if module.out is None else module.out
            hooks.append(inner.register_forward_pre_hook(keep(module)))
        elif isinstance(module, FeedForward):
            hooks.append(module.down.register_forward_pre_hook(keep(module)))
    try:
        yield seen
    finally:
        for hook in hooks:
            hook.remove()


def _above(weights: Tensor) -> float:
    """Return the largest weight above the diagonal."""
    return _largest(weights.triu(1))


def _largest(values: Tensor) -> float:
    size = values.abs().max().item() if values.numel() else 0.0
    return size if math.isfinite(size) else math.inf
