"""Decoder-only transformer; masks are float tensors of 0 and -inf that are added to the scores."""

from __future__ import annotations

import math
from types import SimpleNamespace

import torch
from torch import Tensor, nn


def make_additive_causal_mask(size: int, *, like: Tensor) -> Tensor:
    return torch.full((size, size), -math.inf, dtype=like.dtype, device=like.device).triu(1)


def dot_product_attention(query: Tensor, key: Tensor, value: Tensor, additive_mask: Tensor | None = None) -> Tensor:
    logits = query @ key.transpose(-1, -2) / math.sqrt(query.shape[-1])
    if additive_mask is not None:
        logits = logits + additive_mask
    # exp(logits - max) / sum, with rows that see nothing left at zero
    top = logits.detach().amax(-1, keepdim=True)
    top = torch.where(top == -math.inf, torch.zeros_like(top), top)
    weights = torch.exp(logits - top)
    total = weights.sum(-1, keepdim=True)
    return (weights / torch.where(total == 0, torch.ones_like(total), total)) @ value


class Attention(nn.Module):
    def __init__(self, cfg: SimpleNamespace) -> None:
        super().__init__()
        if cfg.width % cfg.heads:
            raise ValueError("width is no multiple of heads")
        self.heads = cfg.heads
        self.to_queries = nn.Linear(cfg.width, cfg.width, bias=cfg.attention_bias)
        self.to_keys = nn.Linear(cfg.width, cfg.width, bias=cfg.attention_bias)
        self.to_values = nn.Linear(cfg.width, cfg.width, bias=cfg.attention_bias)
        self.unify = nn.Linear(cfg.width, cfg.width)
        self.dropout = nn.Dropout(cfg.dropout)

    def forward(self, x: Tensor, additive_mask: Tensor | None = None) -> Tensor:
        def heads(y: Tensor) -> Tensor:
            return y.unflatten(-1, (self.heads, -1)).transpose(1, 2)

        y = dot_product_attention(heads(self.to_queries(x)), heads(self.to_keys(x)), heads(self.to_values(x)), additive_mask)
        return self.dropout(self.unify(y.transpose(1, 2).flatten(-2)))


class FeedForward(nn.Module):
    def __init__(self, cfg: SimpleNamespace) -> None:
        super().__init__()
        self.widen = nn.Linear(cfg.width, cfg.hidden)
        self.narrow = nn.Linear(cfg.hidden, cfg.width)
        self.dropout = nn.Dropout(cfg.dropout)

    def forward(self, x: Tensor) -> Tensor:
        return self.dropout(self.narrow(torch.nn.functional.silu(self.widen(x))))


class Layer(nn.Module):
    def __init__(self, cfg: SimpleNamespace) -> None:
        super().__init__()
        self.pre_attention = nn.LayerNorm(cfg.width, eps=cfg.eps)
        self.attention = Attention(cfg)
        self.pre_feed_forward = nn.LayerNorm(cfg.width, eps=cfg.eps)
        self.feed_forward = FeedForward(cfg)

    def forward(self, x: Tensor, additive_mask: Tensor | None = None) -> Tensor:
        x = x + self.attention(self.pre_attention(x), additive_mask)
        return x + self.feed_forward(self.pre_feed_forward(x))


class SinePositions(nn.Module):
    def __init__(self, cfg: SimpleNamespace) -> None:
        super().__init__()
        self.width, self.limit = cfg.width, cfg.context

    def forward(self, x: Tensor) -> Tensor:
        if x.shape[-2] > self.limit:
            raise ValueError(f"{x.shape[-2]} positions, at most {self.limit}")
        p = torch.arange(x.shape[-2], device=x.device, dtype=torch.float64)[:, None]
        angles = p * 10000.0 ** -(torch.arange(0, self.width, 2, device=x.device, dtype=torch.float64) / self.width)
        interleaved = torch.stack((angles.sin(), angles.cos()), dim=-1).flatten(-2)[:, : self.width]
        return x + interleaved.to(x.dtype)


class LanguageModel(nn.Module):
    def __init__(self, cfg: SimpleNamespace) -> None:
        super().__init__()
        self.context = cfg.context
        self.tokens = nn.Embedding(cfg.vocab, cfg.width)
        self.positions = SinePositions(cfg)
        self.layers = nn.ModuleList(Layer(cfg) for _ in range(cfg.depth))
        self.final_norm = nn.LayerNorm(cfg.width, eps=cfg.eps)
        self.to_vocab = nn.Linear(cfg.width, cfg.vocab)

    def forward(self, ids: Tensor) -> Tensor:
        x = self.positions(self.tokens(ids))
        mask = make_additive_causal_mask(ids.shape[1], like=x)
        for layer in self.layers:
            x = layer(x, mask)
        return self.to_vocab(self.final_norm(x))


def config(vocab=256, width=64, heads=4, depth=2, hidden=256, context=128, dropout=0.0, attention_bias=True, eps=1e-5):
    return SimpleNamespace(vocab=vocab, width=width, heads=heads, depth=depth, hidden=hidden, context=context,
                           dropout=dropout, attention_bias=attention_bias, eps=eps)
