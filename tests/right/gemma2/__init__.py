"""Modules with names as in published checkpoints: four norms a layer that multiply by 1 + weight, computed in float32 or wider."""

import torch
from torch import nn
from torch.nn import functional as F


class RMSNorm(nn.Module):
    def __init__(self, dim, eps=1e-6):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.zeros(dim))

    def forward(self, x):
        wide = x if x.dtype == torch.float64 else x.float()
        wide = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + self.eps)
        return (wide * (1.0 + self.weight.to(wide.dtype))).type_as(x)


class Attention(nn.Module):
    def __init__(self, hidden_size, num_heads):
        super().__init__()
        if num_heads < 1 or hidden_size % num_heads or hidden_size // num_heads % 2:
            raise ValueError(f"{num_heads} heads do not divide {hidden_size} into even parts")
        self.head_dim, self.num_heads = hidden_size // num_heads, num_heads
        self.q_proj = nn.Linear(hidden_size, hidden_size, bias=False)
        self.k_proj = nn.Linear(hidden_size, self.head_dim, bias=False)
        self.v_proj = nn.Linear(hidden_size, self.head_dim, bias=False)
        self.o_proj = nn.Linear(hidden_size, hidden_size, bias=False)

    def rotated(self, x):
        positions = torch.arange(x.shape[-2], dtype=torch.float64, device=x.device)
        steps = torch.arange(0, self.head_dim, 2, dtype=torch.float64, device=x.device) / self.head_dim
        angles = (positions[:, None] / 10000.0**steps).repeat(1, 2)
        half = torch.cat((-x[..., self.head_dim // 2 :], x[..., : self.head_dim // 2]), dim=-1)
        return x * angles.cos().to(x.dtype) + half * angles.sin().to(x.dtype)

    def forward(self, x):
        q = self.rotated(self.q_proj(x).unflatten(-1, (self.num_heads, -1)).transpose(1, 2))
        k = self.rotated(self.k_proj(x).unsqueeze(1))
        scores = q @ k.transpose(-2, -1) * self.head_dim**-0.5
        scores = 50.0 * torch.tanh(scores / 50.0)
        later = torch.ones(scores.shape[-2:], dtype=torch.bool, device=x.device).triu(1)
        weights = scores.masked_fill(later, float("-inf")).softmax(dim=-1)
        return self.o_proj((weights @ self.v_proj(x).unsqueeze(1)).transpose(1, 2).flatten(2))


class MLP(nn.Module):
    def __init__(self, hidden_size, intermediate_size):
        super().__init__()
        self.gate_proj = nn.Linear(hidden_size, intermediate_size, bias=False)
        self.up_proj = nn.Linear(hidden_size, intermediate_size, bias=False)
        self.down_proj = nn.Linear(intermediate_size, hidden_size, bias=False)

    def forward(self, x):
        return self.down_proj(F.gelu(self.gate_proj(x), approximate="tanh") * self.up_proj(x))


class DecoderLayer(nn.Module):
    def __init__(self, hidden_size, num_heads, intermediate_size):
        super().__init__()
        self.self_attn = Attention(hidden_size, num_heads)
        self.mlp = MLP(hidden_size, intermediate_size)
        self.input_layernorm = RMSNorm(hidden_size)
        self.post_attention_layernorm = RMSNorm(hidden_size)
        self.pre_feedforward_layernorm = RMSNorm(hidden_size)
        self.post_feedforward_layernorm = RMSNorm(hidden_size)

    def forward(self, hidden_states):
        hidden_states = hidden_states + self.post_attention_layernorm(
            self.self_attn(self.input_layernorm(hidden_states))
        )
        fed = self.mlp(self.pre_feedforward_layernorm(hidden_states))
        return hidden_states + self.post_feedforward_layernorm(fed)


class CausalLM(nn.Module):
    def __init__(self, vocab_size, hidden_size, num_heads, num_layers, intermediate_size, max_positions):
        super().__init__()
        self.max_positions = max_positions
        self.embed_tokens = nn.Embedding(vocab_size, hidden_size)
        nn.init.normal_(self.embed_tokens.weight, std=0.02)
        self.layers = nn.ModuleList(DecoderLayer(hidden_size, num_heads, intermediate_size) for _ in range(num_layers))
        self.norm = RMSNorm(hidden_size)

    def forward(self, input_ids):
        if input_ids.shape[-1] > self.max_positions:
            raise ValueError(f"{input_ids.shape[-1]} ids, at most {self.max_positions}")
        x = self.embed_tokens(input_ids) * self.embed_tokens.embedding_dim**0.5
        for layer in self.layers:
            x = layer(x)
        logits = self.norm(x) @ self.embed_tokens.weight.T
        return 30.0 * torch.tanh(logits / 30.0)
