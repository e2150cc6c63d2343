"""A decoder-only model made of T5's layers: scores are not divided, and the first layer's bias serves all layers."""

import math

import torch
from torch import nn
from torch.nn import functional as F


class T5LayerNorm(nn.Module):
    def __init__(self, hidden_size, eps=1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(hidden_size))
        self.variance_epsilon = eps

    def forward(self, hidden_states):
        variance = hidden_states.pow(2).mean(-1, keepdim=True)
        return self.weight * (hidden_states * torch.rsqrt(variance + self.variance_epsilon))


class T5DenseActDense(nn.Module):
    def __init__(self, d_model, d_ff, dropout=0.0):
        super().__init__()
        self.wi = nn.Linear(d_model, d_ff, bias=False)
        self.wo = nn.Linear(d_ff, d_model, bias=False)
        self.dropout = nn.Dropout(dropout)

    def forward(self, hidden_states):
        return self.dropout(self.wo(F.relu(self.wi(hidden_states))))


class T5Attention(nn.Module):
    def __init__(
        self, d_model, num_heads, dropout=0.0, causal=True, has_relative_attention_bias=True, buckets=32, distance=128
    ):
        super().__init__()
        if d_model % num_heads:
            raise ValueError(f"d_model {d_model} is no multiple of num_heads {num_heads}")
        self.is_decoder = causal
        self.relative_attention_num_buckets = buckets
        self.relative_attention_max_distance = distance
        self.key_value_proj_dim = d_model // num_heads
        self.n_heads = num_heads
        self.q = nn.Linear(d_model, d_model, bias=False)
        self.k = nn.Linear(d_model, d_model, bias=False)
        self.v = nn.Linear(d_model, d_model, bias=False)
        self.o = nn.Linear(d_model, d_model, bias=False)
        self.dropout = nn.Dropout(dropout)
        self.has_relative_attention_bias = has_relative_attention_bias
        if has_relative_attention_bias:
            self.relative_attention_bias = nn.Embedding(buckets, num_heads)

    def _bucket(self, relative_position):
        num_buckets, relative_buckets = self.relative_attention_num_buckets, 0
        if self.is_decoder:
            relative_position = -torch.min(relative_position, torch.zeros_like(relative_position))
        else:
            num_buckets //= 2
            relative_buckets = (relative_position > 0).to(torch.long) * num_buckets
            relative_position = torch.abs(relative_position)
        max_exact = num_buckets // 2
        is_small = relative_position < max_exact
        if_large = max_exact + (
            torch.log(relative_position.float() / max_exact)
            / math.log(self.relative_attention_max_distance / max_exact)
            * (num_buckets - max_exact)
        ).to(torch.long)
        if_large = torch.min(if_large, torch.full_like(if_large, num_buckets - 1))
        return relative_buckets + torch.where(is_small, relative_position, if_large)

    def compute_bias(self, length, device):
        context = torch.arange(length, device=device)[:, None]
        memory = torch.arange(length, device=device)[None, :]
        values = self.relative_attention_bias(self._bucket(memory - context))
        values = values.permute([2, 0, 1]).unsqueeze(0)
        if self.is_decoder:
            values = values.masked_fill(memory > context, -math.inf)
        return values

    def forward(self, hidden_states, position_bias=None):
        B, T, _ = hidden_states.shape
        if position_bias is None:
            position_bias = self.compute_bias(T, hidden_states.device)

        def shape(states):
            return states.view(B, T, self.n_heads, self.key_value_proj_dim).transpose(1, 2)

        scores = shape(self.q(hidden_states)) @ shape(self.k(hidden_states)).transpose(3, 2)
        weights = F.softmax(scores + position_bias, dim=-1)
        context = (weights @ shape(self.v(hidden_states))).transpose(1, 2).reshape(B, T, -1)
        return self.dropout(self.o(context)), position_bias


class T5Block(nn.Module):
    def __init__(self, d_model, num_heads, d_ff, dropout=0.0, causal=True, has_relative_attention_bias=True):
        super().__init__()
        self.SelfAttention = T5Attention(d_model, num_heads, dropout, causal, has_relative_attention_bias)
        self.DenseReluDense = T5DenseActDense(d_model, d_ff, dropout)
        self.attn_norm = T5LayerNorm(d_model)
        self.ff_norm = T5LayerNorm(d_model)

    def forward(self, hidden_states, position_bias=None):
        attended, position_bias = self.SelfAttention(self.attn_norm(hidden_states), position_bias)
        hidden_states = hidden_states + attended
        return hidden_states + self.DenseReluDense(self.ff_norm(hidden_states)), position_bias


class T5Decoder(nn.Module):
    def __init__(self, vocab_size, d_model, num_heads, num_layers, d_ff, block_size, dropout=0.0):
        super().__init__()
        self.block_size = block_size
        self.embed_tokens = nn.Embedding(vocab_size, d_model)
        self.block = nn.ModuleList(
            T5Block(d_model, num_heads, d_ff, dropout, has_relative_attention_bias=i == 0) for i in range(num_layers)
        )
        self.final_layer_norm = T5LayerNorm(d_model)
        self.lm_head = nn.Linear(d_model, vocab_size, bias=False)

    def forward(self, input_ids):
        if input_ids.shape[1] > self.block_size:
            raise ValueError(f"{input_ids.shape[1]} ids, at most {self.block_size}")
        hidden_states, position_bias = self.embed_tokens(input_ids), None
        for layer in self.block:
            hidden_states, position_bias = layer(hidden_states, position_bias)
        return self.lm_head(self.final_layer_norm(hidden_states))
