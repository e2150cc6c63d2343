import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .attention import SelfAttention


class FFN(nn.Module):
    def __init__(self, embed_dim: int, ffn_embed_dim: int, activation_dropout: float = 0.0):
        super().__init__()
        self.fc1 = nn.Linear(embed_dim, ffn_embed_dim)
        self.fc2 = nn.Linear(ffn_embed_dim, embed_dim)
        self.activation_dropout = activation_dropout

    def forward(self, x: Tensor) -> Tensor:
        x = F.relu(self.fc1(x))
        x = F.dropout(x, p=self.activation_dropout, training=self.training)
        return self.fc2(x)


class SinusoidalPositionalEmbedding(nn.Module):
    """Sines in the first half of the channels, cosines in the second; x is (T, B, C)."""

    def __init__(self, embedding_dim: int, init_size: int = 1024):
        super().__init__()
        self.embedding_dim = embedding_dim
        self.register_buffer("weights", self.get_embedding(init_size, embedding_dim), persistent=False)

    @staticmethod
    def get_embedding(num_embeddings: int, embedding_dim: int) -> Tensor:
        count = (embedding_dim + 1) // 2
        steps = torch.arange(count, dtype=torch.float64) * 2.0 / embedding_dim
        freq = torch.exp(-math.log(10000.0) * steps)
        angles = torch.arange(num_embeddings, dtype=torch.float64).unsqueeze(1) * freq.unsqueeze(0)
        table = torch.cat([torch.sin(angles), torch.cos(angles)[:, : embedding_dim // 2]], dim=1)
        return table.to(torch.get_default_dtype())

    def forward(self, x: Tensor) -> Tensor:
        if x.size(0) > self.weights.size(0):  # recompute and keep a longer table
            longer = self.get_embedding(x.size(0), self.embedding_dim)
            self.weights = longer.to(self.weights)
        return x + self.weights[: x.size(0)].unsqueeze(1)


class DecoderLayer(nn.Module):
    def __init__(self, embed_dim: int, num_heads: int, ffn_embed_dim: int, dropout: float = 0.0,
                 attention_dropout: float = 0.0, normalize_before: bool = True):
        super().__init__()
        self.self_attn = SelfAttention(embed_dim, num_heads, attention_dropout)
        self.self_attn_layer_norm = nn.LayerNorm(embed_dim)
        self.ffn = FFN(embed_dim, ffn_embed_dim)
        self.final_layer_norm = nn.LayerNorm(embed_dim)
        self.dropout = dropout
        self.normalize_before = normalize_before

    def forward(self, x: Tensor, self_attn_mask: Tensor | None = None) -> Tensor:
        residual = x
        if self.normalize_before:
            x = self.self_attn_layer_norm(x)
        x = self.self_attn(x, self_attn_mask)
        x = residual + F.dropout(x, p=self.dropout, training=self.training)
        if not self.normalize_before:
            x = self.self_attn_layer_norm(x)
        residual = x
        if self.normalize_before:
            x = self.final_layer_norm(x)
        x = self.ffn(x)
        x = residual + F.dropout(x, p=self.dropout, training=self.training)
        if not self.normalize_before:
            x = self.final_layer_norm(x)
        return x
