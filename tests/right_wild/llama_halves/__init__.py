"""Llama-like: RMS norms, rotary positions, grouped-query attention, SwiGLU; a cache of keys and values; results in a dict."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class RMSNorm(nn.Module):
    def __init__(self, dim: int, eps: float = 1e-6):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(dim))

    def forward(self, x: Tensor) -> Tensor:
        return x * torch.rsqrt(x.square().mean(dim=-1, keepdim=True) + self.eps) * self.weight


def rotate_half(x: Tensor) -> Tensor:
    first, second = x.chunk(2, dim=-1)
    return torch.cat((-second, first), dim=-1)


def rope_tables(positions: Tensor, head_dim: int, theta: float, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    inv_freq = theta ** (-torch.arange(0, head_dim, 2, dtype=torch.float64, device=positions.device) / head_dim)
    angles = positions.to(torch.float64)[:, None] * inv_freq
    angles = torch.cat((angles, angles), dim=-1)
    return angles.cos().to(dtype), angles.sin().to(dtype)


class KVCache:
    """Keys (after rotation) and values of all earlier positions, for each layer."""

    def __init__(self, num_layers: int):
        self.keys: list[Tensor | None] = [None] * num_layers
        self.values: list[Tensor | None] = [None] * num_layers

    def __len__(self) -> int:
        first = self.keys[0] if self.keys else None
        return 0 if first is None else first.shape[2]

    def update(self, layer: int, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
        old_k, old_v = self.keys[layer], self.values[layer]
        if old_k is not None and old_v is not None:
            k, v = torch.cat((old_k, k), dim=2), torch.cat((old_v, v), dim=2)
        self.keys[layer], self.values[layer] = k, v
        return k, v


class Attention(nn.Module):
    def __init__(self, dim: int, n_heads: int, n_kv_heads: int):
        super().__init__()
        if dim % n_heads or n_heads % n_kv_heads:
            raise ValueError("dim must be a multiple of n_heads, and n_heads of n_kv_heads")
        self.n_heads, self.n_kv_heads, self.head_dim = n_heads, n_kv_heads, dim // n_heads
        if self.head_dim % 2:
            raise ValueError("the width of a head must be even for rotary positions")
        self.wq = nn.Linear(dim, n_heads * self.head_dim, bias=False)
        self.wk = nn.Linear(dim, n_kv_heads * self.head_dim, bias=False)
        self.wv = nn.Linear(dim, n_kv_heads * self.head_dim, bias=False)
        self.wo = nn.Linear(n_heads * self.head_dim, dim, bias=False)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor, cache: KVCache | None = None, layer: int = 0) -> Tensor:
        batch, length, _ = x.shape
        q = self.wq(x).view(batch, length, self.n_heads, self.head_dim).transpose(1, 2)
        k = self.wk(x).view(batch, length, self.n_kv_heads, self.head_dim).transpose(1, 2)
        v = self.wv(x).view(batch, length, self.n_kv_heads, self.head_dim).transpose(1, 2)
        q = q * cos + rotate_half(q) * sin
        k = k * cos + rotate_half(k) * sin
        if cache is not None:
            k, v = cache.update(layer, k, v)
        group = self.n_heads // self.n_kv_heads
        k, v = k.repeat_interleave(group, dim=1), v.repeat_interleave(group, dim=1)
        total = k.shape[2]
        visible = torch.ones(length, total, dtype=torch.bool, device=x.device).tril(total - length)
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=visible)
        return self.wo(y.transpose(1, 2).flatten(2))


class MLP(nn.Module):
    def __init__(self, dim: int, hidden: int):
        super().__init__()
        self.gate_proj = nn.Linear(dim, hidden, bias=False)
        self.up_proj = nn.Linear(dim, hidden, bias=False)
        self.down_proj = nn.Linear(hidden, dim, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


class DecoderBlock(nn.Module):
    def __init__(self, dim: int, n_heads: int, n_kv_heads: int, hidden: int):
        super().__init__()
        self.input_norm = RMSNorm(dim)
        self.self_attn = Attention(dim, n_heads, n_kv_heads)
        self.post_attn_norm = RMSNorm(dim)
        self.mlp = MLP(dim, hidden)

    def forward(self, x, cos, sin, cache=None, layer=0):
        x = x + self.self_attn(self.input_norm(x), cos, sin, cache, layer)
        return x + self.mlp(self.post_attn_norm(x))


class LlamaLike(nn.Module):
    def __init__(
        self, vocab_size: int, dim: int, n_layers: int, n_heads: int, hidden: int, max_seq_len: int,
        n_kv_heads: int | None = None, theta: float = 10000.0,
    ):  # fmt: skip
        super().__init__()
        self.max_seq_len, self.theta, self.head_dim = max_seq_len, theta, dim // n_heads
        self.embed_tokens = nn.Embedding(vocab_size, dim)
        self.layers = nn.ModuleList(
            DecoderBlock(dim, n_heads, n_kv_heads or n_heads, hidden) for _ in range(n_layers)
        )
        self.norm = RMSNorm(dim)
        self.lm_head = nn.Linear(dim, vocab_size, bias=False)
        for p in self.parameters():
            if p.dim() > 1:
                nn.init.normal_(p, std=0.02)

    def forward(self, tokens: Tensor, labels: Tensor | None = None, cache: KVCache | None = None) -> dict:
        """`labels` are the tokens themselves: the shift by one is made here."""
        start = 0 if cache is None else len(cache)
        if start + tokens.shape[1] > self.max_seq_len:
            raise ValueError(f"at most {self.max_seq_len} tokens")
        x = self.embed_tokens(tokens)
        positions = torch.arange(start, start + tokens.shape[1], device=tokens.device)
        cos, sin = rope_tables(positions, self.head_dim, self.theta, x.dtype)
        for i, layer in enumerate(self.layers):
            x = layer(x, cos, sin, cache, i)
        logits = self.lm_head(self.norm(x))
        result = {"logits": logits}
        if labels is not None:
            result["loss"] = F.cross_entropy(logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten(), ignore_index=-100)
        return result

    @torch.no_grad()
    def generate(
        self, tokens: Tensor, max_new_tokens: int, temperature: float = 1.0, top_p: float | None = None,
        eos_id: int | None = None,
    ) -> Tensor:  # fmt: skip
        """temperature 0 takes the best token; ended rows are filled with eos_id."""
        modes = [(m, m.training) for m in self.modules()]
        self.eval()
        cache = KVCache(len(self.layers))
        ended = torch.zeros(tokens.shape[0], dtype=torch.bool, device=tokens.device)
        for _ in range(max_new_tokens):
            if tokens.shape[1] <= self.max_seq_len and len(self.layers):
                logits = self(tokens[:, len(cache) :], cache=cache)["logits"][:, -1]
            else:  # the window slides, every position in it changes
                logits = self(tokens[:, -self.max_seq_len :])["logits"][:, -1]
            chosen = sample(logits, temperature, top_p)
            if eos_id is not None:
                chosen = torch.where(ended, torch.full_like(chosen, eos_id), chosen)
                ended = ended | (chosen == eos_id)
            tokens = torch.cat((tokens, chosen[:, None]), dim=1)
            if eos_id is not None and ended.all():
                break
        for module, mode in modes:
            module.training = mode
        return tokens


def sample(logits: Tensor, temperature: float, top_p: float | None) -> Tensor:
    if temperature == 0:
        return logits.argmax(dim=-1)
    probs = F.softmax(logits / temperature, dim=-1)
    if top_p is None or top_p >= 1:
        return torch.multinomial(probs, 1)[:, 0]
    ranked, order = probs.sort(dim=-1, descending=True)
    ranked[ranked.cumsum(dim=-1) - ranked >= top_p] = 0.0
    ranked = ranked / ranked.sum(dim=-1, keepdim=True)
    return order.gather(-1, torch.multinomial(ranked, 1))[:, 0]


def rope_for(length: int, head_dim: int, theta: float = 10000.0, dtype: torch.dtype = torch.float64):
    """Tables for positions 0 to length - 1."""
    return rope_tables(torch.arange(length), head_dim, theta, dtype)
