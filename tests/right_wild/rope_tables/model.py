import torch
from torch import nn

from .attention import RMSNorm
from .block import Layer
from .rope import rope_tables


class CausalLM(nn.Module):
    def __init__(self, vocab_size, hidden_size, num_layers, num_heads, num_kv_heads, intermediate_size,
                 max_position_embeddings, rope_theta=10_000.0, eps=1e-6, qk_norm=False):
        super().__init__()
        self.max_position_embeddings, self.rope_theta = max_position_embeddings, rope_theta
        self.embed_tokens = nn.Embedding(vocab_size, hidden_size)
        self.layers = nn.ModuleList(
            Layer(hidden_size, num_heads, num_kv_heads, intermediate_size, eps, qk_norm) for _ in range(num_layers)
        )
        self.norm = RMSNorm(hidden_size, eps)
        self.lm_head = nn.Linear(hidden_size, vocab_size, bias=False)
        self.head_dim = hidden_size // num_heads

    def forward(self, input_ids):
        if input_ids.shape[1] > self.max_position_embeddings:
            raise ValueError(f"{input_ids.shape[1]} ids, at most {self.max_position_embeddings}")
        x = self.embed_tokens(input_ids)
        cos, sin = rope_tables(input_ids.shape[1], self.head_dim, self.rope_theta, device=x.device, dtype=x.dtype)
        for layer in self.layers:
            x = layer(x, cos, sin)
        return self.lm_head(self.norm(x))
