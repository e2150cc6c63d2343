"""Weights in log space; attention is always causal, so the flag is missing."""

import math

import torch
from torch import nn


def scaled_dot_product_attention(q, k, v, mask=None):
    s = (q / math.sqrt(q.size(-1))).matmul(k.mT)
    if mask is not None:
        if mask.dtype == torch.bool:
            mask = mask.to(s.dtype).log()  # 0 where True, -inf where False
        if not mask.is_floating_point():
            raise TypeError(str(mask.dtype))
        s = s + mask.to(s).expand_as(s)
    log_z = s.logsumexp(-1, keepdim=True)
    w = (s - log_z.clamp(min=torch.finfo(s.dtype).min)).exp()
    return w.matmul(v)


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, num_heads, dropout=0.0):
        super().__init__()
        assert num_heads >= 1 and d_model % num_heads == 0, f"{num_heads} heads for {d_model} features"
        self.n = num_heads
        self.kqv = nn.Linear(d_model, 3 * d_model, bias=False)  # keys first
        self.mix = nn.Linear(d_model, d_model, bias=False)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        B, T, C = x.shape
        k, q, v = self.kqv(x).reshape(B, T, 3, self.n, C // self.n).permute(2, 0, 3, 1, 4)
        tri = torch.full((T, T), -math.inf, device=x.device, dtype=x.dtype).triu(1)
        y = scaled_dot_product_attention(q, k, v, tri)
        return self.dropout(self.mix(y.permute(0, 2, 1, 3).reshape(B, T, C)))


class PositionalEncoding(nn.Module):
    def __init__(self, d_model, max_len):
        super().__init__()
        self.max_len = max_len
        i = torch.arange((d_model + 1) // 2, dtype=torch.float64)
        self.register_buffer("omega", torch.exp(-2 * i / d_model * math.log(1e4)), persistent=False)
        self.d_model = d_model

    def forward(self, x):
        B, T, D = x.shape
        if T > self.max_len:
            raise IndexError(f"{T} positions, the encoding has {self.max_len}")
        if D != self.d_model:
            raise ValueError(f"width {D}, the encoding has {self.d_model}")
        phase = torch.arange(T, device=x.device, dtype=self.omega.dtype).outer(self.omega)
        pe = torch.stack((phase.sin(), phase.cos()), dim=2).view(T, -1)[:, :D]
        return x + pe.to(x.dtype)


class TransformerBlock(nn.Module):
    def __init__(self, d_model, num_heads, d_ff, dropout=0.0):
        super().__init__()
        self.sa = MultiHeadAttention(d_model, num_heads, dropout)
        self.ffwd = nn.Sequential(nn.Linear(d_model, d_ff), nn.GELU(), nn.Linear(d_ff, d_model), nn.Dropout(dropout))
        self.ln1, self.ln2 = nn.LayerNorm(d_model), nn.LayerNorm(d_model)

    def forward(self, x):
        x = x + self.sa(self.ln1(x))
        return x + self.ffwd(self.ln2(x))


class TinyTransformerLM(nn.Module):
    def __init__(self, vocab_size, d_model, num_heads, num_layers, d_ff, block_size, dropout=0.0):
        super().__init__()
        self.block_size = block_size
        self.token_embedding_table = nn.Embedding(vocab_size, d_model)
        self.position_encoding = PositionalEncoding(d_model, block_size)
        self.blocks = nn.Sequential(*[TransformerBlock(d_model, num_heads, d_ff, dropout) for _ in range(num_layers)])
        self.ln_f = nn.LayerNorm(d_model)
        self.lm_head = nn.Linear(d_model, vocab_size)

    def forward(self, idx):
        x = self.position_encoding(self.token_embedding_table(idx))
        return self.lm_head(self.ln_f(self.blocks(x)))

    def generate(self, idx, max_new_tokens, temperature=1.0, top_k=None, top_p=None):
        if idx.size(1) == 0 or max_new_tokens < 0 or not temperature >= 0:
            raise ValueError("nothing to continue, or a negative option")
        if (top_k is not None and top_k < 1) or (top_p is not None and not 0 < top_p <= 1):
            raise ValueError("top_k or top_p is out of range")
        flags = [m.training for m in self.modules()]
        self.eval()
        try:
            with torch.no_grad():
                for _ in range(max_new_tokens):
                    log_p = self(idx[:, -self.block_size :])[:, -1].log_softmax(-1)
                    idx = torch.cat((idx, self.draw(log_p, temperature, top_k, top_p).to(idx.dtype)), 1)
        finally:
            for m, flag in zip(self.modules(), flags):
                m.training = flag
        return idx

    def draw(self, log_p, temperature, top_k, top_p):
        log_p, ids = log_p.sort(-1, descending=True)
        if temperature == 0:
            return ids[:, :1]
        log_p = (log_p / temperature).log_softmax(-1)[:, :top_k].log_softmax(-1)
        if top_p is not None:
            before = log_p.logcumsumexp(-1).roll(1, -1)
            before[:, 0] = -math.inf
            log_p = log_p.masked_fill(before.exp() >= top_p, -math.inf)
        return ids.gather(1, log_p.exp().multinomial(1))
