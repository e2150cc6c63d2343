"""Norms inside the attention, one projection for keys and values, a decoder layer that is causal by itself, all by keyword."""

import torch
from torch import nn, einsum
import torch.nn.functional as F


def exists(v):
    return v is not None


def split(t, h):
    b, n, _ = t.shape
    return t.reshape(b, n, h, -1).permute(0, 2, 1, 3)


class Attention(nn.Module):
    def __init__(self, *, dim, heads=8, dropout=0.0, causal=False, prenorm=True):
        super().__init__()
        self.heads, self.causal = heads, causal
        self.norm = nn.LayerNorm(dim) if prenorm else nn.Identity()
        self.to_q = nn.Linear(dim, dim, bias=False)
        self.to_kv = nn.Linear(dim, dim * 2, bias=False)
        self.to_out = nn.Linear(dim, dim, bias=False)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x, *, context=None, mask=None):
        x = self.norm(x)
        kv = context if exists(context) else x
        q, (k, v) = self.to_q(x), self.to_kv(kv).chunk(2, dim=-1)
        q, k, v = (split(t, self.heads) for t in (q, k, v))
        sim = einsum("b h i d, b h j d -> b h i j", q, k) * q.shape[-1] ** -0.5
        lowest = -torch.finfo(sim.dtype).max
        if exists(mask):
            sim = sim.masked_fill(~mask[:, None, None, :], lowest)
        if self.causal:
            i, j = sim.shape[-2:]
            sim = sim.masked_fill(torch.ones((i, j), dtype=torch.bool).triu(j - i + 1), lowest)
        out = einsum("b h i j, b h j d -> b h i d", self.dropout(sim.softmax(-1)), v)
        return self.to_out(out.permute(0, 2, 1, 3).flatten(2))


def FeedForward(dim, hidden, dropout=0.0):
    return nn.Sequential(
        nn.LayerNorm(dim), nn.Linear(dim, hidden), nn.GELU(), nn.Dropout(dropout), nn.Linear(hidden, dim)
    )


class Enc(nn.Module):
    def __init__(self, *, dim, heads, hidden, dropout=0.0):
        super().__init__()
        self.attn, self.ff = Attention(dim=dim, heads=heads, dropout=dropout), FeedForward(dim, hidden, dropout)
        self.drop = nn.Dropout(dropout)

    def forward(self, x, *, mask=None):
        x = x + self.drop(self.attn(x, mask=mask))
        return x + self.drop(self.ff(x))


class Dec(nn.Module):
    def __init__(self, *, dim, heads, hidden, dropout=0.0):
        super().__init__()
        self.attn = Attention(dim=dim, heads=heads, dropout=dropout, causal=True)
        self.cross = Attention(dim=dim, heads=heads, dropout=dropout)
        self.ff = FeedForward(dim, hidden, dropout)
        self.drop = nn.Dropout(dropout)

    def forward(self, x, *, context, mask=None, context_mask=None):
        x = x + self.drop(self.attn(x, mask=mask))
        x = x + self.drop(self.cross(x, context=context, mask=context_mask))
        return x + self.drop(self.ff(x))


class XTransformer(nn.Module):
    def __init__(
        self,
        *,
        dim,
        heads,
        hidden,
        enc_num_tokens,
        dec_num_tokens,
        enc_depth,
        dec_depth,
        max_seq_len,
        dropout=0.0,
        pad_value=0,
    ):
        super().__init__()
        self.pad_value = pad_value
        self.enc_tokens, self.dec_tokens = nn.Embedding(enc_num_tokens, dim), nn.Embedding(dec_num_tokens, dim)
        self.enc_pos, self.dec_pos = nn.Embedding(max_seq_len, dim), nn.Embedding(max_seq_len, dim)
        self.enc = nn.ModuleList([Enc(dim=dim, heads=heads, hidden=hidden, dropout=dropout) for _ in range(enc_depth)])
        self.dec = nn.ModuleList([Dec(dim=dim, heads=heads, hidden=hidden, dropout=dropout) for _ in range(dec_depth)])
        self.enc_norm, self.dec_norm = nn.LayerNorm(dim), nn.LayerNorm(dim)

    def encode(self, src, mask=None):
        mask = mask if exists(mask) else src != self.pad_value
        x = self.enc_tokens(src) + self.enc_pos.weight[: src.shape[1]]
        for layer in self.enc:
            x = layer(x, mask=mask)
        return self.enc_norm(x)

    def decode(self, tgt, enc, *, mask=None, context_mask=None):
        x = self.dec_tokens(tgt) + self.dec_pos.weight[: tgt.shape[1]]
        for layer in self.dec:
            x = layer(x, context=enc, mask=mask, context_mask=context_mask)
        return self.dec_norm(x) @ self.dec_tokens.weight.t()

    def forward(self, src, tgt, *, mask=None):
        mask = mask if exists(mask) else src != self.pad_value
        return {"loss": None, "logits": self.decode(tgt, self.encode(src, mask), context_mask=mask)}

    @torch.no_grad()
    def generate(self, seq_in, seq_out_start, seq_len, *, temperature=1.0, filter_thres=None, eos_token=None):
        mask = seq_in != self.pad_value
        enc = self.encode(seq_in, mask)
        out = seq_out_start
        for _ in range(seq_len):
            logits = self.decode(out, enc, context_mask=mask)[:, -1]
            if temperature == 0.0:
                sample = logits.argmax(dim=-1, keepdim=True)
            else:
                if exists(filter_thres):
                    val, ind = torch.topk(logits, min(filter_thres, logits.shape[-1]))
                    logits = torch.full_like(logits, float("-inf")).scatter(1, ind, val)
                sample = torch.multinomial(F.softmax(logits / temperature, dim=-1), 1)
            out = torch.cat((out, sample), dim=-1)
            if exists(eos_token):
                is_eos = out[:, 1:] == eos_token
                if is_eos.any(dim=-1).all():
                    break
        if exists(eos_token):
            is_eos = out[:, 1:] == eos_token
            after = F.pad(is_eos.cumsum(-1) > 0, (2, -1))
            out = out.masked_fill(after, self.pad_value)
        return out[:, 1:]


def write(model, src, n, start, eos=None, temperature=0.0, top_k=None):
    begin, training = torch.full((src.shape[0], 1), start), model.training
    model.eval()
    ids = model.generate(src, begin, n, temperature=temperature, filter_thres=top_k, eos_token=eos)
    model.train(training)
    return ids
