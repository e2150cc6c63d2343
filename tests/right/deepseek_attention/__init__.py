"""DeepSeek-V2: queries through a latent, one matrix for latent and rotated key, one for each head's keys and values."""

import torch
from torch import nn
from torch.nn import functional as F


class RMSNorm(nn.Module):
    def __init__(self, size, eps=1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))
        self.eps = eps

    def forward(self, x):
        return self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps))


def freqs_cis(length, dim, x, base=10000.0):
    places = torch.arange(length, device=x.device)
    angles = torch.outer(places, base ** (-torch.arange(0, dim, 2, dtype=torch.float64, device=x.device) / dim))
    turns = torch.polar(torch.ones_like(angles), angles)
    return turns if x.dtype == torch.float64 else turns.to(torch.complex64)


def apply_rotary(x, turns):
    pairs = torch.view_as_complex(x.to(turns.real.dtype).reshape(*x.shape[:-1], -1, 2).contiguous())
    return torch.view_as_real(pairs * turns).flatten(-2).type_as(x)


class DeepseekAttention(nn.Module):
    def __init__(
        self, hidden_size, num_heads, q_lora_rank=14, kv_lora_rank=10, nope=6, rope=4, v_head_dim=5, causal=True
    ):
        super().__init__()
        if min(hidden_size, num_heads) < 1:
            raise ValueError(f"{hidden_size} features in {num_heads} heads: want at least one of each")
        self.num_heads, self.causal = num_heads, causal
        self.kv_lora_rank, self.nope, self.rope, self.v_head_dim = kv_lora_rank, nope, rope, v_head_dim
        self.q_a_proj = nn.Linear(hidden_size, q_lora_rank, bias=False)
        self.q_a_layernorm = RMSNorm(q_lora_rank)
        self.q_b_proj = nn.Linear(q_lora_rank, num_heads * (nope + rope), bias=False)
        self.kv_a_proj_with_mqa = nn.Linear(hidden_size, kv_lora_rank + rope, bias=False)
        self.kv_a_layernorm = RMSNorm(kv_lora_rank)
        self.kv_b_proj = nn.Linear(kv_lora_rank, num_heads * (nope + v_head_dim), bias=False)
        self.o_proj = nn.Linear(num_heads * v_head_dim, hidden_size, bias=False)

    def forward(self, x):
        batch, length, _ = x.shape
        q = self.q_b_proj(self.q_a_layernorm(self.q_a_proj(x)))
        q = q.view(batch, length, self.num_heads, -1).transpose(1, 2)
        q_nope, q_pe = q.split([self.nope, self.rope], dim=-1)
        compressed, k_pe = self.kv_a_proj_with_mqa(x).split([self.kv_lora_rank, self.rope], dim=-1)
        kv = self.kv_b_proj(self.kv_a_layernorm(compressed)).view(batch, length, self.num_heads, -1).transpose(1, 2)
        k_nope, value = kv.split([self.nope, self.v_head_dim], dim=-1)
        turns = freqs_cis(length, self.rope, x)
        q_pe, k_pe = apply_rotary(q_pe, turns), apply_rotary(k_pe[:, None], turns)
        query = torch.cat([q_nope, q_pe], dim=-1)
        key = torch.cat([k_nope, k_pe.expand(-1, self.num_heads, -1, -1)], dim=-1)
        mixed = F.scaled_dot_product_attention(query, key, value, is_causal=self.causal)
        return self.o_proj(mixed.transpose(1, 2).reshape(batch, length, -1))
