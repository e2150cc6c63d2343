"""nn.MultiheadAttention inside; everything that torch has is taken from torch."""

import math

import torch
import torch.nn.functional as F
from torch import nn


def scaled_dot_product_attention(q, k, v, mask=None):
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, num_heads, dropout=0.0, causal=True):
        super().__init__()
        self.mha = nn.MultiheadAttention(d_model, num_heads, dropout=dropout, bias=False, batch_first=True)
        self.causal = causal

    def forward(self, x):
        T = x.size(1)
        mask = (
            nn.Transformer.generate_square_subsequent_mask(T, device=x.device, dtype=x.dtype) if self.causal else None
        )
        out, _ = self.mha(x, x, x, attn_mask=mask, need_weights=False, is_causal=self.causal)
        return out


class FeedForward(nn.Sequential):
    def __init__(self, d_model, d_ff, dropout=0.0):
        super().__init__(nn.Linear(d_model, d_ff), nn.GELU(), nn.Dropout(dropout), nn.Linear(d_ff, d_model))


class PositionalEncoding(nn.Module):
    def __init__(self, d_model, max_len):
        super().__init__()
        position = torch.arange(max_len).unsqueeze(1)
        div_term = torch.exp(torch.arange(0, d_model, 2) * (-math.log(10000.0) / d_model))
        pe = torch.zeros(max_len, d_model)
        pe[:, 0::2] = torch.sin(position * div_term)
        pe[:, 1::2] = torch.cos(position * div_term)[:, : d_model // 2]
        self.register_buffer("pe", pe, persistent=False)

    def forward(self, x):
        if x.size(1) > self.pe.size(0):
            raise ValueError(f"{x.size(1)} positions, at most {self.pe.size(0)}")
        return x + self.pe[: x.size(1)]


class TransformerBlock(nn.Module):
    def __init__(self, d_model, num_heads, d_ff, dropout=0.0, causal=True):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(d_model), nn.LayerNorm(d_model)
        self.self_attn = MultiHeadAttention(d_model, num_heads, dropout, causal)
        self.feed_forward = FeedForward(d_model, d_ff, dropout)
        self.drop = nn.Dropout(dropout)

    def forward(self, x):
        x = x + self.drop(self.self_attn(self.norm1(x)))
        return x + self.drop(self.feed_forward(self.norm2(x)))


class TinyTransformerLM(nn.Module):
    def __init__(self, vocab_size, d_model, num_heads, num_layers, d_ff, block_size, dropout=0.0):
        super().__init__()
        self.block_size = block_size
        self.embed = nn.Embedding(vocab_size, d_model)
        self.pos = PositionalEncoding(d_model, block_size)
        self.drop = nn.Dropout(dropout)
        self.layers = nn.ModuleList([TransformerBlock(d_model, num_heads, d_ff, dropout) for _ in range(num_layers)])
        self.norm = nn.LayerNorm(d_model)
        self.lm_head = nn.Linear(d_model, vocab_size)

    def forward(self, ids):
        h = self.drop(self.pos(self.embed(ids)))
        for layer in self.layers:
            h = layer(h)
        return self.lm_head(self.norm(h))

    @torch.no_grad()
    def generate(self, ids, max_new_tokens, temperature=1.0, top_k=None, top_p=None):
        mode = self.training
        self.eval()
        for _ in range(max_new_tokens):
            logits = self(ids[:, -self.block_size :])[:, -1]
            if temperature == 0:
                nxt = logits.argmax(-1, keepdim=True)
            else:
                logits = logits / temperature
                if top_k is not None:
                    k = min(top_k, logits.size(-1))
                    vals, inds = logits.topk(k)
                    filt = torch.full_like(logits, -float("inf"))
                    logits = filt.scatter(-1, inds, vals)
                dist = logits.softmax(-1)
                if top_p is not None:
                    sp, si = dist.sort(-1, descending=True)
                    sp[sp.cumsum(-1) - sp > top_p] = 0
                    dist = torch.zeros_like(dist).scatter_(-1, si, sp)
                nxt = torch.distributions.Categorical(probs=dist).sample()[:, None]
            ids = torch.cat([ids, nxt], dim=-1)
        self.train(mode)
        return ids
