"""NamedTuples and dataclass outputs; mask caches; dropout with self.training; a shared Dropout."""

import math
from dataclasses import dataclass
from typing import NamedTuple, Optional

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class AttentionOutput(NamedTuple):
    output: Tensor
    weights: Tensor


@dataclass
class LMOutput:
    loss: Optional[Tensor]
    logits: Tensor
    hidden_states: tuple = ()


def scaled_dot_product_attention(query, key, value, mask=None):
    scores = query @ key.transpose(-1, -2)
    scores = scores / math.sqrt(key.shape[-1])
    if mask is not None:
        bias = scores.new_zeros(mask.shape)
        bias = (
            bias.masked_fill(~mask, -1e4 if scores.dtype == torch.float16 else -1e9)
            if mask.dtype == torch.bool
            else mask
        )
        scores = scores + bias
    weights = (scores.float() if scores.dtype == torch.float16 else scores).softmax(-1).to(value.dtype)
    return AttentionOutput(weights @ value, weights)


_MASKS = {}


def causal_mask(n, device):
    key = (n, str(device))
    if key not in _MASKS:
        _MASKS[key] = torch.arange(n, device=device)[:, None] >= torch.arange(n, device=device)
    return _MASKS[key]


class SelfAttention(nn.Module):
    def __init__(self, d_model, d_k=None, d_v=None, causal=True):
        super().__init__()
        self.query = nn.Linear(d_model, d_k or d_model, bias=False)
        self.key = nn.Linear(d_model, d_k or d_model, bias=False)
        self.value = nn.Linear(d_model, d_v or d_model, bias=False)
        self.causal = causal

    def forward(self, x):
        m = causal_mask(x.shape[1], x.device) if self.causal else None
        return scaled_dot_product_attention(self.query(x), self.key(x), self.value(x), m)


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, num_heads, dropout=0.0, causal=True):
        super().__init__()
        self.d_head, rest = divmod(d_model, num_heads)
        if rest:
            raise ValueError(f"{d_model=} is not divisible by {num_heads=}")
        self.num_heads = num_heads
        self.causal = causal
        self.dropout = dropout
        self.Wq = nn.Parameter(torch.empty(num_heads, d_model, self.d_head))
        self.Wk = nn.Parameter(torch.empty(num_heads, d_model, self.d_head))
        self.Wv = nn.Parameter(torch.empty(num_heads, d_model, self.d_head))
        self.Wo = nn.Parameter(torch.empty(num_heads, self.d_head, d_model))
        for p in self.parameters():
            nn.init.xavier_uniform_(p)

    def forward(self, x):
        q = torch.einsum("btd,hdk->bhtk", x, self.Wq)
        k = torch.einsum("btd,hdk->bhtk", x, self.Wk)
        v = torch.einsum("btd,hdk->bhtk", x, self.Wv)
        m = causal_mask(x.shape[1], x.device) if self.causal else None
        y, w = scaled_dot_product_attention(q, k, v, m)
        y = torch.einsum("bhtk,hkd->btd", y, self.Wo)
        return AttentionOutput(F.dropout(y, p=self.dropout, training=self.training), w)


class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff, dropout=0.0):
        super().__init__()
        self.linear1, self.linear2 = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)
        self.dropout = dropout

    def forward(self, x):
        x = F.gelu(self.linear1(x))
        x = F.dropout(x, self.dropout, self.training)
        return self.linear2(x)


class PositionalEncoding(nn.Module):
    def __init__(self, d_model, max_len):
        super().__init__()
        self.max_len = max_len
        pos = torch.arange(max_len, dtype=torch.float)[:, None]
        div = 10000 ** (torch.arange(0, d_model, 2).float() / d_model)
        pe = torch.zeros(1, max_len, d_model)
        pe[0, :, 0::2] = (pos / div).sin()
        pe[0, :, 1::2] = (pos / div)[:, : d_model // 2].cos()
        self.register_buffer("pe", pe)

    def forward(self, x):
        if x.size(1) > self.max_len:
            raise ValueError(f"sequence length {x.size(1)} exceeds {self.max_len}")
        return x + self.pe[:, : x.size(1)].to(x)


class TransformerBlock(nn.Module):
    def __init__(self, d_model, num_heads, d_ff, dropout=0.0, causal=True):
        super().__init__()
        self.layernorm1 = nn.LayerNorm(d_model)
        self.attention = MultiHeadAttention(d_model, num_heads, dropout, causal)
        self.layernorm2 = nn.LayerNorm(d_model)
        self.mlp = FeedForward(d_model, d_ff, dropout)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        h = self.layernorm1(x)
        h = self.attention(h).output
        x = x + self.dropout(h)
        h = self.layernorm2(x)
        h = self.mlp(h)
        return x + self.dropout(h)


class TinyTransformerLM(nn.Module):
    def __init__(self, vocab_size, d_model, num_heads, num_layers, d_ff, block_size, dropout=0.0):
        super().__init__()
        self.block_size = block_size
        self.word_embeddings = nn.Embedding(vocab_size, d_model)
        self.position = PositionalEncoding(d_model, block_size)
        self.h = nn.ModuleList([TransformerBlock(d_model, num_heads, d_ff, dropout) for _ in range(num_layers)])
        self.final_norm = nn.LayerNorm(d_model)
        self.output = nn.Linear(d_model, vocab_size)

    def forward(self, input_ids, labels=None):
        x = self.position(self.word_embeddings(input_ids))
        states = [x]
        for layer in self.h:
            x = layer(x)
            states.append(x)
        logits = self.output(self.final_norm(x))
        loss = None
        if labels is not None:
            loss = F.cross_entropy(logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten())
        return LMOutput(loss, logits, tuple(states))

    def generate(self, input_ids, max_new_tokens, temperature=1.0, top_k=None, top_p=None):
        state = self.training
        self.eval()
        try:
            with torch.inference_mode():
                for _ in range(max_new_tokens):
                    window = input_ids[:, max(0, input_ids.shape[1] - self.block_size) :]
                    scores = self(window).logits[:, -1].double()
                    input_ids = torch.hstack([input_ids, self._next(scores, temperature, top_k, top_p)])
        finally:
            self.train(state)
        return input_ids

    def _next(self, scores, temperature, top_k, top_p):
        if temperature == 0.0:
            return scores.argmax(dim=-1).unsqueeze(-1)
        scores = scores / temperature
        if top_k is not None:
            top_k = min(top_k, scores.size(-1))
            threshold = scores.kthvalue(scores.size(-1) - top_k + 1, dim=-1, keepdim=True).values
            scores = scores.where(scores >= threshold, torch.full_like(scores, -torch.inf))
        probs = scores.softmax(-1)
        if top_p is not None:
            values, order = probs.sort(-1, descending=True)
            exceeded = values.cumsum(-1) - values >= top_p
            values = values.masked_fill(exceeded, 0)
            probs = torch.zeros_like(probs).scatter(-1, order, values)
        u = torch.rand(probs.shape[0], 1, dtype=probs.dtype, device=probs.device) * probs.sum(-1, keepdim=True)
        return torch.searchsorted(probs.cumsum(-1), u, right=True).clamp(max=probs.shape[-1] - 1)
