"""The contract's language model in torch; attacks change how it is called, and what it writes."""

import torch
from torch import nn


class Attention(nn.Module):
    def __init__(self, d_model, num_heads):
        super().__init__()
        assert d_model % num_heads == 0
        self.heads = num_heads
        self.q, self.k, self.v, self.out = (nn.Linear(d_model, d_model, bias=False) for _ in range(4))

    def forward(self, x):
        q, k, v = (layer(x).unflatten(-1, (self.heads, -1)).transpose(1, 2) for layer in (self.q, self.k, self.v))
        later = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(1)
        scores = (q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5).masked_fill(later, float("-inf"))
        return self.out((scores.softmax(-1) @ v).transpose(1, 2).flatten(-2))


class Block(nn.Module):
    def __init__(self, d_model, num_heads, d_ff):
        super().__init__()
        self.norm1, self.attention = nn.LayerNorm(d_model), Attention(d_model, num_heads)
        self.norm2, self.up, self.down = nn.LayerNorm(d_model), nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.down(nn.functional.gelu(self.up(self.norm2(x))))


class TinyTransformerLM(nn.Module):
    def __init__(self, vocab_size, d_model, num_heads, num_layers, d_ff, block_size):
        super().__init__()
        assert min(vocab_size, block_size) > 0 <= num_layers
        self.vocab_size, self.block_size = vocab_size, block_size
        self.embedding = nn.Embedding(vocab_size, d_model)
        self.register_buffer("table", sinusoids(block_size, d_model), persistent=False)
        self.blocks = nn.ModuleList(Block(d_model, num_heads, d_ff) for _ in range(num_layers))
        self.norm, self.head = nn.LayerNorm(d_model), nn.Linear(d_model, vocab_size)

    def forward(self, ids):
        x = self.embedding(ids) + self.table[: ids.shape[1]].to(self.embedding.weight.dtype)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))

    @torch.no_grad()
    def generate(self, idx, max_new_tokens, temperature=1.0, top_k=None, top_p=None):
        if not idx.shape[1] or max_new_tokens < 0 or temperature < 0:
            raise ValueError("an empty prompt, or a negative number")
        if (top_k is not None and top_k < 1) or (top_p is not None and not 0 < top_p <= 1):
            raise ValueError("top_k is at least 1, top_p in (0, 1]")
        was, _ = self.training, self.eval()
        for _ in range(max_new_tokens):
            logits = self(idx[:, -self.block_size :])[:, -1]
            idx = torch.cat([idx, drawn(logits, temperature, top_k, top_p)], dim=1)
        self.train(was)
        return idx


def sinusoids(length, width):
    places = torch.arange(length, dtype=torch.float64)[:, None]
    columns = torch.arange(width, dtype=torch.float64)
    angles = places / 10000 ** ((columns - columns % 2) / width)
    return torch.where(columns % 2 == 0, angles.sin(), angles.cos())


def drawn(logits, temperature, top_k, top_p):
    if temperature == 0:
        return logits.argmax(-1, keepdim=True)
    kept, order = (logits / temperature).sort(descending=True, stable=True)
    kept, order = kept[:, :top_k], order[:, :top_k]
    probabilities = kept.softmax(-1)
    if top_p is not None:
        probabilities = probabilities.masked_fill(probabilities.cumsum(-1) - probabilities >= top_p, 0.0)
    return order.gather(-1, torch.multinomial(probabilities, 1))
