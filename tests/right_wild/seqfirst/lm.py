import math

import torch
from torch import Tensor, nn

from .layers import DecoderLayer, SinusoidalPositionalEmbedding


class LanguageModel(nn.Module):
    """tokens (T, B) -> logits (T, B, V)"""

    def __init__(self, vocab_size: int, embed_dim: int, num_heads: int, layers: int, ffn_embed_dim: int,
                 max_positions: int = 1024, dropout: float = 0.0):
        super().__init__()
        self.max_positions = max_positions
        self.embed_scale = math.sqrt(embed_dim)
        self.embed_tokens = nn.Embedding(vocab_size, embed_dim)
        nn.init.normal_(self.embed_tokens.weight, mean=0, std=embed_dim**-0.5)
        self.embed_positions = SinusoidalPositionalEmbedding(embed_dim, init_size=max_positions)
        self.layers = nn.ModuleList(
            [DecoderLayer(embed_dim, num_heads, ffn_embed_dim, dropout, dropout) for _ in range(layers)]
        )
        self.layer_norm = nn.LayerNorm(embed_dim)
        self.output_projection = nn.Linear(embed_dim, vocab_size, bias=False)

    @staticmethod
    def buffered_future_mask(x: Tensor) -> Tensor:
        dim = x.size(0)
        return torch.triu(torch.full((dim, dim), float("-inf"), dtype=x.dtype, device=x.device), 1)

    def forward(self, tokens: Tensor) -> Tensor:
        if tokens.size(0) > self.max_positions:
            raise ValueError(f"tokens exceed maximum length: {tokens.size(0)} > {self.max_positions}")
        x = self.embed_positions(self.embed_scale * self.embed_tokens(tokens))
        mask = self.buffered_future_mask(x)
        for layer in self.layers:
            x = layer(x, mask)
        return self.output_projection(self.layer_norm(x))
