from functools import partial

import torch
import torch.nn.functional as F
from einops import rearrange, reduce, repeat
from torch import einsum, nn


# helpers

def exists(val):
    return val is not None


def default(val, d):
    return val if exists(val) else d


def max_neg_value(t):
    return -torch.finfo(t.dtype).max


# classes

class PreNorm(nn.Module):
    def __init__(self, dim, fn):
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.fn = fn

    def forward(self, x, **kwargs):
        return self.fn(self.norm(x), **kwargs)


class Residual(nn.Module):
    def __init__(self, fn):
        super().__init__()
        self.fn = fn

    def forward(self, x, **kwargs):
        return self.fn(x, **kwargs) + x


class GEGLU(nn.Module):
    def forward(self, x):
        x, gates = x.chunk(2, dim=-1)
        return x * F.gelu(gates)


class FeedForward(nn.Module):
    def __init__(self, dim, hidden_dim, dropout=0.):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(dim, hidden_dim * 2),
            GEGLU(),
            nn.Dropout(dropout),
            nn.Linear(hidden_dim, dim)
        )

    def forward(self, x):
        return self.net(x)


class Attention(nn.Module):
    def __init__(self, dim, heads=8, dim_head=64, dropout=0., causal=True):
        super().__init__()
        inner_dim = dim_head * heads
        self.heads = heads
        self.scale = dim_head ** -0.5
        self.causal = causal
        self.to_q = nn.Linear(dim, inner_dim, bias=False)
        self.to_kv = nn.Linear(dim, inner_dim * 2, bias=False)
        self.to_out = nn.Linear(inner_dim, dim)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        n, h, device = x.shape[1], self.heads, x.device
        q, k, v = (self.to_q(x), *self.to_kv(x).chunk(2, dim=-1))
        q, k, v = map(lambda t: rearrange(t, 'b n (h d) -> b h n d', h=h), (q, k, v))
        q = q * self.scale
        sim = einsum('b h i d, b h j d -> b h i j', q, k)
        if self.causal:
            i = torch.arange(n, device=device)
            mask = rearrange(i, 'i -> i 1') < rearrange(i, 'j -> 1 j')
            sim = sim.masked_fill(mask, max_neg_value(sim))
        attn = sim.softmax(dim=-1)
        attn = self.dropout(attn)
        out = einsum('b h i j, b h j d -> b h i d', attn, v)
        return self.to_out(rearrange(out, 'b h n d -> b n (h d)'))


class AbsolutePositionalEmbedding(nn.Module):
    def __init__(self, dim, max_seq_len):
        super().__init__()
        self.max_seq_len = max_seq_len
        self.emb = nn.Embedding(max_seq_len, dim)
        nn.init.normal_(self.emb.weight, std=0.02)

    def forward(self, x):
        n = x.shape[1]
        assert n <= self.max_seq_len, f'{n} positions, at most {self.max_seq_len}'
        return x + rearrange(self.emb(torch.arange(n, device=x.device)), 'n d -> 1 n d')


class Block(nn.Module):
    def __init__(self, dim, heads, dim_head, hidden_dim, dropout=0., causal=True):
        super().__init__()
        self.attn = Residual(PreNorm(dim, Attention(dim, heads, dim_head, dropout, causal)))
        self.ff = Residual(PreNorm(dim, FeedForward(dim, hidden_dim, dropout)))

    def forward(self, x):
        return self.ff(self.attn(x))


class Decoder(nn.Module):
    def __init__(self, *, num_tokens, dim, depth, max_seq_len, heads=8, dim_head=None, hidden_dim=None, dropout=0.):
        super().__init__()
        dim_head = default(dim_head, dim // heads)
        hidden_dim = default(hidden_dim, dim * 4)
        self.max_seq_len = max_seq_len
        self.token_emb = nn.Embedding(num_tokens, dim)
        nn.init.normal_(self.token_emb.weight, std=0.02)
        self.pos_emb = AbsolutePositionalEmbedding(dim, max_seq_len)
        block = partial(Block, dim, heads, dim_head, hidden_dim, dropout)
        self.layers = nn.ModuleList([block() for _ in range(depth)])
        self.to_logits = nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, num_tokens, bias=False))

    def forward(self, x):
        x = self.pos_emb(self.token_emb(x))
        for layer in self.layers:
            x = layer(x)
        return self.to_logits(x)

    @torch.no_grad()
    def generate(self, start_tokens, seq_len, temperature=1., filter_thres=None):
        """Sample seq_len more tokens; filter_thres is the share of the vocabulary to drop, 0.9 keeps a tenth."""
        was_training, out = self.training, start_tokens
        self.eval()
        for _ in range(seq_len):
            logits = self(out[:, -self.max_seq_len:])[:, -1]
            if exists(filter_thres):
                k = max(1, int((1 - filter_thres) * logits.shape[-1]))
                kth = reduce(logits.topk(k, dim=-1).values, 'b k -> b', 'min')
                logits = logits.masked_fill(logits < repeat(kth, 'b -> b v', v=logits.shape[-1]), float('-inf'))
            if temperature == 0:
                sample = logits.argmax(dim=-1, keepdim=True)
            else:
                sample = torch.multinomial(F.softmax(logits / temperature, dim=-1), 1)
            out = torch.cat((out, sample), dim=-1)
        self.train(was_training)
        return out
