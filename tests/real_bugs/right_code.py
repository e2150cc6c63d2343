"""Right code that most packages next to it change in one place: a decoder-only model with a cache, and its parts.

What a class is made of is an attribute of the class. As it stands it is the canonical model; `Modern…` are what Llama
has: RMSNorm, rotary positions on halves, two queries for each key, a gated network.
"""

import math

import torch
from torch import nn
from torch.nn import functional


class Cache:
    """Keys and values of one layer, (B, H, n, dh) each."""

    def __init__(self):
        self.k = self.v = None

    @property
    def length(self):
        return 0 if self.k is None else self.k.shape[2]

    def extend(self, k, v):
        self.k = k if self.k is None else torch.cat([self.k, k], dim=2)
        self.v = v if self.v is None else torch.cat([self.v, v], dim=2)
        return self.k, self.v


class MultiHeadAttention(nn.Module):
    share = 1  # queries for each key

    def __init__(self, d_model, num_heads, dropout=0.0, causal=True):
        super().__init__()
        if num_heads < 1 or d_model % num_heads or num_heads % self.share:
            raise ValueError(f"d_model {d_model}, num_heads {num_heads}")
        self.num_heads, self.head_width, self.causal = num_heads, d_model // num_heads, causal
        kept = d_model // self.share
        self.q, self.k = nn.Linear(d_model, d_model, bias=False), nn.Linear(d_model, kept, bias=False)
        self.v, self.out = nn.Linear(d_model, kept, bias=False), nn.Linear(d_model, d_model, bias=False)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x, cache=None):
        q, k, v = (self.split(part(x)) for part in (self.q, self.k, self.v))
        start = 0 if cache is None else self.start(cache)
        q, k = self.placed(q, start), self.placed(k, start)
        if cache is not None:
            k, v = cache.extend(k, v)
        k, v = self.expanded(k), self.expanded(v)
        return self.dropout(self.out(self.merge(self.attend(q, k, v))))

    def start(self, cache):
        return cache.length

    def split(self, rows):
        return rows.unflatten(-1, (-1, self.head_width)).transpose(1, 2)

    def merge(self, heads):
        return heads.transpose(1, 2).flatten(2)

    def placed(self, rows, start):
        return rows

    def expanded(self, heads):
        return heads.repeat_interleave(self.share, dim=1)

    def attend(self, q, k, v):
        scores = self.scores(q, k)
        if self.causal:
            scores = scores.masked_fill(~self.seen(q.shape[2], k.shape[2], q.device), -math.inf)
        return torch.softmax(scores, dim=-1) @ v

    def scores(self, q, k):
        return (q / math.sqrt(self.head_width)) @ k.transpose(-2, -1)

    def seen(self, queries, keys, device):
        """(Tq, Tk), True where a query sees a key: the queries are the last positions."""
        times = torch.arange(keys, device=device)
        return times <= times[keys - queries :, None]


class CrossAttention(nn.Module):
    """Masks are True where a query sees a key."""

    def __init__(self, d_model, num_heads, dropout=0.0):
        super().__init__()
        self.num_heads, self.head_width = num_heads, d_model // num_heads
        self.q, self.k, self.v, self.out = (nn.Linear(d_model, d_model, bias=False) for _ in range(4))
        self.dropout = nn.Dropout(dropout)

    def forward(self, query, key, value, mask=None):
        q, k, v = (self.split(part(x)) for part, x in ((self.q, query), (self.k, key), (self.v, value)))
        return self.dropout(self.out(self.attend(q, k, v, mask).transpose(1, 2).flatten(2)))

    def split(self, rows):
        return rows.unflatten(-1, (-1, self.head_width)).transpose(1, 2)

    def attend(self, q, k, v, mask):
        scores = (q / math.sqrt(self.head_width)) @ k.transpose(-2, -1)
        if mask is not None:
            scores = scores.masked_fill(~mask, -math.inf)
            hidden = ~mask.expand(scores.shape).any(-1, keepdim=True)
            return torch.softmax(scores.masked_fill(hidden, 0.0), dim=-1).masked_fill(hidden, 0.0) @ v
        return torch.softmax(scores, dim=-1) @ v


class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff, dropout=0.0):
        super().__init__()
        self.up, self.down = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        return self.dropout(self.down(functional.gelu(self.up(x))))


class PositionalEncoding(nn.Module):
    def __init__(self, d_model, max_len):
        super().__init__()
        self.max_len = max_len

    def forward(self, x, start=0):
        if start + x.shape[1] > self.max_len:
            raise ValueError(f"{start + x.shape[1]} positions, max_len is {self.max_len}")
        width = x.shape[-1]
        feature = torch.arange(width, dtype=torch.float64, device=x.device)
        position = torch.arange(start, start + x.shape[1], dtype=torch.float64, device=x.device)[:, None]
        angle = position / 10000.0 ** ((feature - feature % 2) / width)
        return x + torch.where(feature % 2 == 0, angle.sin(), angle.cos()).to(x.dtype)


class TransformerBlock(nn.Module):
    attention, network, norm = MultiHeadAttention, FeedForward, nn.LayerNorm

    def __init__(self, d_model, num_heads, d_ff, dropout=0.0, causal=True):
        super().__init__()
        self.attn, self.ffn = self.attention(d_model, num_heads, dropout, causal), self.network(d_model, d_ff, dropout)
        self.norm1, self.norm2 = self.norm(d_model), self.norm(d_model)

    def forward(self, x, cache=None):
        x = x + self.attn(self.norm1(x), cache)
        return x + self.ffn(self.norm2(x))


class TinyTransformerLM(nn.Module):
    block, positions, cache = TransformerBlock, PositionalEncoding, Cache
    head_bias = True

    def __init__(self, vocab_size, d_model, num_heads, num_layers, d_ff, block_size, dropout=0.0):
        super().__init__()
        self.block_size = block_size
        self.embedding = nn.Embedding(vocab_size, d_model)
        self.places = self.positions(d_model, block_size) if self.positions else None
        self.blocks = nn.ModuleList(self.block(d_model, num_heads, d_ff, dropout) for _ in range(num_layers))
        self.norm = self.block.norm(d_model)
        self.head = nn.Linear(d_model, vocab_size, bias=self.head_bias)

    def forward(self, ids, caches=None):
        start = 0 if caches is None else caches[0].length
        if start + ids.shape[1] > self.block_size:
            raise ValueError(f"{start + ids.shape[1]} ids, block_size is {self.block_size}")
        x = self.embedding(ids)
        if self.places is not None:
            x = self.places(x, start)
        for i, block in enumerate(self.blocks):
            x = block(x, None if caches is None else caches[i])
        return self.head(self.norm(x))

    @torch.no_grad()
    def generate(self, idx, max_new_tokens, temperature=1.0, top_k=None, top_p=None, use_cache=False):
        if idx.shape[1] == 0 or max_new_tokens < 0 or not temperature >= 0:
            raise ValueError(f"prompt {tuple(idx.shape)}, {max_new_tokens=}, {temperature=}")
        if (top_k is not None and top_k < 1) or (top_p is not None and not 0 < top_p <= 1):
            raise ValueError(f"{top_k=}, {top_p=}")
        was = self.training
        self.eval()
        try:
            caches = self.new_caches()
            for step in range(max_new_tokens):
                if not use_cache or idx.shape[1] > self.block_size:
                    logits = self(idx[:, -self.block_size :])
                else:
                    logits = self(idx if step == 0 else idx[:, -1:], caches)
                idx = torch.cat([idx, self.pick(logits[:, -1], temperature, top_k, top_p).to(idx.dtype)], dim=1)
        finally:
            self.train(was)
        return idx

    def new_caches(self):
        return [self.cache() for _ in self.blocks]

    def pick(self, logits, temperature, top_k, top_p):
        if temperature == 0:
            return logits.argmax(-1, keepdim=True)
        return torch.multinomial(self.probabilities(logits, temperature, top_k, top_p), 1)

    def probabilities(self, logits, temperature, top_k, top_p):
        probs = torch.softmax(logits / temperature, dim=-1)
        if top_k is not None:
            probs = self.best(probs, top_k)
        if top_p is not None and top_p < 1:
            probs = self.nucleus(probs, top_p)
        return probs

    def best(self, probs, top_k):
        kept = probs.topk(min(top_k, probs.shape[-1]), dim=-1)
        probs = torch.zeros_like(probs).scatter(-1, kept.indices, kept.values)
        return probs / probs.sum(-1, keepdim=True)

    def nucleus(self, probs, top_p):
        ranked, order = probs.sort(dim=-1, descending=True)
        ranked = ranked.masked_fill(ranked.cumsum(-1) - ranked >= top_p, 0.0)
        return torch.zeros_like(probs).scatter(-1, order, ranked)


class RMSNorm(nn.Module):
    eps = 1e-5

    def __init__(self, d_model):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(d_model))

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps) * self.weight


def turned(x, cos, sin):
    """Rotate features i and i + dh/2 of (B, H, T, dh) by angles (T, dh/2)."""
    a, b = x.chunk(2, dim=-1)
    return torch.cat([a * cos - b * sin, a * sin + b * cos], dim=-1)


class ModernAttention(MultiHeadAttention):
    share, base = 2, 10000.0

    def placed(self, rows, start):
        angles = self.angles(start, rows)
        return turned(rows, angles.cos().to(rows.dtype), angles.sin().to(rows.dtype))

    def angles(self, start, rows):
        times = torch.arange(start, start + rows.shape[2], dtype=torch.float64, device=rows.device)
        features = torch.arange(0, self.head_width, 2, dtype=torch.float64, device=rows.device)
        return torch.outer(times, self.base ** -(features / self.head_width))


class ModernNetwork(nn.Module):
    def __init__(self, d_model, d_ff, dropout=0.0):
        super().__init__()
        self.gate, self.up = nn.Linear(d_model, d_ff, bias=False), nn.Linear(d_model, d_ff, bias=False)
        self.down, self.dropout = nn.Linear(d_ff, d_model, bias=False), nn.Dropout(dropout)

    def forward(self, x):
        return self.dropout(self.down(functional.silu(self.gate(x)) * self.up(x)))


class ModernBlock(TransformerBlock):
    attention, network, norm = ModernAttention, ModernNetwork, RMSNorm


class ModernLM(TinyTransformerLM):
    block, positions, head_bias = ModernBlock, None, False


def beam_search(model, ids, max_new_tokens, beam_width, length_penalty=0.0, eos_id=None):
    """(B, T) → (B, W, T + n) and scores (B, W)."""
    best = [beams_of(model, row, max_new_tokens, beam_width, length_penalty, eos_id) for row in ids]
    return torch.stack([texts for texts, _ in best]), torch.stack([scores for _, scores in best])


@torch.no_grad()
def beams_of(model, row, count, width, length_penalty, eos_id, *, chosen=None, length=None, ends=None):
    """Follow `width` texts. What `chosen`, `length` and `ends` replace are the choice, n, and when to stop."""
    length = length or (lambda text: len(text) - len(row))
    live, ended = [(0.0, row)], []
    for _ in range(count):
        children = []
        for total, text in live:
            steps = torch.log_softmax(model(text[None, -model.block_size :])[0, -1].double(), dim=-1)
            children += [(total + steps[i].item(), torch.cat([text, text.new_tensor([i])])) for i in range(len(steps))]
        children.sort(key=lambda child: -child[0])
        live = []
        for total, text in children[:width]:
            done = eos_id is not None and int(text[-1]) == eos_id
            (ended if done else live).append((total, text))
        if not live or (ends and ends(ended, width)):
            break
    ranked = [(total / max(length(text), 1) ** length_penalty, text) for total, text in ended + live]
    ranked.sort(key=lambda one: -one[0])
    ranked = chosen(ranked, width) if chosen else ranked[:width]
    filled = [torch.cat([text, text.new_full((len(row) + count - len(text),), eos_id or 0)]) for _, text in ranked]
    while len(filled) < width:
        filled.append(filled[-1])
        ranked.append((-math.inf, filled[-1]))
    return torch.stack(filled), torch.tensor([score for score, _ in ranked])


class PairsAttention(ModernAttention):
    """The same with neighboring features turned together."""

    def placed(self, rows, start):
        angles = self.angles(start, rows)
        cos, sin = angles.cos().to(rows.dtype), angles.sin().to(rows.dtype)
        a, b = rows[..., 0::2], rows[..., 1::2]
        return torch.stack([a * cos - b * sin, a * sin + b * cos], dim=-1).flatten(-2)


def from_llama(theirs):
    """Arrays of a Llama checkpoint by the names that they have here."""
    renamed = {
        "model.embed_tokens": "embedding", "model.layers": "blocks", "self_attn.q_proj": "attn.q",
        "self_attn.k_proj": "attn.k", "self_attn.v_proj": "attn.v", "self_attn.o_proj": "attn.out",
        "mlp.gate_proj": "ffn.gate", "mlp.up_proj": "ffn.up", "mlp.down_proj": "ffn.down", "lm_head": "head",
        "input_layernorm": "norm1", "post_attention_layernorm": "norm2", "model.norm": "norm",
    }  # fmt: skip
    ours = {}
    for name, array in theirs.items():
        own = name
        for old, new in renamed.items():
            own = own.replace(old, new)
        ours[own] = array
    return ours


def interleaved(rows, heads):
    """Put the rows of each head, halves of pairs, next to one another: (H·dh, D) → the same."""
    return rows.reshape(heads, 2, -1, rows.shape[-1]).swapaxes(1, 2).reshape(rows.shape)
