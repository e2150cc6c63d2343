"""Rotary positions as complex numbers (neighbouring pairs), heads of a width of their own, one key/value head in two."""

import torch
import torch.nn.functional as F
from torch import nn


def precompute_freqs_cis(dim, end, theta=10000.0):
    freqs = theta ** (-torch.arange(0, dim, 2, dtype=torch.float64) / dim)
    angles = torch.outer(torch.arange(end, dtype=torch.float64), freqs)
    return torch.polar(torch.ones_like(angles), angles)  # complex128


def apply_rotary_emb(x, freqs_cis):
    """x (B, T, H, d)"""
    pairs = torch.view_as_complex(x.to(torch.float64).reshape(*x.shape[:-1], -1, 2))
    return torch.view_as_real(pairs * freqs_cis[: x.shape[1], None]).flatten(-2).type_as(x)


def attention(xq, xk, xv, mask=None):
    scores = torch.matmul(xq, xk.transpose(-2, -1)) / xq.shape[-1] ** 0.5
    if mask is not None:
        mask = mask if mask.dtype == torch.bool else mask.to(scores.dtype)
        scores = F.softmax(
            scores.masked_fill(~mask.expand(scores.shape), torch.finfo(scores.dtype).min)
            if mask.dtype == torch.bool
            else (scores + mask.expand(scores.shape)).clamp(min=torch.finfo(scores.dtype).min),
            dim=-1,
        )
    else:
        scores = F.softmax(scores, dim=-1)
    return torch.matmul(scores, xv)


class Attention(nn.Module):
    head_dim = 6

    def __init__(self, dim, n_heads, max_seq_len=128, is_causal=True):
        super().__init__()
        if n_heads < 2 or n_heads % 2:
            raise ValueError(f"n_heads is {n_heads}, want an even number")
        self.n_heads, self.n_kv_heads, self.is_causal = n_heads, n_heads // 2, is_causal
        self.wq = nn.Linear(dim, n_heads * self.head_dim)
        self.wkv = nn.Linear(dim, 2 * self.n_kv_heads * self.head_dim)
        self.wo = nn.Linear(n_heads * self.head_dim, dim, bias=False)
        self.freqs_cis = precompute_freqs_cis(self.head_dim, max_seq_len)

    def forward(self, x):
        bsz, seqlen, _ = x.shape
        xq = self.wq(x).view(bsz, seqlen, self.n_heads, self.head_dim)
        xk, xv = self.wkv(x).view(bsz, seqlen, self.n_kv_heads, 2, self.head_dim).unbind(3)  # head by head
        freqs_cis = self.freqs_cis.to(x.device)
        xq, xk = apply_rotary_emb(xq, freqs_cis), apply_rotary_emb(xk, freqs_cis)
        xq, xk, xv = (t.transpose(1, 2) for t in (xq, xk, xv))
        xk, xv = (t.repeat_interleave(self.n_heads // self.n_kv_heads, dim=1) for t in (xk, xv))
        mask = torch.ones(seqlen, seqlen, dtype=torch.bool, device=x.device).tril() if self.is_causal else None
        return self.wo(attention(xq, xk, xv, mask).transpose(1, 2).reshape(bsz, seqlen, -1))


class FeedForward(nn.Module):
    def __init__(self, dim, hidden_dim):
        super().__init__()
        self.w1, self.w3 = nn.Linear(dim, hidden_dim, bias=False), nn.Linear(dim, hidden_dim, bias=False)
        self.w2 = nn.Linear(hidden_dim, dim, bias=False)

    def forward(self, x):
        return self.w2(F.silu(self.w1(x)) * self.w3(x))


class Block(nn.Module):
    def __init__(self, dim, n_heads, hidden_dim, max_seq_len=128, is_causal=True):
        super().__init__()
        self.attention = Attention(dim, n_heads, max_seq_len, is_causal)
        self.feed_forward = FeedForward(dim, hidden_dim)
        self.attention_norm, self.ffn_norm = nn.RMSNorm(dim, eps=1e-5), nn.RMSNorm(dim, eps=1e-5)

    def forward(self, x):
        h = x + self.attention(self.attention_norm(x))
        return h + self.feed_forward(self.ffn_norm(h))


class Transformer(nn.Module):
    def __init__(self, vocab_size, dim, n_heads, n_layers, hidden_dim, max_seq_len):
        super().__init__()
        self.max_seq_len = max_seq_len
        self.tok_embeddings = nn.Embedding(vocab_size, dim)
        self.norm_in = nn.RMSNorm(dim, eps=1e-5)
        self.layers = nn.ModuleList(Block(dim, n_heads, hidden_dim, max_seq_len) for _ in range(n_layers))
        self.norm = nn.RMSNorm(dim, eps=1e-5)
        self.output = nn.Linear(dim, vocab_size, bias=False)

    def forward(self, tokens, start_pos=0):
        if tokens.shape[1] > self.max_seq_len:
            raise ValueError(f"{tokens.shape[1]} tokens exceed max_seq_len {self.max_seq_len}")
        h = self.norm_in(self.tok_embeddings(tokens))
        for layer in self.layers:
            h = layer(h)
        return self.output(self.norm(h))

    @torch.inference_mode()
    def generate(self, tokens, max_gen_len, temperature=1.0, seed=None):
        if tokens.shape[1] < 1 or max_gen_len < 0 or not temperature >= 0:
            raise ValueError(f"{tokens.shape[1]=} {max_gen_len=} {temperature=}")
        generator = None if seed is None else torch.Generator(tokens.device).manual_seed(seed)
        new = []
        for _ in range(max_gen_len):
            logits = self(torch.cat([tokens, *new], dim=1)[:, -self.max_seq_len :])[:, -1]
            if temperature > 0:
                probs = torch.softmax(logits / temperature, dim=-1)
                new.append(torch.multinomial(probs, 1, generator=generator).to(tokens.dtype))
            else:
                new.append(logits.argmax(-1, keepdim=True).to(tokens.dtype))
        return torch.cat(new, dim=1) if new else tokens[:, :0]
