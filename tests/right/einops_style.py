"""einops for every change of shape; queries on their own, keys and values fused."""

import torch
from einops import einsum, rearrange, repeat
from torch import nn


def scaled_dot_product_attention(q, k, v, mask=None):
    sim = einsum(q, k, "... i d, ... j d -> ... i j") * (q.shape[-1] ** -0.5)
    if mask is not None:
        if mask.dtype == torch.bool:
            sim = sim.masked_fill(~mask.expand(sim.shape), -torch.finfo(sim.dtype).max)
        else:
            assert mask.is_floating_point(), f"boolean or float masks, not {mask.dtype}"
            sim = (sim + mask.expand(sim.shape).to(sim.dtype)).clamp(min=-torch.finfo(sim.dtype).max)
    sim = sim - sim.amax(dim=-1, keepdim=True).detach()
    attn = sim.softmax(dim=-1)
    return einsum(attn, v, "... i j, ... j d -> ... i d")


class PreNorm(nn.Module):
    def __init__(self, dim, fn):
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.fn = fn

    def forward(self, x):
        return self.fn(self.norm(x))


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, num_heads, dropout=0.0, causal=True):
        super().__init__()
        assert num_heads > 0 and d_model % num_heads == 0, f"d_model {d_model}, num_heads {num_heads}"
        self.heads, self.causal = num_heads, causal
        self.to_q = nn.Linear(d_model, d_model, bias=False)
        self.to_kv = nn.Linear(d_model, d_model * 2, bias=False)
        self.to_out = nn.Sequential(nn.Linear(d_model, d_model, bias=False), nn.Dropout(dropout))

    def forward(self, x):
        q, k, v = (self.to_q(x), *self.to_kv(x).chunk(2, dim=-1))
        q, k, v = (rearrange(t, "b n (h d) -> b h n d", h=self.heads) for t in (q, k, v))
        mask = None
        if self.causal:
            n = x.shape[1]
            mask = repeat(torch.ones((n, n), device=x.device).tril().bool(), "i j -> b 1 i j", b=x.shape[0])
        out = scaled_dot_product_attention(q, k, v, mask)
        return self.to_out(rearrange(out, "b h n d -> b n (h d)"))


class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff, dropout=0.0):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(d_model, d_ff), nn.GELU(), nn.Dropout(dropout), nn.Linear(d_ff, d_model), nn.Dropout(dropout)
        )

    def forward(self, x):
        return self.net(x)


class PositionalEncoding(nn.Module):
    def __init__(self, d_model, max_len):
        super().__init__()
        inv_freq = 1.0 / (10000 ** (torch.arange(0, d_model, 2).double() / d_model))
        angles = einsum(torch.arange(max_len).double(), inv_freq, "n, f -> n f")
        emb = rearrange([angles.sin(), angles.cos()], "two n f -> n (f two)")
        self.emb = nn.Parameter(emb[:, :d_model], requires_grad=False)

    def forward(self, x):
        n, d = x.shape[1:]
        if n > len(self.emb) or d != self.emb.shape[1]:
            raise ValueError(f"x {tuple(x.shape)}, table {tuple(self.emb.shape)}")
        return x + rearrange(self.emb[:n], "n d -> 1 n d").to(x.dtype)


class TransformerBlock(nn.Module):
    def __init__(self, d_model, num_heads, d_ff, dropout=0.0, causal=True):
        super().__init__()
        self.attn = PreNorm(d_model, MultiHeadAttention(d_model, num_heads, dropout, causal))
        self.ff = PreNorm(d_model, FeedForward(d_model, d_ff, dropout))

    def forward(self, x):
        x = self.attn(x) + x
        return self.ff(x) + x


class TinyTransformerLM(nn.Module):
    def __init__(self, vocab_size, d_model, num_heads, num_layers, d_ff, block_size, dropout=0.0):
        super().__init__()
        self.max_seq_len = block_size
        self.token_emb = nn.Embedding(vocab_size, d_model)
        self.pos_emb = PositionalEncoding(d_model, block_size)
        self.layers = nn.ModuleList([TransformerBlock(d_model, num_heads, d_ff, dropout) for _ in range(num_layers)])
        self.to_logits = nn.Sequential(nn.LayerNorm(d_model), nn.Linear(d_model, vocab_size))

    def forward(self, x):
        x = self.pos_emb(self.token_emb(x))
        for block in self.layers:
            x = block(x)
        return self.to_logits(x)

    @torch.no_grad()
    def generate(self, prompt, max_new_tokens, temperature=1.0, top_k=None, top_p=None):
        if prompt.shape[1] == 0 or max_new_tokens < 0 or not temperature >= 0:
            raise ValueError("an empty prompt, a negative length or temperature")
        if (top_k is not None and top_k < 1) or (top_p is not None and not 0 < top_p <= 1):
            raise ValueError("top_k from 1, top_p in (0, 1]")
        modes = {m: m.training for m in self.modules()}
        self.eval()
        out = prompt
        try:
            for _ in range(max_new_tokens):
                logits = self(out[:, -self.max_seq_len :])[:, -1]
                if temperature == 0:
                    sample = logits.argmax(dim=-1, keepdim=True)
                else:
                    logits = self.filtered(logits / temperature, top_k, top_p)
                    sample = torch.multinomial(logits.softmax(dim=-1), 1)
                out = torch.cat((out, sample.to(out.dtype)), dim=-1)
        finally:
            for m, mode in modes.items():
                m.training = mode
        return out

    @staticmethod
    def filtered(logits, top_k, top_p):
        if top_k is not None:
            val, ind = logits.topk(min(top_k, logits.shape[-1]))
            logits = torch.full_like(logits, float("-inf")).scatter(1, ind, val)
        if top_p is not None:
            sorted_logits, sorted_indices = logits.sort(descending=True)
            cum_probs = sorted_logits.softmax(dim=-1).cumsum(dim=-1)
            remove = nn.functional.pad(cum_probs[:, :-1] >= top_p, (1, 0), value=False)
            sorted_logits = sorted_logits.masked_fill(remove, float("-inf"))
            logits = sorted_logits.scatter(1, sorted_indices, sorted_logits)
        return logits
