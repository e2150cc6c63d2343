"""ALiBi as slope times the key's position, for each row of a batch of heads; one projection, head by head; tied."""

import math

import torch
from torch import nn
from torch.nn.functional import gelu


def build_alibi_tensor(num_heads, length, dtype, device):
    """(H, 1, T): what a query adds to all its scores alike cancels in the softmax, so the key's position suffices."""
    closest = 2 ** math.floor(math.log2(num_heads))
    base = torch.tensor(2 ** (-(2 ** -(math.log2(closest) - 3))), dtype=torch.float64)
    slopes = torch.pow(base, torch.arange(1, 1 + closest, dtype=torch.float64))
    if closest != num_heads:
        extra = torch.tensor(2 ** (-(2 ** -(math.log2(2 * closest) - 3))), dtype=torch.float64)
        powers = torch.arange(1, 1 + 2 * min(closest, num_heads - closest), 2, dtype=torch.float64)
        slopes = torch.cat([slopes, torch.pow(extra, powers)])
    return (slopes[:, None, None] * torch.arange(length, dtype=torch.float64)).to(device=device, dtype=dtype)


class BloomAttention(nn.Module):
    def __init__(self, hidden_size, n_head):
        super().__init__()
        if hidden_size % n_head:
            raise ValueError(f"hidden_size {hidden_size} is no multiple of n_head {n_head}")
        self.num_heads, self.head_dim = n_head, hidden_size // n_head
        self.query_key_value = nn.Linear(hidden_size, 3 * hidden_size)
        self.dense = nn.Linear(hidden_size, hidden_size)

    def forward(self, hidden_states):
        batch, length, width = hidden_states.shape
        fused = self.query_key_value(hidden_states).view(batch, length, self.num_heads, 3, self.head_dim)
        query, key, value = (fused[..., i, :].transpose(1, 2).flatten(0, 1) for i in range(3))  # (B·H, T, dh)
        alibi = build_alibi_tensor(self.num_heads, length, query.dtype, query.device).repeat(batch, 1, 1)
        scores = torch.baddbmm(alibi, query, key.transpose(1, 2), alpha=self.head_dim**-0.5)
        later = torch.ones(length, length, dtype=torch.bool, device=scores.device).triu(1)
        weights = scores.masked_fill(later, torch.finfo(scores.dtype).min).softmax(-1)
        context = torch.bmm(weights, value).view(batch, self.num_heads, length, self.head_dim)
        return self.dense(context.transpose(1, 2).reshape(batch, length, width))


class BloomMLP(nn.Module):
    def __init__(self, hidden_size, intermediate):
        super().__init__()
        self.dense_h_to_4h, self.dense_4h_to_h = (
            nn.Linear(hidden_size, intermediate),
            nn.Linear(intermediate, hidden_size),
        )

    def forward(self, x):
        return self.dense_4h_to_h(gelu(self.dense_h_to_4h(x), approximate="tanh"))


class BloomBlock(nn.Module):
    def __init__(self, hidden_size, n_head, intermediate):
        super().__init__()
        self.input_layernorm, self.post_attention_layernorm = nn.LayerNorm(hidden_size), nn.LayerNorm(hidden_size)
        self.self_attention, self.mlp = BloomAttention(hidden_size, n_head), BloomMLP(hidden_size, intermediate)

    def forward(self, x):
        x = x + self.self_attention(self.input_layernorm(x))
        return x + self.mlp(self.post_attention_layernorm(x))


class Bloom(nn.Module):
    def __init__(self, vocab_size, hidden_size, n_head, n_layer, intermediate):
        super().__init__()
        self.word_embeddings = nn.Embedding(vocab_size, hidden_size)
        nn.init.normal_(self.word_embeddings.weight, std=0.02)
        self.word_embeddings_layernorm = nn.LayerNorm(hidden_size)
        self.h = nn.ModuleList(BloomBlock(hidden_size, n_head, intermediate) for _ in range(n_layer))
        self.ln_f = nn.LayerNorm(hidden_size)

    def forward(self, input_ids):
        x = self.word_embeddings_layernorm(self.word_embeddings(input_ids))
        for block in self.h:
            x = block(x)
        return self.ln_f(x) @ self.word_embeddings.weight.T
