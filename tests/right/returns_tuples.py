"""Everything returns more than was asked for: attention its weights, the model its loss."""

import math

import torch
from torch import nn


def scaled_dot_product_attention(query, key, value, mask=None, dropout=None):
    d_k = query.size(-1)
    scores = torch.matmul(query, key.transpose(-2, -1)) / math.sqrt(d_k)
    if mask is not None:
        if torch.broadcast_shapes(mask.shape, scores.shape) != scores.shape:
            raise ValueError(f"mask of shape {tuple(mask.shape)} for scores of shape {tuple(scores.shape)}")
        if mask.dtype == torch.bool:
            scores = scores.masked_fill(mask == 0, torch.finfo(scores.dtype).min)
        elif mask.is_floating_point():
            scores = torch.clamp_min(scores + mask.to(scores.dtype), torch.finfo(scores.dtype).min)
        else:
            raise TypeError(f"mask of type {mask.dtype}")
    p_attn = scores.softmax(dim=-1)
    dropped = p_attn if dropout is None else dropout(p_attn)
    return torch.matmul(dropped, value), p_attn


def subsequent_mask(size, device):
    return torch.triu(torch.ones(size, size, device=device), diagonal=1) == 0


class SelfAttention(nn.Module):
    def __init__(self, d_model, d_k=None, d_v=None, causal=True):
        super().__init__()
        self.query = nn.Linear(d_model, d_k or d_model, bias=False)
        self.key = nn.Linear(d_model, d_k or d_model, bias=False)
        self.value = nn.Linear(d_model, d_v or d_model, bias=False)
        self.causal = causal

    def forward(self, x):
        mask = subsequent_mask(x.size(1), x.device) if self.causal else None
        return scaled_dot_product_attention(self.query(x), self.key(x), self.value(x), mask)


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, num_heads, dropout=0.0, causal=True):
        super().__init__()
        assert num_heads > 0 and d_model % num_heads == 0, f"{d_model} features, {num_heads} heads"
        self.h, self.causal = num_heads, causal
        self.linears = nn.ModuleList([nn.Linear(d_model, d_model, bias=False) for _ in range(4)])
        self.attention_dropout = nn.Dropout(dropout)

    def forward(self, x):
        B, T, D = x.shape
        q, k, v = [lin(x).view(B, T, self.h, D // self.h).transpose(1, 2) for lin in self.linears[:3]]
        mask = subsequent_mask(T, x.device) if self.causal else None
        y, weights = scaled_dot_product_attention(q, k, v, mask, self.attention_dropout)
        return self.linears[-1](y.transpose(1, 2).reshape(B, T, D)), weights


class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff, dropout=0.0):
        super().__init__()
        self.w_1, self.w_2 = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        hidden = torch.nn.functional.gelu(self.w_1(x))
        return self.w_2(self.dropout(hidden)), hidden


class PositionalEncoding(nn.Module):
    def __init__(self, d_model, max_len):
        super().__init__()
        pe = torch.zeros(max_len, d_model)
        position = torch.arange(0, max_len, dtype=torch.float).unsqueeze(1)
        div_term = torch.pow(10000.0, torch.arange(0, d_model, 2) / d_model)
        pe[:, 0::2] = torch.sin(position / div_term)
        pe[:, 1::2] = torch.cos(position / div_term[: d_model // 2])
        self.register_buffer("pe", pe)

    def forward(self, x):
        assert x.dim() == 3 and x.size(2) == self.pe.size(1), f"got {tuple(x.shape)}, want width {self.pe.size(1)}"
        assert x.size(1) <= self.pe.size(0), f"{x.size(1)} positions, max_len {self.pe.size(0)}"
        pe = self.pe[: x.size(1)]
        return x + pe, pe


class TransformerBlock(nn.Module):
    def __init__(self, d_model, num_heads, d_ff, dropout=0.0, causal=True):
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(d_model), nn.LayerNorm(d_model)
        self.attn = MultiHeadAttention(d_model, num_heads, dropout, causal)
        self.mlp = FeedForward(d_model, d_ff, dropout)

    def forward(self, x):
        attended, weights = self.attn(self.ln_1(x))
        x = x + attended
        return x + self.mlp(self.ln_2(x))[0], weights


class TinyTransformerLM(nn.Module):
    def __init__(self, vocab_size, d_model, num_heads, num_layers, d_ff, block_size, dropout=0.0):
        super().__init__()
        self.block_size = block_size
        self.tok = nn.Embedding(vocab_size, d_model)
        self.pos = PositionalEncoding(d_model, block_size)
        self.h = nn.ModuleList([TransformerBlock(d_model, num_heads, d_ff, dropout) for _ in range(num_layers)])
        self.ln_f = nn.LayerNorm(d_model)
        self.lm_head = nn.Linear(d_model, vocab_size)

    def forward(self, idx, targets=None):
        x, _ = self.pos(self.tok(idx))
        maps = []
        for block in self.h:
            x, weights = block(x)
            maps.append(weights)
        logits = self.lm_head(self.ln_f(x))
        loss = None
        if targets is not None:
            loss = nn.functional.cross_entropy(logits.view(-1, logits.size(-1)), targets.view(-1))
        return logits, loss, maps

    @torch.no_grad()
    def generate(self, idx, max_new_tokens, temperature=1.0, top_k=None, top_p=None):
        if idx.size(1) < 1 or max_new_tokens < 0 or not 0 <= temperature < math.inf:
            raise ValueError(f"prompt {idx.size(1)}, new {max_new_tokens}, temperature {temperature}")
        if top_k is not None and top_k < 1 or top_p is not None and not 0 < top_p <= 1:
            raise ValueError(f"top_k {top_k}, top_p {top_p}")
        training = {name: module.training for name, module in self.named_modules()}
        self.eval()
        try:
            for _ in range(max_new_tokens):
                logits, _, _ = self(idx[:, -self.block_size :])
                idx = torch.cat((idx, self.step(logits[:, -1], temperature, top_k, top_p).type_as(idx)), dim=1)
        finally:
            for name, module in self.named_modules():
                module.training = training[name]
        return idx

    def step(self, logits, temperature, top_k, top_p):
        if temperature == 0:
            return logits.argmax(1)[:, None]
        rows = []
        for row in logits / temperature:
            order = row.argsort(descending=True)[:top_k]
            p = row[order].softmax(0)
            if top_p is not None:
                size = 1 + int((p.cumsum(0) < top_p).sum())
                order, p = order[:size], p[:size]
            rows.append(order[torch.multinomial(p, 1)])
        return torch.stack(rows)
