"""Float32 and nothing else: everything of another type is refused."""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn


def expect_float32(**tensors: Tensor) -> None:
    for name, tensor in tensors.items():
        if tensor.dtype != torch.float32:
            raise TypeError(f"{name} is {tensor.dtype}, this code is float32 only")


def scaled_dot_product_attention(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
    expect_float32(q=q, k=k, v=v)
    scores = torch.matmul(q, k.transpose(-2, -1)) * torch.rsqrt(torch.tensor(float(q.size(-1))))
    if mask is not None:
        if mask.dtype == torch.bool:
            scores = torch.where(mask.expand_as(scores), scores, torch.tensor(-3.0e38))
        else:
            expect_float32(mask=mask)
            scores = (scores + mask.expand_as(scores)).clamp_min(-3.0e38)
    return torch.matmul(F.softmax(scores, dim=-1), v)


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model: int, num_heads: int, dropout: float = 0.0, causal: bool = True):
        super().__init__()
        if num_heads < 1 or d_model % num_heads != 0:
            raise ValueError(f"d_model ({d_model}) must be a multiple of num_heads ({num_heads})")
        self.num_heads, self.causal = num_heads, causal
        self.in_proj = nn.Linear(d_model, 3 * d_model, bias=False, dtype=torch.float32)
        self.out_proj = nn.Linear(d_model, d_model, bias=False, dtype=torch.float32)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        expect_float32(x=x)
        B, T, D = x.size()
        qkv = self.in_proj(x).reshape(B, T, 3, self.num_heads, D // self.num_heads).permute(2, 0, 3, 1, 4)
        mask = torch.ones(T, T, dtype=torch.bool, device=x.device).tril() if self.causal else None
        y = scaled_dot_product_attention(qkv[0], qkv[1], qkv[2], mask)
        return self.dropout(self.out_proj(y.permute(0, 2, 1, 3).reshape(B, T, D)))


class FeedForward(nn.Module):
    def __init__(self, d_model: int, d_ff: int, dropout: float = 0.0):
        super().__init__()
        self.fc1, self.fc2 = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        expect_float32(x=x)
        return self.dropout(self.fc2(F.gelu(self.fc1(x))))


class PositionalEncoding(nn.Module):
    def __init__(self, d_model: int, max_len: int):
        super().__init__()
        pe = torch.zeros(max_len, d_model, dtype=torch.float32)
        pos = torch.arange(max_len, dtype=torch.float32).unsqueeze(1)
        div = torch.exp(torch.arange(0, d_model, 2).float() * (-math.log(10000.0) / d_model))
        pe[:, 0::2], pe[:, 1::2] = torch.sin(pos * div), torch.cos(pos * div)[:, : d_model // 2]
        self.register_buffer("pe", pe, persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        expect_float32(x=x)
        if x.size(1) > self.pe.size(0) or x.size(2) != self.pe.size(1):
            raise ValueError(f"x {tuple(x.size())} exceeds the table {tuple(self.pe.size())}")
        return x + self.pe[: x.size(1)]


class TransformerBlock(nn.Module):
    def __init__(self, d_model: int, num_heads: int, d_ff: int, dropout: float = 0.0, causal: bool = True):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(d_model), nn.LayerNorm(d_model)
        self.attn = MultiHeadAttention(d_model, num_heads, dropout, causal)
        self.ffn = FeedForward(d_model, d_ff, dropout)

    def forward(self, x: Tensor) -> Tensor:
        h = x + self.attn(self.norm1(x))
        return h + self.ffn(self.norm2(h))


class TinyTransformerLM(nn.Module):
    def __init__(
        self, vocab_size: int, d_model: int, num_heads: int, num_layers: int, d_ff: int, block_size: int,
        dropout: float = 0.0,
    ):  # fmt: skip
        super().__init__()
        self.block_size = block_size
        self.tok_embed = nn.Embedding(vocab_size, d_model)
        self.pos_embed = PositionalEncoding(d_model, block_size)
        self.blocks = nn.ModuleList(TransformerBlock(d_model, num_heads, d_ff, dropout) for _ in range(num_layers))
        self.norm_f = nn.LayerNorm(d_model)
        self.lm_head = nn.Linear(d_model, vocab_size)

    def forward(self, idx: Tensor) -> Tensor:
        x = self.pos_embed(self.tok_embed(idx))
        for block in self.blocks:
            x = block(x)
        return self.lm_head(self.norm_f(x))

    @torch.no_grad()
    def generate(self, idx: Tensor, max_new_tokens: int, temperature: float = 1.0, top_k: int | None = None) -> Tensor:
        if idx.size(1) == 0 or max_new_tokens < 0 or not temperature >= 0 or (top_k is not None and top_k < 1):
            raise ValueError(f"{tuple(idx.size())=} {max_new_tokens=} {temperature=} {top_k=}")
        modes = {m: m.training for m in self.modules()}
        self.eval()
        try:
            for _ in range(max_new_tokens):
                logits = self(idx[:, -self.block_size :])[:, -1]
                best = logits.topk(logits.size(-1) if top_k is None else min(top_k, logits.size(-1)), dim=-1)
                if temperature == 0:
                    chosen = best.indices[:, :1]
                else:
                    p = F.softmax((best.values - best.values[:, :1]) / temperature, dim=-1)
                    chosen = best.indices.gather(1, torch.multinomial(p, 1))
                idx = torch.cat([idx, chosen.to(idx.dtype)], dim=1)
        finally:
            for m, mode in modes.items():
                m.training = mode
        return idx
