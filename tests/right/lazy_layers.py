"""Lazy layers that learn their widths at the first call; they are declared, and still refuse a wrong width."""

import torch
from torch import nn


def scaled_dot_product_attention(q, k, v, mask=None):
    s = torch.matmul(q, k.transpose(-1, -2)) / q.shape[-1] ** 0.5
    if mask is not None:
        if mask.dtype == torch.bool:
            mask = torch.zeros(mask.shape, dtype=s.dtype, device=s.device).masked_fill(~mask, float("-inf"))
        if not mask.is_floating_point():
            raise TypeError(f"{mask.dtype} is no type for a mask")
        s = s + mask.expand(s.shape).to(s.dtype)
    return torch.matmul(torch.softmax(s.clamp(min=torch.finfo(s.dtype).min), dim=-1), v)


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, num_heads, dropout=0.0, causal=True):
        super().__init__()
        if num_heads < 1 or d_model % num_heads:
            raise ValueError(f"{d_model} is not a multiple of {num_heads}")
        self.d_model, self.num_heads, self.causal = d_model, num_heads, causal
        self.W_q, self.W_k, self.W_v, self.W_o = (nn.LazyLinear(d_model, bias=False) for _ in range(4))
        self.dropout = nn.Dropout(dropout)

    def split(self, x):
        return x.reshape(x.shape[0], x.shape[1], self.num_heads, -1).permute(0, 2, 1, 3)

    def forward(self, x):
        if x.shape[2] != self.d_model:
            raise ValueError(f"x is {x.shape[2]} wide, want {self.d_model}")
        mask = torch.ones(x.shape[1], x.shape[1], device=x.device).tril() > 0 if self.causal else None
        out = scaled_dot_product_attention(
            self.split(self.W_q(x)), self.split(self.W_k(x)), self.split(self.W_v(x)), mask
        )
        return self.dropout(self.W_o(out.permute(0, 2, 1, 3).reshape(x.shape)))


class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff, dropout=0.0):
        super().__init__()
        self.d_model = d_model
        self.dense1, self.dense2 = nn.LazyLinear(d_ff), nn.LazyLinear(d_model)
        self.gelu, self.dropout = nn.GELU(), nn.Dropout(dropout)

    def forward(self, x):
        assert x.shape[-1] == self.d_model, f"x is {x.shape[-1]} wide, want {self.d_model}"
        return self.dense2(self.dropout(self.gelu(self.dense1(x))))


class PositionalEncoding(nn.Module):
    def __init__(self, d_model, max_len):
        super().__init__()
        self.P = torch.zeros((1, max_len, d_model))
        X = torch.arange(max_len, dtype=torch.float32).reshape(-1, 1)
        X = X / torch.pow(10000, torch.arange(0, d_model, 2, dtype=torch.float32) / d_model)
        self.P[:, :, 0::2] = torch.sin(X)
        self.P[:, :, 1::2] = torch.cos(X[:, : d_model // 2])

    def forward(self, X):
        if X.shape[1] > self.P.shape[1] or X.shape[2] != self.P.shape[2]:
            raise ValueError(f"{tuple(X.shape)} does not fit {tuple(self.P.shape)}")
        return X + self.P[:, : X.shape[1], :].to(X.device, X.dtype)


class TransformerBlock(nn.Module):
    def __init__(self, d_model, num_heads, d_ff, dropout=0.0, causal=True):
        super().__init__()
        self.attention, self.ffn = (
            MultiHeadAttention(d_model, num_heads, dropout, causal),
            FeedForward(d_model, d_ff, dropout),
        )
        self.ln1, self.ln2 = nn.LayerNorm(d_model), nn.LayerNorm(d_model)

    def forward(self, X):
        Y = X + self.attention(self.ln1(X))
        return Y + self.ffn(self.ln2(Y))


class TinyTransformerLM(nn.Module):
    def __init__(self, vocab_size, d_model, num_heads, num_layers, d_ff, block_size, dropout=0.0):
        super().__init__()
        self.block_size = block_size
        self.embedding, self.pos_encoding = nn.Embedding(vocab_size, d_model), PositionalEncoding(d_model, block_size)
        self.blks = nn.Sequential()
        for i in range(num_layers):
            self.blks.add_module(f"block{i}", TransformerBlock(d_model, num_heads, d_ff, dropout))
        self.ln, self.dense = nn.LayerNorm(d_model), nn.LazyLinear(vocab_size)

    def forward(self, X):
        return self.dense(self.ln(self.blks(self.pos_encoding(self.embedding(X)))))

    @torch.no_grad()
    def generate(self, prefix, max_new_tokens, temperature=1.0):
        if prefix.shape[1] == 0 or max_new_tokens < 0 or not temperature >= 0:
            raise ValueError(f"{tuple(prefix.shape)}, {max_new_tokens}, {temperature}")
        modes = [(m, m.training) for m in self.modules()]
        self.eval()
        outputs = [prefix]
        try:
            for _ in range(max_new_tokens):
                Y = self(torch.cat(outputs, dim=1)[:, -self.block_size :])[:, -1:]
                if temperature == 0:
                    outputs.append(Y.argmax(dim=2).to(prefix.dtype))
                else:
                    p = torch.softmax(Y[:, 0] / temperature, dim=1)
                    outputs.append(torch.multinomial(p, 1).to(prefix.dtype))
        finally:
            for m, mode in modes:
                m.training = mode
        return torch.cat(outputs, dim=1)
