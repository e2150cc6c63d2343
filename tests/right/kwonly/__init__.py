"""F.multi_head_attention_forward with separate matrices, positions first inside; keyword-only arguments."""

import torch
import torch.nn.functional as F
from torch import nn


def scaled_dot_product_attention(q, k, v, mask=None):
    d = q.size(-1)
    logits = torch.baddbmm(
        torch.zeros((), dtype=q.dtype, device=q.device), *_flat(q, k.transpose(-2, -1)), beta=0, alpha=d**-0.5
    )
    lead = torch.broadcast_shapes(q.shape[:-2], k.shape[:-2])
    logits = logits.view(*lead, q.size(-2), k.size(-2))
    if mask is not None:
        logits = logits + (mask if mask.is_floating_point() else torch.log(mask.to(logits.dtype)))
    hopeless = logits.amax(-1, keepdim=True) == float("-inf")
    return F.softmax(logits.masked_fill(hopeless, 0), -1).masked_fill(hopeless, 0) @ v


def _flat(a, b):
    lead = torch.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    return a.expand(*lead, *a.shape[-2:]).reshape(-1, *a.shape[-2:]), b.expand(*lead, *b.shape[-2:]).reshape(
        -1, *b.shape[-2:]
    )


class MultiHeadAttention(nn.Module):
    def __init__(self, *, d_model, num_heads, dropout=0.0, causal=True):
        super().__init__()
        if d_model % num_heads:
            raise ValueError(f"d_model = {d_model}, num_heads = {num_heads}")
        self.d_model, self.num_heads, self.p, self.causal = d_model, num_heads, dropout, causal
        for name in ("q", "k", "v", "o"):
            w = nn.Parameter(torch.empty(d_model, d_model))
            nn.init.xavier_uniform_(w)
            self.register_parameter(f"w_{name}", w)

    def forward(self, x):
        s = x.transpose(0, 1)
        mask = (
            torch.full((len(s), len(s)), float("-inf"), dtype=x.dtype, device=x.device).triu(1) if self.causal else None
        )
        y, _ = F.multi_head_attention_forward(
            s,
            s,
            s,
            self.d_model,
            self.num_heads,
            None,
            None,
            None,
            None,
            False,
            self.p,
            self.w_o,
            None,
            training=self.training,
            need_weights=False,
            attn_mask=mask,
            use_separate_proj_weight=True,
            q_proj_weight=self.w_q,
            k_proj_weight=self.w_k,
            v_proj_weight=self.w_v,
        )
        return y.transpose(0, 1)


class FeedForward(nn.Module):
    def __init__(self, *, d_model, d_ff, dropout=0.0):
        super().__init__()
        self.w1, self.w2 = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)
        self.p = dropout

    def forward(self, x):
        return self.w2(F.dropout(F.gelu(self.w1(x)), p=self.p, training=self.training))


class PositionalEncoding(nn.Module):
    def __init__(self, *, d_model, max_len):
        super().__init__()
        pe = torch.zeros(max_len, d_model, dtype=torch.float64)
        for p in range(max_len):
            for i in range(0, d_model, 2):
                a = torch.tensor(p / 10000 ** (i / d_model), dtype=torch.float64)
                pe[p, i] = torch.sin(a)
                if i + 1 < d_model:
                    pe[p, i + 1] = torch.cos(a)
        self.pe = pe

    def forward(self, x):
        if x.size(-2) > len(self.pe):
            raise ValueError(f"{x.size(-2)} > {len(self.pe)}")
        return x + self.pe[: x.size(-2)].to(device=x.device, dtype=x.dtype)


class TransformerBlock(nn.Module):
    def __init__(self, *, d_model, num_heads, d_ff, dropout=0.0, causal=True):
        super().__init__()
        self.mha = MultiHeadAttention(d_model=d_model, num_heads=num_heads, dropout=dropout, causal=causal)
        self.ffn = FeedForward(d_model=d_model, d_ff=d_ff, dropout=dropout)
        self.scale = nn.Parameter(torch.ones(2, d_model))
        self.shift = nn.Parameter(torch.zeros(2, d_model))
        self.p = dropout

    def norm(self, i, x):
        return F.layer_norm(x, x.shape[-1:], self.scale[i], self.shift[i], 1e-5)

    def residual(self, x, y):
        return F.dropout(y, self.p, self.training) + x

    def forward(self, x):
        x = self.residual(x, self.mha(self.norm(0, x)))
        return self.residual(x, self.ffn(self.norm(1, x)))


class TinyTransformerLM(nn.Module):
    def __init__(self, *, vocab_size, d_model, num_heads, num_layers, d_ff, block_size, dropout=0.0):
        super().__init__()
        self.block_size = block_size
        self.emb = nn.Embedding(vocab_size, d_model)
        self.pe = PositionalEncoding(d_model=d_model, max_len=block_size)
        self.layers = nn.ModuleList(
            [
                TransformerBlock(d_model=d_model, num_heads=num_heads, d_ff=d_ff, dropout=dropout)
                for _ in range(num_layers)
            ]
        )
        self.norm_f, self.head, self.p = nn.LayerNorm(d_model), nn.Linear(d_model, vocab_size), dropout

    def forward(self, *, ids):
        x = F.dropout(self.pe(self.emb(ids)), self.p, self.training)
        for layer in self.layers:
            x = layer(x)
        return self.head(self.norm_f(x))

    def generate(self, *, ids, max_new_tokens, temperature=1.0, top_k=None, top_p=None):
        if temperature < 0:
            raise ValueError(f"temperature = {temperature}")
        mode = self.training
        self.train(mode=False)
        with torch.no_grad():
            while max_new_tokens:
                z = self(ids=ids[:, -self.block_size :])[:, -1].float()
                ids = torch.cat((ids, _next(z, temperature, top_k, top_p)), dim=-1)
                max_new_tokens -= 1
        self.train(mode=mode)
        return ids


def _next(z, temperature, top_k, top_p):
    if not temperature:
        return z.argmax(dim=-1, keepdim=True)
    z, ids = torch.sort(z / temperature, dim=-1, descending=True)
    keep = torch.ones_like(z, dtype=torch.bool)
    if top_k is not None:
        if top_k < 1:
            raise ValueError(f"top_k = {top_k}")
        keep[:, top_k:] = False
    if top_p is not None:
        c = z.masked_fill(~keep, -torch.inf).softmax(-1).cumsum(-1)
        keep[:, 1:] &= c[:, :-1] < top_p
    return ids.gather(-1, z.masked_fill(~keep, -torch.inf).softmax(-1).multinomial(1))
