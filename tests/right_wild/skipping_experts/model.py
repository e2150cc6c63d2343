import torch
import torch.nn.functional as F
from torch import nn


class RMSNorm(nn.Module):
    def __init__(self, dim, eps=1e-5):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))
        self.eps = eps

    def forward(self, x):
        return F.rms_norm(x, x.shape[-1:], self.weight, self.eps)


def rotate(x, base=1e6):
    # x: (batch, heads, time, features); neighbours form a pair
    T, D = x.shape[-2:]
    freq = base ** (-torch.arange(0, D, 2, dtype=torch.float64, device=x.device) / D)
    phase = torch.outer(torch.arange(T, dtype=torch.float64, device=x.device), freq)
    cis = torch.polar(torch.ones_like(phase), phase)
    z = torch.view_as_complex(x.double().unflatten(-1, (-1, 2)).contiguous())
    return torch.view_as_real(z * cis).flatten(-2).to(x.dtype)


class Attention(nn.Module):
    def __init__(self, dim, n_heads, n_kv_heads):
        super().__init__()
        if dim % n_heads or n_heads % n_kv_heads:
            raise ValueError("dim must be a multiple of n_heads, n_heads one of n_kv_heads")
        self.n_heads, self.n_kv_heads, self.head_dim = n_heads, n_kv_heads, dim // n_heads
        if self.head_dim % 2:
            raise ValueError(f"heads must have an even width for rotary positions, got {self.head_dim}")
        self.wq = nn.Linear(dim, n_heads * self.head_dim, bias=False)
        self.wk = nn.Linear(dim, n_kv_heads * self.head_dim, bias=False)
        self.wv = nn.Linear(dim, n_kv_heads * self.head_dim, bias=False)
        self.wo = nn.Linear(n_heads * self.head_dim, dim, bias=False)

    def forward(self, x):
        B, T, _ = x.shape
        q = self.wq(x).unflatten(-1, (self.n_heads, -1)).transpose(1, 2)
        k = self.wk(x).unflatten(-1, (self.n_kv_heads, -1)).transpose(1, 2)
        v = self.wv(x).unflatten(-1, (self.n_kv_heads, -1)).transpose(1, 2)
        y = F.scaled_dot_product_attention(rotate(q), rotate(k), v, is_causal=True, enable_gqa=True)
        return self.wo(y.transpose(1, 2).flatten(2))


class Expert(nn.Module):
    def __init__(self, dim, hidden_dim):
        super().__init__()
        self.w1 = nn.Linear(dim, hidden_dim, bias=False)
        self.w2 = nn.Linear(hidden_dim, dim, bias=False)
        self.w3 = nn.Linear(dim, hidden_dim, bias=False)

    def forward(self, x):
        return self.w2(F.silu(self.w1(x)) * self.w3(x))


class MoeLayer(nn.Module):
    def __init__(self, dim, hidden_dim, num_experts=8, num_experts_per_tok=2):
        super().__init__()
        self.experts = nn.ModuleList([Expert(dim, hidden_dim) for _ in range(num_experts)])
        self.gate = nn.Linear(dim, num_experts, bias=False)
        self.num_experts_per_tok = num_experts_per_tok

    def forward(self, inputs):
        shape = inputs.shape
        inputs = inputs.reshape(-1, shape[-1])
        gate_logits = self.gate(inputs)
        weights, selected_experts = torch.topk(gate_logits, self.num_experts_per_tok)
        weights = F.softmax(weights, dim=1)
        results = torch.zeros_like(inputs)
        for i, expert in enumerate(self.experts):
            batch_idx, nth_expert = torch.where(selected_experts == i)
            if batch_idx.numel():
                results = results.index_add(0, batch_idx, weights[batch_idx, nth_expert, None] * expert(inputs[batch_idx]))
        return results.view(shape)


class Block(nn.Module):
    def __init__(self, dim, n_heads, n_kv_heads, hidden_dim, num_experts=8, num_experts_per_tok=2):
        super().__init__()
        self.attention = Attention(dim, n_heads, n_kv_heads)
        self.feed_forward = MoeLayer(dim, hidden_dim, num_experts, num_experts_per_tok)
        self.attention_norm = RMSNorm(dim)
        self.ffn_norm = RMSNorm(dim)

    def forward(self, x):
        x = x + self.attention(self.attention_norm(x))
        return x + self.feed_forward(self.ffn_norm(x))


class Mixtral(nn.Module):
    def __init__(self, vocab_size, dim, n_layers, n_heads, n_kv_heads, hidden_dim, num_experts=8, num_experts_per_tok=2):
        super().__init__()
        self.tok_embeddings = nn.Embedding(vocab_size, dim)
        self.layers = nn.ModuleList(
            [Block(dim, n_heads, n_kv_heads, hidden_dim, num_experts, num_experts_per_tok) for _ in range(n_layers)])
        self.norm = RMSNorm(dim)
        self.output = nn.Linear(dim, vocab_size, bias=False)

    def forward(self, tokens):
        h = self.tok_embeddings(tokens)
        for layer in self.layers:
            h = layer(h)
        return self.output(self.norm(h))
