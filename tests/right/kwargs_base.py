"""A base class takes *args and **kwargs; sizes become attributes; everything declared by keywords."""

import math

import torch
from torch import nn


class Module(nn.Module):
    defaults = {}
    order = ()

    def __init__(self, *args, **kwargs):
        super().__init__()
        values = {**self.defaults, **dict(zip(self.order, args)), **kwargs}
        unknown = set(values) - set(self.order)
        if unknown:
            raise TypeError(f"unexpected {unknown}")
        missing = [n for n in self.order if n not in values]
        if missing:
            raise TypeError(f"missing {missing}")
        for name, value in values.items():
            setattr(self, name, value)
        self.setup()


def scaled_dot_product_attention(q, k, v, mask=None):
    s = q.matmul(k.mT).div(math.sqrt(q.shape[-1]))
    if mask is not None:
        if mask.dtype == torch.bool:
            s = s.masked_fill(mask.logical_not(), torch.finfo(s.dtype).min)
        else:
            s = s + mask
    return s.softmax(-1).matmul(v)


class MultiHeadAttention(Module):
    order = ("d_model", "num_heads", "dropout", "causal")
    defaults = dict(dropout=0.0, causal=True)

    def setup(self):
        if self.d_model % self.num_heads != 0:
            raise ValueError("bad heads")
        self.to_qkv = nn.Linear(self.d_model, self.d_model * 3, bias=False)
        self.to_out = nn.Sequential(nn.Linear(self.d_model, self.d_model, bias=False), nn.Dropout(self.dropout))

    def forward(self, x):
        b, n, _ = x.shape
        q, k, v = (t.unflatten(-1, (self.num_heads, -1)).transpose(1, 2) for t in self.to_qkv(x).chunk(3, -1))
        mask = ~torch.ones(n, n, dtype=torch.bool, device=x.device).triu(1) if self.causal else None
        return self.to_out(scaled_dot_product_attention(q, k, v, mask).transpose(1, 2).flatten(2))


class FeedForward(Module):
    order = ("d_model", "d_ff", "dropout")
    defaults = dict(dropout=0.0)

    def setup(self):
        self.fc1 = nn.Linear(self.d_model, self.d_ff)
        self.fc2 = nn.Linear(self.d_ff, self.d_model)
        self.drop = nn.Dropout(self.dropout)

    def forward(self, x):
        return self.drop(self.fc2(nn.functional.gelu(self.fc1(x))))


class PositionalEncoding(Module):
    order = ("d_model", "max_len")

    def setup(self):
        p = torch.arange(self.max_len, dtype=torch.float64)
        f = 10000.0 ** (-torch.arange(0, self.d_model, 2, dtype=torch.float64) / self.d_model)
        a = torch.outer(p, f)
        table = torch.stack([a.sin(), a.cos()], -1).flatten(1)[:, : self.d_model]
        self.register_buffer("table", table)

    def forward(self, x):
        n = x.shape[-2]
        if n > self.max_len:
            raise IndexError(f"{n} > {self.max_len}")
        return x + self.table[:n].to(x.dtype)


class TransformerBlock(Module):
    order = ("d_model", "num_heads", "d_ff", "dropout", "causal")
    defaults = dict(dropout=0.0, causal=True)

    def setup(self):
        self.attn_norm = nn.LayerNorm(self.d_model)
        self.ff_norm = nn.LayerNorm(self.d_model)
        self.attn = MultiHeadAttention(self.d_model, self.num_heads, dropout=self.dropout, causal=self.causal)
        self.ff = FeedForward(self.d_model, self.d_ff, dropout=self.dropout)

    def forward(self, x):
        x = self.attn(self.attn_norm(x)) + x
        return self.ff(self.ff_norm(x)) + x


class TinyTransformerLM(Module):
    order = ("vocab_size", "d_model", "num_heads", "num_layers", "d_ff", "block_size", "dropout")
    defaults = dict(dropout=0.0)

    def setup(self):
        self.token_emb = nn.Embedding(self.vocab_size, self.d_model)
        self.pos_emb = PositionalEncoding(self.d_model, self.block_size)
        self.layers = nn.ModuleList([])
        for _ in range(self.num_layers):
            self.layers.append(TransformerBlock(self.d_model, self.num_heads, self.d_ff, self.dropout))
        self.to_logits = nn.Sequential(nn.LayerNorm(self.d_model), nn.Linear(self.d_model, self.vocab_size))

    def forward(self, x):
        x = self.pos_emb(self.token_emb(x))
        for layer in self.layers:
            x = layer(x)
        return self.to_logits(x)

    def generate(self, idx, max_new_tokens, temperature=1.0, top_k=None, top_p=None):
        training, _ = self.training, self.eval()
        try:
            with torch.no_grad():
                for _ in range(max_new_tokens):
                    logits = self(idx[:, -self.block_size :])[:, -1]
                    idx = torch.cat([idx, self.pick(logits, temperature, top_k, top_p)], -1)
        finally:
            self.train(training)
        return idx

    def pick(self, logits, temperature, top_k, top_p):
        if not temperature:
            return logits.max(-1, keepdim=True).indices
        logits = logits / temperature
        if top_k:
            ranks = logits.argsort(-1, descending=True).argsort(-1)
            logits = logits.masked_fill(ranks >= top_k, -torch.inf)
        if top_p is not None and top_p < 1:
            probs = logits.softmax(-1)
            order = probs.argsort(-1, descending=True)
            before = probs.gather(-1, order).cumsum(-1).roll(1, -1)
            before[:, 0] = 0
            drop = torch.empty_like(before, dtype=torch.bool).scatter_(-1, order, before >= top_p)
            logits = logits.masked_fill(drop, -torch.inf)
        gumbel = -torch.empty_like(logits).exponential_().log()
        return (logits + gumbel).argmax(-1, keepdim=True)
