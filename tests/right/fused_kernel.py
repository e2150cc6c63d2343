"""PyTorch's own kernels inside: fused attention, functional layer norm and GELU."""

import torch
import torch.nn.functional as F
from torch import nn


def scaled_dot_product_attention(q, k, v, mask=None):
    if mask is not None:
        target = (*torch.broadcast_shapes(q.shape[:-2], k.shape[:-2]), q.shape[-2], k.shape[-2])
        if torch.broadcast_shapes(mask.shape, target) != target:
            raise ValueError(f"mask {tuple(mask.shape)} would enlarge scores {target}")
        mask = mask if mask.dtype == torch.bool or not mask.is_floating_point() else mask.to(q.dtype)
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, num_heads, dropout=0.0, causal=True):
        super().__init__()
        if num_heads <= 0 or d_model % num_heads:
            raise ValueError(f"d_model {d_model} is no multiple of num_heads {num_heads}")
        self.num_heads, self.causal, self.p = num_heads, causal, dropout
        self.Wqkv = nn.Linear(d_model, 3 * d_model, bias=False)
        self.out_proj = nn.Linear(d_model, d_model, bias=False)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        B, T, D = x.shape
        q, k, v = (part.unflatten(-1, (self.num_heads, -1)).transpose(1, 2) for part in self.Wqkv(x).split(D, dim=-1))
        y = F.scaled_dot_product_attention(q, k, v, dropout_p=self.p if self.training else 0.0, is_causal=self.causal)
        return self.dropout(self.out_proj(y.transpose(1, 2).flatten(-2)))


class FeedForward(nn.Sequential):
    def __init__(self, d_model, d_ff, dropout=0.0):
        super().__init__(nn.Linear(d_model, d_ff), nn.GELU(), nn.Linear(d_ff, d_model), nn.Dropout(dropout))


class PositionalEncoding(nn.Module):
    def __init__(self, d_model, max_len):
        super().__init__()
        position = torch.arange(max_len)[:, None]
        div = torch.exp(torch.arange(0, d_model, 2) * (-torch.log(torch.tensor(10000.0)) / d_model))
        pe = torch.zeros(1, max_len, d_model)
        pe[0, :, 0::2] = torch.sin(position * div)
        pe[0, :, 1::2] = torch.cos(position * div)[:, : d_model // 2]
        self.register_buffer("pe", pe)

    def forward(self, x):
        if x.size(1) > self.pe.size(1):
            raise ValueError(f"{x.size(1)} positions, at most {self.pe.size(1)}")
        if x.size(-1) != self.pe.size(-1):
            raise ValueError(f"width {x.size(-1)}, want {self.pe.size(-1)}")
        return x + self.pe[:, : x.size(1)]


class TransformerBlock(nn.Module):
    def __init__(self, d_model, num_heads, d_ff, dropout=0.0, causal=True):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(d_model), nn.LayerNorm(d_model)
        self.attn = MultiHeadAttention(d_model, num_heads, dropout, causal)
        self.ff = FeedForward(d_model, d_ff, dropout)

    def forward(self, x):
        x = x + self.attn(self.norm1(x))
        return x + self.ff(self.norm2(x))


class TinyTransformerLM(nn.Module):
    def __init__(self, vocab_size, d_model, num_heads, num_layers, d_ff, block_size, dropout=0.0):
        super().__init__()
        self.block_size = block_size
        self.transformer = nn.ModuleDict(
            {
                "embedding": nn.Embedding(vocab_size, d_model),
                "positions": PositionalEncoding(d_model, block_size),
                "blocks": nn.ModuleList(
                    [TransformerBlock(d_model, num_heads, d_ff, dropout) for _ in range(num_layers)]
                ),
                "norm": nn.LayerNorm(d_model),
            }
        )
        self.head = nn.Linear(d_model, vocab_size)

    def forward(self, idx):
        x = self.transformer["positions"](self.transformer["embedding"](idx))
        for block in self.transformer["blocks"]:
            x = block(x)
        return self.head(self.transformer["norm"](x))

    @torch.no_grad()
    def generate(self, idx, max_new_tokens, temperature=1.0, top_k=None, top_p=None):
        if idx.size(1) == 0:
            raise ValueError("empty prompt")
        for name, fine in {
            "max_new_tokens": max_new_tokens >= 0,
            "temperature": temperature >= 0,
            "top_k": top_k is None or top_k >= 1,
            "top_p": top_p is None or 0 < top_p <= 1,
        }.items():
            if not fine:
                raise ValueError(f"{name} is out of range")
        modes = {m: m.training for m in self.modules()}
        self.eval()
        try:
            for _ in range(max_new_tokens):
                logits = self(idx[:, -self.block_size :])[:, -1, :].float()
                idx = torch.cat([idx, self.choose(logits, temperature, top_k, top_p).to(idx.dtype)], dim=-1)
            return idx
        finally:
            for m, mode in modes.items():
                m.train(mode) if not list(m.children()) else setattr(m, "training", mode)

    def choose(self, logits, temperature, top_k, top_p):
        if temperature == 0:
            return logits.argmax(dim=-1, keepdim=True)
        logits = logits / temperature
        if top_k:
            floor = logits.topk(min(top_k, logits.size(-1))).values[..., -1, None]
            logits = logits.masked_fill(logits < floor, -torch.inf)
        probs = F.softmax(logits, dim=-1)
        if top_p:
            probs_sort, probs_idx = probs.sort(dim=-1, descending=True)
            mass_before = probs_sort.cumsum(dim=-1) - probs_sort
            probs_sort[mass_before >= top_p] = 0.0
            return probs_idx.gather(-1, torch.multinomial(probs_sort, 1))
        return torch.multinomial(probs, 1)
