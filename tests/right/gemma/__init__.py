"""Norms stored minus one, embeddings scaled by √width, a tied head, gated tanh GELU, one key/value head."""

import torch
import torch.nn.functional as F
from torch import nn


class RMSNorm(nn.Module):
    def __init__(self, dim, eps=1e-6):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.zeros(dim))

    def forward(self, x):
        output = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps)
        return output * (1 + self.weight)


def attend(xq, xk, xv, mask=None):
    scores = torch.matmul(xq * xk.shape[-1] ** -0.5, xk.transpose(-2, -1))
    if mask is not None:
        scores = scores + mask.expand(scores.shape)
    return torch.matmul(F.softmax(scores, dim=-1), xv)


class Attention(nn.Module):
    def __init__(self, hidden_size, num_heads):
        super().__init__()
        if hidden_size % num_heads or (hidden_size // num_heads) % 2:
            raise ValueError(f"no {num_heads} heads of even width in {hidden_size} features")
        self.num_heads, self.head_dim = num_heads, hidden_size // num_heads
        self.qkv_proj = nn.Linear(hidden_size, (num_heads + 2) * self.head_dim, bias=False)
        self.o_proj = nn.Linear(num_heads * self.head_dim, hidden_size, bias=False)

    def turn(self, x):
        inverse = 10000 ** (-torch.arange(0, self.head_dim, 2, dtype=torch.float64) / self.head_dim)
        angle = torch.arange(x.shape[-2], dtype=torch.float64)[:, None] * inverse
        cos, sin = angle.cos().to(x), angle.sin().to(x)
        left, right = x.split(self.head_dim // 2, dim=-1)
        return torch.cat([left * cos - right * sin, right * cos + left * sin], dim=-1)

    def forward(self, x, causal=True):
        b, t, _ = x.shape
        q, k, v = self.qkv_proj(x).split([self.num_heads * self.head_dim, self.head_dim, self.head_dim], dim=-1)
        q = q.view(b, t, self.num_heads, self.head_dim).transpose(1, 2)
        k, v = k[:, None], v[:, None]  # one head for all queries: broadcasting does the rest
        mask = torch.full((t, t), -2.3819763e38, dtype=x.dtype, device=x.device).triu(1) if causal else None
        y = attend(self.turn(q), self.turn(k), v, mask)
        return self.o_proj(y.transpose(1, 2).reshape(b, t, -1))


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
        self.self_attn, self.mlp = Attention(hidden_size, num_heads), MLP(hidden_size, intermediate_size)
        self.input_layernorm, self.post_attention_layernorm = RMSNorm(hidden_size), RMSNorm(hidden_size)

    def forward(self, x, causal=True):
        x = x + self.self_attn(self.input_layernorm(x), causal)
        return x + self.mlp(self.post_attention_layernorm(x))


class Gemma(nn.Module):
    def __init__(self, vocab_size, hidden_size, num_heads, num_layers, intermediate_size, max_len):
        super().__init__()
        self.hidden_size, self.max_len = hidden_size, max_len
        self.embedder = nn.Parameter(torch.randn(vocab_size, hidden_size) * 0.3 / hidden_size**0.5)
        self.layers = nn.ModuleList(
            [DecoderLayer(hidden_size, num_heads, intermediate_size) for _ in range(num_layers)]
        )
        self.norm = RMSNorm(hidden_size)

    def forward(self, tokens):
        if tokens.shape[1] > self.max_len:
            raise ValueError(f"{tokens.shape[1]} tokens, max_len {self.max_len}")
        x = F.embedding(tokens, self.embedder) * self.hidden_size**0.5
        for layer in self.layers:
            x = layer(x)
        return torch.matmul(self.norm(x), self.embedder.t())


@torch.no_grad()
def generate(model, tokens, output_len, temperature=0.95, top_p=1.0, top_k=64):
    """temperature None is greedy."""
    if tokens.shape[1] == 0 or output_len < 0 or (temperature is not None and not temperature > 0):
        raise ValueError(f"{tuple(tokens.shape)=} {output_len=} {temperature=}")
    if not 0 < top_p <= 1 or top_k < 1:
        raise ValueError(f"{top_p=} {top_k=}")
    for _ in range(output_len):
        logits = model(tokens[:, -model.max_len :])[:, -1]
        if temperature is None:
            next_token = logits.argmax(dim=-1, keepdim=True)
        else:
            probs = torch.softmax(logits / temperature, dim=-1)
            probs_sort, probs_idx = torch.sort(probs, dim=-1, descending=True)
            probs_sort = torch.where(torch.arange(probs.shape[-1], device=probs.device) >= top_k, 0, probs_sort)
            probs_sort = probs_sort / probs_sort.sum(dim=-1, keepdim=True)
            probs_sum = torch.cumsum(probs_sort, dim=-1) - probs_sort
            probs_sort = torch.where(probs_sum >= top_p, 0, probs_sort)
            next_token = torch.gather(probs_idx, -1, torch.multinomial(probs_sort, 1))
        tokens = torch.cat([tokens, next_token.to(tokens.dtype)], dim=1)
    return tokens
