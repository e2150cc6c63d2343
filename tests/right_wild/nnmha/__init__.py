"""Decoder-only LM around torch.nn.MultiheadAttention."""
import torch
from torch import nn


class Attention(nn.Module):
    def __init__(self, dim, n_heads, dropout=0.0):
        super().__init__()
        self.mha = nn.MultiheadAttention(dim, n_heads, dropout=dropout, bias=False, batch_first=True)

    def forward(self, x, need_weights=False):
        n = x.shape[1]
        # nn.MultiheadAttention: True = not allowed
        blocked = torch.triu(torch.ones(n, n, dtype=torch.bool, device=x.device), diagonal=1)
        out, weights = self.mha(x, x, x, attn_mask=blocked, need_weights=need_weights, average_attn_weights=False)
        return out, weights


class Mlp(nn.Module):
    def __init__(self, dim, hidden, dropout=0.0):
        super().__init__()
        self.fc1 = nn.Linear(dim, hidden)
        self.act = nn.ReLU()
        self.fc2 = nn.Linear(hidden, dim)
        self.drop = nn.Dropout(dropout)

    def forward(self, x):
        return self.drop(self.fc2(self.drop(self.act(self.fc1(x)))))


class DecoderBlock(nn.Module):
    """Post-norm block; returns the activations and the attention weights (or None)."""

    def __init__(self, dim, n_heads, hidden, dropout=0.0):
        super().__init__()
        self.attn = Attention(dim, n_heads, dropout)
        self.norm_1 = nn.LayerNorm(dim)
        self.mlp = Mlp(dim, hidden, dropout)
        self.norm_2 = nn.LayerNorm(dim)

    def forward(self, x, need_weights=False):
        y, weights = self.attn(x, need_weights)
        x = self.norm_1(x + y)
        return self.norm_2(x + self.mlp(x)), weights


class Positions(nn.Module):
    def __init__(self, max_len, dim):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(max_len, dim))
        nn.init.trunc_normal_(self.weight, std=0.02)

    def forward(self, x):
        if x.shape[1] > len(self.weight):
            raise ValueError("sequence too long: %d > %d" % (x.shape[1], len(self.weight)))
        return x + self.weight[: x.shape[1]]


class TextModel(nn.Module):
    def __init__(self, n_tokens, max_len, dim, n_heads, hidden, n_blocks, dropout=0.0):
        super().__init__()
        self.emb = nn.Embedding(n_tokens, dim)
        nn.init.trunc_normal_(self.emb.weight, std=0.02)
        self.pos = Positions(max_len, dim)
        self.blocks = nn.ModuleList([DecoderBlock(dim, n_heads, hidden, dropout) for _ in range(n_blocks)])
        self.classifier = nn.Linear(dim, n_tokens)

    def forward(self, tokens, need_weights=False):
        x = self.pos(self.emb(tokens))
        maps = []
        for block in self.blocks:
            x, weights = block(x, need_weights)
            maps.append(weights)
        logits = self.classifier(x)
        return (logits, maps) if need_weights else logits
