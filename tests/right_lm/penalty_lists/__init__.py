"""Penalties as plain Python over lists, one row at a time: the prompt counts, as in llama.cpp."""

import math
import random

import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, d_model, num_heads, d_ff, dropout):
        super().__init__()
        if num_heads < 1 or d_model % num_heads:
            raise ValueError(f"d_model {d_model}, num_heads {num_heads}")
        self.num_heads = num_heads
        self.q, self.k, self.v, self.o = (nn.Linear(d_model, d_model, bias=False) for _ in range(4))
        self.up, self.down, self.drop = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model), nn.Dropout(dropout)
        self.first, self.second = nn.LayerNorm(d_model), nn.LayerNorm(d_model)

    def forward(self, x):
        y = self.first(x)
        q, k, v = (part(y).unflatten(-1, (self.num_heads, -1)).transpose(1, 2) for part in (self.q, self.k, self.v))
        mixed = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.drop(self.o(mixed.transpose(1, 2).flatten(2)))
        return x + self.drop(self.down(nn.functional.gelu(self.up(self.second(x)))))


class TinyTransformerLM(nn.Module):
    def __init__(self, vocab_size, d_model, num_heads, num_layers, d_ff, block_size, dropout=0.0):
        super().__init__()
        self.block_size, self.vocab_size = block_size, vocab_size
        self.embedding = nn.Embedding(vocab_size, d_model)
        angles = [[t / 10000 ** ((i - i % 2) / d_model) for i in range(d_model)] for t in range(block_size)]
        codes = [[math.cos(a) if i % 2 else math.sin(a) for i, a in enumerate(row)] for row in angles]
        self.register_buffer("codes", torch.tensor(codes, dtype=torch.float64))
        self.blocks = nn.ModuleList(Block(d_model, num_heads, d_ff, dropout) for _ in range(num_layers))
        self.norm, self.head = nn.LayerNorm(d_model), nn.Linear(d_model, vocab_size)

    def forward(self, idx):
        if idx.shape[1] > self.block_size:
            raise ValueError(f"{idx.shape[1]} ids, block_size is {self.block_size}")
        x = self.embedding(idx)
        x = x + self.codes[: idx.shape[1]].to(x.dtype)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))

    @torch.no_grad()
    def generate(
        self, idx, max_new_tokens, temperature=1.0, seed=None, rep_penalty=1.0, freq_penalty=0.0, pres_penalty=0.0,
        min_p=0.0, no_repeat_ngram=0,
    ):  # fmt: skip
        if (
            not temperature >= 0
            or not rep_penalty > 0
            or not 0 <= min_p <= 1
            or idx.shape[1] == 0
            or max_new_tokens < 0
        ):
            raise ValueError(f"{temperature=}, {rep_penalty=}, {min_p=}, {max_new_tokens=}, prompt {tuple(idx.shape)}")
        was, dice = self.training, random.Random(int(torch.randint(1 << 62, ())) if seed is None else seed)
        self.eval()
        rows = idx.tolist()
        try:
            for _ in range(max_new_tokens):
                context = torch.tensor([row[-self.block_size :] for row in rows], device=idx.device)
                for row, logits in zip(rows, self(context)[:, -1].tolist(), strict=True):
                    for i in set(row):
                        logits[i] = logits[i] * rep_penalty if logits[i] < 0 else logits[i] / rep_penalty
                        logits[i] -= pres_penalty + freq_penalty * row.count(i)
                    for i in banned(row, no_repeat_ngram):
                        logits[i] = -math.inf
                    row.append(drawn(logits, temperature, min_p, dice))
        finally:
            self.train(was)
        return torch.tensor(rows, dtype=idx.dtype, device=idx.device).view(len(rows), -1)


def banned(row, n):
    """The ids that followed the last n - 1 ids somewhere before."""
    if not n:
        return []
    start = len(row) - n + 1
    return [row[i + n - 1] for i in range(start) if row[i : i + n - 1] == row[start:]]


def drawn(logits, temperature, min_p, dice):
    best = max(logits)
    if temperature == 0:
        return logits.index(best)
    weights = [math.exp((z - best) / temperature) for z in logits]
    weights = [w if w >= min_p else 0.0 for w in weights]  # the best has weight 1
    return dice.choices(range(len(weights)), weights)[0]
