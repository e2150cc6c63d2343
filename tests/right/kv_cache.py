"""Generation with a key/value cache; projections fused head by head (q, k, v of head 0, then of head 1, …)."""

import math

import torch
from torch import nn


def scaled_dot_product_attention(q, k, v, mask=None):
    scores = torch.baddbmm(  # leading axes folded into one
        torch.zeros(1, 1, 1, dtype=q.dtype, device=q.device),
        q.reshape(math.prod(q.shape[:-2]), *q.shape[-2:]),
        k.reshape(math.prod(k.shape[:-2]), *k.shape[-2:]).transpose(1, 2),
        beta=0,
        alpha=1 / math.sqrt(q.shape[-1]),
    ).reshape(*q.shape[:-1], k.shape[-2])
    if mask is not None:
        if mask.dtype == torch.bool:
            scores = scores.masked_fill(~mask.expand(scores.shape), float("-inf"))
        elif mask.is_floating_point():
            scores = scores + mask.expand(scores.shape).to(scores.dtype)
        else:
            raise TypeError(f"mask of {mask.dtype}")
    hidden = scores.max(dim=-1, keepdim=True).values == float("-inf")
    return scores.masked_fill(hidden, 0).softmax(-1).masked_fill(hidden, 0) @ v


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, num_heads, dropout=0.0, causal=True):
        super().__init__()
        if num_heads < 1 or d_model % num_heads:
            raise ValueError(f"num_heads={num_heads} must divide d_model={d_model}")
        self.num_heads, self.causal = num_heads, causal
        self.query_key_value = nn.Linear(d_model, 3 * d_model, bias=False)
        self.dense = nn.Linear(d_model, d_model, bias=False)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x, past=None):
        b, t, d = x.shape
        heads = self.query_key_value(x).view(b, t, self.num_heads, 3 * d // self.num_heads)
        q, k, v = heads.transpose(1, 2).chunk(3, dim=-1)
        if past is not None:
            if past:
                k, v = torch.cat([past["k"], k], dim=2), torch.cat([past["v"], v], dim=2)
            past["k"], past["v"] = k, v
        n = k.shape[2]
        mask = None
        if self.causal:
            mask = torch.arange(n, device=x.device) <= torch.arange(n - t, n, device=x.device)[:, None]
        y = scaled_dot_product_attention(q, k, v, mask)
        return self.dropout(self.dense(y.transpose(1, 2).reshape(b, t, d)))


class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff, dropout=0.0):
        super().__init__()
        self.dense_h_to_4h, self.dense_4h_to_h = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        return self.dropout(self.dense_4h_to_h(nn.functional.gelu(self.dense_h_to_4h(x))))


class PositionalEncoding(nn.Module):
    def __init__(self, d_model, max_len):
        super().__init__()
        self.d_model, self.max_len = d_model, max_len

    def forward(self, x, start=0):
        if start + x.shape[1] > self.max_len or x.shape[-1] != self.d_model:
            raise ValueError(
                f"{tuple(x.shape)} from position {start} on, want ({self.max_len}, {self.d_model}) at most"
            )
        feature = torch.arange(self.d_model, dtype=torch.float64, device=x.device)
        position = torch.arange(start, start + x.shape[1], dtype=torch.float64, device=x.device)[:, None]
        angle = position * torch.exp(-math.log(10000.0) * (feature - feature % 2) / self.d_model)
        return x + torch.where(feature % 2 == 0, angle.sin(), angle.cos()).to(x.dtype)


class TransformerBlock(nn.Module):
    def __init__(self, d_model, num_heads, d_ff, dropout=0.0, causal=True):
        super().__init__()
        self.input_layernorm, self.post_attention_layernorm = nn.LayerNorm(d_model), nn.LayerNorm(d_model)
        self.attention = MultiHeadAttention(d_model, num_heads, dropout, causal)
        self.mlp = FeedForward(d_model, d_ff, dropout)

    def forward(self, x, past=None):
        x = x + self.attention(self.input_layernorm(x), past)
        return x + self.mlp(self.post_attention_layernorm(x))


class TinyTransformerLM(nn.Module):
    def __init__(self, vocab_size, d_model, num_heads, num_layers, d_ff, block_size, dropout=0.0):
        super().__init__()
        self.block_size = block_size
        self.embed_in = nn.Embedding(vocab_size, d_model)
        self.pos = PositionalEncoding(d_model, block_size)
        self.layers = nn.ModuleList([TransformerBlock(d_model, num_heads, d_ff, dropout) for _ in range(num_layers)])
        self.final_layer_norm = nn.LayerNorm(d_model)
        self.embed_out = nn.Linear(d_model, vocab_size)

    def forward(self, ids, cache=None):
        start = cache["length"] if cache else 0
        x = self.pos(self.embed_in(ids), start)
        for i, layer in enumerate(self.layers):
            x = layer(x, None if cache is None else cache["layers"][i])
        if cache is not None:
            cache["length"] = start + ids.shape[1]
        return self.embed_out(self.final_layer_norm(x))

    def new_cache(self):
        return {"length": 0, "layers": [{} for _ in self.layers]}

    @torch.no_grad()
    def generate(self, idx, max_new_tokens, temperature=1.0, top_k=None, top_p=None):
        if idx.shape[1] == 0 or max_new_tokens < 0 or not temperature >= 0:
            raise ValueError(f"prompt {tuple(idx.shape)}, {max_new_tokens=}, {temperature=}")
        if (top_k is not None and top_k < 1) or (top_p is not None and not 0 < top_p <= 1):
            raise ValueError(f"{top_k=}, {top_p=}")
        modes = [(module, module.training) for module in self.modules()]
        self.eval()
        try:
            cache = self.new_cache()
            for _ in range(max_new_tokens):
                if cache["length"] == 0 or cache["length"] >= self.block_size:
                    # The window slides from here on: all positions change, and the cache is worth nothing.
                    cache = self.new_cache()
                    logits = self(idx[:, -self.block_size :], cache)
                else:
                    logits = self(idx[:, -1:], cache)
                idx = torch.cat([idx, self.pick(logits[:, -1], temperature, top_k, top_p).to(idx.dtype)], dim=1)
        finally:
            for module, mode in modes:
                module.training = mode
        return idx

    @staticmethod
    def pick(logits, temperature, top_k, top_p):
        if temperature == 0:
            return logits.argmax(-1, keepdim=True)
        probs = (logits / temperature).softmax(-1)
        if top_k is not None:
            keep = probs.topk(min(top_k, probs.shape[-1]), dim=-1)
            probs = torch.zeros_like(probs).scatter(-1, keep.indices, keep.values)
            probs = probs / probs.sum(-1, keepdim=True)
        if top_p is not None:
            for row in probs:
                total = 0.0
                for i in row.argsort(descending=True).tolist():
                    total, row[i] = total + row[i].item(), row[i] if total < top_p else 0.0
        return torch.multinomial(probs, 1)
