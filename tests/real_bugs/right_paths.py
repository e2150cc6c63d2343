"""Right code that packages next to it change in one place: a model whose call takes what real ones take.

Masks (B, kept + T) of real ids, positions (B, T), numbers of texts (B, T), a cache, labels that the model shifts.
"""

import torch
from torch import nn
from torch.nn import functional


class Cache:
    """Keys and values of each layer, (B, H, n, dh)."""

    def __init__(self, layers):
        self.kept = [None] * layers

    @property
    def length(self):
        return 0 if self.kept[0] is None else self.kept[0][0].shape[2]

    def extend(self, layer, k, v):
        if self.kept[layer] is not None:
            k, v = (torch.cat(pair, dim=2) for pair in zip(self.kept[layer], (k, v), strict=True))
        self.kept[layer] = k, v
        return k, v


class Block(nn.Module):
    def __init__(self, d_model, num_heads, d_ff):
        super().__init__()
        self.num_heads = num_heads
        self.q, self.k, self.v, self.out = (nn.Linear(d_model, d_model, bias=False) for _ in range(4))
        self.up, self.down = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)
        self.norm1, self.norm2 = nn.LayerNorm(d_model), nn.LayerNorm(d_model)

    def forward(self, x, layer, seen, cache):
        h = self.norm1(x)
        q, k, v = (part(h).unflatten(-1, (self.num_heads, -1)).transpose(1, 2) for part in (self.q, self.k, self.v))
        if cache is not None:
            k, v = cache.extend(layer, k, v)
        scores = (q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5).masked_fill(~seen, float("-inf"))
        x = x + self.out((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))
        return x + self.down(functional.gelu(self.up(self.norm2(x))))


class CausalLM(nn.Module):
    cache = Cache

    def __init__(self, vocab_size, d_model, num_heads, num_layers, d_ff, block_size):
        super().__init__()
        self.embedding, self.positions = nn.Embedding(vocab_size, d_model), nn.Embedding(block_size, d_model)
        self.blocks = nn.ModuleList(Block(d_model, num_heads, d_ff) for _ in range(num_layers))
        self.norm, self.head = nn.LayerNorm(d_model), nn.Linear(d_model, vocab_size)

    def forward(self, ids, attention_mask=None, position_ids=None, segment_ids=None, cache=None, labels=None):
        count, kept = ids.shape[1], 0 if cache is None else cache.length
        if position_ids is None:
            position_ids = self.counted(ids, attention_mask, kept)
        seen = self.earlier(count, kept, ids.device)[None, None]
        if attention_mask is not None:
            itself = torch.eye(kept + count, dtype=torch.bool, device=ids.device)[kept:]
            seen = seen & (attention_mask != 0)[:, None, None, :] | itself  # padding sees itself
        if segment_ids is not None:
            seen = seen & self.together(segment_ids)
        x = self.embedding(ids) + self.positions(self.placed(position_ids))
        for layer, block in enumerate(self.blocks):
            x = block(x, layer, seen, cache)
        logits = self.head(self.norm(x))
        return logits if labels is None else (logits, self.loss(logits, labels))

    def new_cache(self):
        return self.cache(len(self.blocks))

    def counted(self, ids, mask, kept):
        """Positions (B, T) or (1, T), from the number of real ids before."""
        if mask is None:
            return torch.arange(kept, kept + ids.shape[1], device=ids.device)[None]
        return ((mask != 0).cumsum(-1) - 1).clamp(min=0)[:, kept:]

    def placed(self, position_ids):
        return position_ids

    def earlier(self, count, kept, device):
        """(T, kept + T), True for what is kept, and among the new ids for earlier ones."""
        return torch.ones(count, kept + count, dtype=torch.bool, device=device).tril(kept)

    def together(self, segment_ids):
        return (segment_ids[:, :, None] == segment_ids[:, None, :])[:, None]

    def loss(self, logits, labels):
        return functional.cross_entropy(logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten())
