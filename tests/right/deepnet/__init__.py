"""DeepNet, a decoder alone: the factor of the stream is computed once, weights start smaller by another one."""

import torch
import torch.nn.functional as F
from torch import nn


class SelfAttn(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        if heads < 1 or width % heads:
            raise ValueError(f"width {width} for {heads} heads")
        self.heads = heads
        self.in_proj, self.out_proj = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x):
        q, k, v = (part.unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in self.in_proj(x).chunk(3, -1))
        return self.out_proj(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))


class Wide(nn.Sequential):
    def __init__(self, width, hidden):
        if min(width, hidden) < 1:
            raise ValueError(f"width {width}, hidden {hidden}: want at least 1")
        super().__init__(nn.Linear(width, hidden), nn.ReLU(), nn.Linear(hidden, width))


class DeepLayer(nn.Module):
    def __init__(self, width, heads, hidden, alpha):
        super().__init__()
        self.alpha = alpha
        self.self_attn, self.mlp = SelfAttn(width, heads), Wide(width, hidden)
        self.self_attn_norm, self.final_norm = nn.LayerNorm(width), nn.LayerNorm(width)

    def forward(self, x):
        x = self.self_attn_norm(torch.add(self.self_attn(x), x, alpha=self.alpha))
        return self.final_norm(torch.add(self.mlp(x), x, alpha=self.alpha))


class DeepNet(nn.Module):
    def __init__(self, vocab, width, heads, depth, hidden, context):
        super().__init__()
        if min(vocab, depth, context) < 1:
            raise ValueError(f"vocab {vocab}, depth {depth}, context {context}: want at least 1")
        alpha, beta = (2 * depth) ** 0.25, (8 * depth) ** -0.25
        self.tokens, self.places = nn.Embedding(vocab, width), nn.Embedding(context, width)
        nn.init.normal_(self.tokens.weight, std=0.02)
        nn.init.normal_(self.places.weight, std=0.02)
        self.layers = nn.ModuleList(DeepLayer(width, heads, hidden, alpha) for _ in range(depth))
        for layer in self.layers:
            for linear in (layer.self_attn.out_proj, layer.mlp[0], layer.mlp[2]):
                nn.init.xavier_normal_(linear.weight, gain=beta)

    def forward(self, ids):
        if ids.shape[1] > self.places.num_embeddings:
            raise ValueError(f"{ids.shape[1]} ids, at most {self.places.num_embeddings}")
        x = self.tokens(ids) + self.places.weight[: ids.shape[1]]
        for layer in self.layers:
            x = layer(x)
        return F.linear(x, self.tokens.weight)
