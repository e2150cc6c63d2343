"""A small decoder-only model for the tokenizer's ids."""

import torch
from torch import nn
from torch.nn import functional as F


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, num_heads, dropout=0.0, causal=True):
        super().__init__()
        if num_heads < 1 or d_model % num_heads:
            raise ValueError("d_model must be a multiple of num_heads")
        self.num_heads, self.causal = num_heads, causal
        self.q_proj = nn.Linear(d_model, d_model, bias=False)
        self.k_proj = nn.Linear(d_model, d_model, bias=False)
        self.v_proj = nn.Linear(d_model, d_model, bias=False)
        self.o_proj = nn.Linear(d_model, d_model, bias=False)
        self.resid_drop = nn.Dropout(dropout)

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = (
            proj(x).reshape(b, t, self.num_heads, d // self.num_heads).swapaxes(1, 2)
            for proj in (self.q_proj, self.k_proj, self.v_proj)
        )
        y = F.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        return self.resid_drop(self.o_proj(y.swapaxes(1, 2).reshape(b, t, d)))


class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff, dropout=0.0):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(d_model, d_ff), nn.GELU(), nn.Linear(d_ff, d_model), nn.Dropout(dropout)
        )

    def forward(self, x):
        return self.layers(x)


class PositionalEncoding(nn.Module):
    def __init__(self, d_model, max_len):
        super().__init__()
        self.max_len = max_len
        i = torch.arange(d_model, dtype=torch.float64)
        angles = torch.arange(max_len, dtype=torch.float64)[:, None] / 10000 ** (2 * (i // 2) / d_model)
        self.table = torch.where(i % 2 == 0, angles.sin(), angles.cos())

    def forward(self, x):
        if x.shape[-2] > self.max_len:
            raise ValueError(f"{x.shape[-2]} positions, the table has {self.max_len}")
        return x + self.table[: x.shape[-2]].to(x)


class TransformerBlock(nn.Module):
    def __init__(self, d_model, num_heads, d_ff, dropout=0.0, causal=True):
        super().__init__()
        self.attn_norm = nn.LayerNorm(d_model)
        self.attn = MultiHeadAttention(d_model, num_heads, dropout, causal)
        self.ffn_norm = nn.LayerNorm(d_model)
        self.ffn = FeedForward(d_model, d_ff, dropout)

    def forward(self, x):
        x = x + self.attn(self.attn_norm(x))
        return x + self.ffn(self.ffn_norm(x))


class TinyTransformerLM(nn.Module):
    def __init__(self, vocab_size, d_model, num_heads, num_layers, d_ff, block_size, dropout=0.0):
        super().__init__()
        self.block_size = block_size
        self.embed = nn.Embedding(vocab_size, d_model)
        self.positions = PositionalEncoding(d_model, block_size)
        self.blocks = nn.Sequential(
            *(TransformerBlock(d_model, num_heads, d_ff, dropout) for _ in range(num_layers))
        )
        self.final_norm = nn.LayerNorm(d_model)
        self.head = nn.Linear(d_model, vocab_size)
        nn.init.zeros_(self.head.bias)

    def forward(self, ids):
        return self.head(self.final_norm(self.blocks(self.positions(self.embed(ids)))))

    @torch.no_grad()
    def generate(self, ids, max_new_tokens, temperature=1.0, top_k=None, eos_id=None):
        modes = [(module, module.training) for module in self.modules()]
        self.eval()
        ended = torch.zeros(len(ids), dtype=torch.bool, device=ids.device)
        for _ in range(max_new_tokens):
            logits = self(ids[:, -self.block_size :])[:, -1]
            if temperature == 0:
                new = logits.argmax(dim=-1)
            else:
                values, order = (logits / temperature).sort(dim=-1, descending=True)
                p = values.softmax(dim=-1)
                if top_k is not None:
                    p[:, top_k:] = 0
                new = order.gather(1, torch.multinomial(p, 1))[:, 0]
            if eos_id is not None:
                new = new.masked_fill(ended, eos_id)
                ended |= new == eos_id
            ids = torch.cat([ids, new[:, None]], dim=1)
            if ended.all():
                break
        for module, training in modes:
            module.training = training
        return ids
