"""A loop over heads that slices full-width projections; everything else by the book."""

import math

import torch
import torch.nn as nn


def scaled_dot_product_attention(q, k, v, mask=None):
    att = torch.matmul(q, k.transpose(-1, -2)) / math.sqrt(k.size(-1))
    if mask is not None:
        if mask.dtype not in (torch.bool, torch.float16, torch.bfloat16, torch.float32, torch.float64):
            raise TypeError("mask must be bool or float, got %s" % mask.dtype)
        mask = torch.broadcast_to(mask, att.shape)
        if mask.dtype == torch.bool:
            att = att.masked_fill(mask.logical_not(), float("-inf"))
        else:
            att = att + mask.type_as(att)
    att = torch.softmax(att, dim=-1)
    att = torch.nan_to_num(att, nan=0.0)
    return torch.matmul(att, v)


class SelfAttention(nn.Module):
    def __init__(self, d_model, d_k=None, d_v=None, causal=True):
        super().__init__()
        self.to_q = nn.Linear(d_model, d_k or d_model, bias=False)
        self.to_k = nn.Linear(d_model, d_k or d_model, bias=False)
        self.to_v = nn.Linear(d_model, d_v or d_model, bias=False)
        self.causal = causal

    def forward(self, x):
        mask = None
        if self.causal:
            n = x.shape[-2]
            mask = torch.full((n, n), float("-inf"), dtype=x.dtype, device=x.device).triu(diagonal=1)
        return scaled_dot_product_attention(self.to_q(x), self.to_k(x), self.to_v(x), mask)


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, num_heads, dropout=0.0, causal=True):
        super().__init__()
        if num_heads < 1 or d_model % num_heads != 0:
            raise ValueError("d_model (%d) must be divisible by num_heads (%d)" % (d_model, num_heads))
        self.num_heads, self.dh, self.causal = num_heads, d_model // num_heads, causal
        self.w_q = nn.Linear(d_model, d_model, bias=False)
        self.w_k = nn.Linear(d_model, d_model, bias=False)
        self.w_v = nn.Linear(d_model, d_model, bias=False)
        self.w_o = nn.Linear(d_model, d_model, bias=False)
        self.drop = nn.Dropout(dropout)

    def forward(self, x):
        assert x.ndim == 3, "expected (batch, time, features)"
        Q, K, V = self.w_q(x), self.w_k(x), self.w_v(x)
        n = x.shape[1]
        mask = torch.tril(torch.ones(n, n, device=x.device)).bool() if self.causal else None
        outputs = []
        for h in range(self.num_heads):
            cols = slice(h * self.dh, (h + 1) * self.dh)
            outputs.append(scaled_dot_product_attention(Q[..., cols], K[..., cols], V[..., cols], mask))
        return self.drop(self.w_o(torch.cat(outputs, dim=-1)))


class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff, dropout=0.0):
        super().__init__()
        assert d_ff > 0, "d_ff must be positive, got %d" % d_ff
        self.linear1 = nn.Linear(d_model, d_ff)
        self.linear2 = nn.Linear(d_ff, d_model)
        self.drop = nn.Dropout(dropout)

    def forward(self, x):
        return self.drop(self.linear2(nn.functional.gelu(self.linear1(x))))


class PositionalEncoding(nn.Module):
    def __init__(self, d_model, max_len):
        super().__init__()
        table = torch.zeros(max_len, d_model, dtype=torch.double)
        for pos in range(max_len):
            for i in range(0, d_model, 2):
                angle = pos / (10000 ** (i / d_model))
                table[pos, i] = math.sin(angle)
                if i + 1 < d_model:
                    table[pos, i + 1] = math.cos(angle)
        self.register_buffer("table", table)

    def forward(self, x):
        if x.size(1) > self.table.size(0):
            raise ValueError("sequence of %d exceeds max_len %d" % (x.size(1), self.table.size(0)))
        if x.size(2) != self.table.size(1):
            raise ValueError("width %d is not d_model %d" % (x.size(2), self.table.size(1)))
        return x + self.table[: x.size(1)].to(x.dtype)


class TransformerBlock(nn.Module):
    def __init__(self, d_model, num_heads, d_ff, dropout=0.0, causal=True):
        super().__init__()
        self.norm_1 = nn.LayerNorm(d_model)
        self.self_attn = MultiHeadAttention(d_model, num_heads, dropout, causal)
        self.norm_2 = nn.LayerNorm(d_model)
        self.mlp = FeedForward(d_model, d_ff, dropout)

    def forward(self, x):
        x = x + self.self_attn(self.norm_1(x))
        x = x + self.mlp(self.norm_2(x))
        return x


class TinyTransformerLM(nn.Module):
    def __init__(self, vocab_size, d_model, num_heads, num_layers, d_ff, block_size, dropout=0.0):
        super().__init__()
        self.block_size = block_size
        self.token_embedding = nn.Embedding(vocab_size, d_model)
        self.position = PositionalEncoding(d_model, block_size)
        self.layers = nn.ModuleList()
        for _ in range(num_layers):
            self.layers.append(TransformerBlock(d_model, num_heads, d_ff, dropout))
        self.final_norm = nn.LayerNorm(d_model)
        self.lm_head = nn.Linear(d_model, vocab_size)

    def forward(self, idx):
        h = self.position(self.token_embedding(idx))
        for layer in self.layers:
            h = layer(h)
        return self.lm_head(self.final_norm(h))

    def generate(self, idx, max_new_tokens, temperature=1.0, top_k=None, top_p=None):
        if not temperature >= 0 or max_new_tokens < 0 or idx.numel() == 0:
            raise ValueError("bad arguments")
        if top_k is not None and top_k < 1:
            raise ValueError("top_k must be >= 1, got %d" % top_k)
        if top_p is not None and not 0 < top_p <= 1:
            raise ValueError("top_p must be in (0, 1], got %s" % top_p)
        was_training = self.training
        self.eval()
        try:
            with torch.no_grad():
                for _ in range(max_new_tokens):
                    logits = self(idx[:, -self.block_size :])[:, -1]
                    idx = torch.cat((idx, self._next(logits, temperature, top_k, top_p).to(idx)), dim=1)
        finally:
            self.train(was_training)
        return idx

    @staticmethod
    def _next(logits, temperature, top_k, top_p):
        if temperature == 0:
            return logits.argmax(-1, keepdim=True)
        logits = logits / temperature
        if top_k is not None:
            kth = torch.topk(logits, min(top_k, logits.size(-1)))[0][:, -1:]
            logits = torch.where(logits < kth, torch.full_like(logits, -float("inf")), logits)
        if top_p is not None:
            values, where = torch.sort(logits, descending=True)
            remove = values.softmax(-1).cumsum(-1) >= top_p
            remove = torch.cat((torch.zeros_like(remove[:, :1]), remove[:, :-1]), dim=1)
            logits = logits.masked_fill(remove.scatter(1, where, remove), -float("inf"))
        return torch.multinomial(logits.softmax(-1), 1)
