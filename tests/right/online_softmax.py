"""Chunked attention with an online softmax, a custom autograd.Function for GELU, checkpointed blocks."""

import math

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint


def scaled_dot_product_attention(q, k, v, mask=None, chunk=3):
    scale = 1.0 / math.sqrt(q.shape[-1])
    n = k.shape[-2]
    if mask is not None:
        if mask.dtype == torch.bool:
            mask = torch.zeros(mask.shape, dtype=q.dtype, device=q.device).masked_fill(~mask, -math.inf)
        mask = mask.to(q.dtype).expand(*torch.broadcast_shapes(mask.shape, (*q.shape[:-1], n)))
    m = torch.full((*q.shape[:-1], 1), -math.inf, dtype=q.dtype, device=q.device)
    l = torch.zeros_like(m)
    acc = torch.zeros(*q.shape[:-1], v.shape[-1], dtype=q.dtype, device=q.device)
    for start in range(0, n, chunk):
        s = q @ k[..., start : start + chunk, :].transpose(-1, -2) * scale
        if mask is not None:
            s = s + mask[..., start : start + chunk]
        new = torch.maximum(m, s.amax(-1, keepdim=True)).detach()
        safe = torch.where(new == -math.inf, torch.zeros_like(new), new)
        p = torch.exp(s - safe)
        fix = torch.exp(m - safe)
        l = l * fix + p.sum(-1, keepdim=True)
        acc = acc * fix + p @ v[..., start : start + chunk, :]
        m = new
    return acc / torch.where(l == 0, torch.ones_like(l), l)


class Gelu(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * 0.5 * torch.erfc(-x * math.sqrt(0.5))

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        cdf = 0.5 * torch.erfc(-x * math.sqrt(0.5))
        pdf = torch.exp(-0.5 * x * x) / math.sqrt(2 * math.pi)
        return g * (cdf + x * pdf)


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, num_heads, dropout=0.0, causal=True):
        super().__init__()
        assert d_model % num_heads == 0
        self.nh, self.hd, self.causal = num_heads, d_model // num_heads, causal
        self.q_proj = nn.Linear(d_model, d_model, bias=False)
        self.k_proj = nn.Linear(d_model, d_model, bias=False)
        self.v_proj = nn.Linear(d_model, d_model, bias=False)
        self.o_proj = nn.Linear(d_model, d_model, bias=False)
        self.resid_drop = nn.Dropout(dropout)

    def forward(self, x):
        B, T, C = x.size()
        split = lambda t: t.view(B, T, self.nh, self.hd).transpose(1, 2)
        q, k, v = split(self.q_proj(x)), split(self.k_proj(x)), split(self.v_proj(x))
        mask = torch.ones(T, T, device=x.device).tril() == 1 if self.causal else None
        y = scaled_dot_product_attention(q, k, v, mask)
        return self.resid_drop(self.o_proj(y.transpose(1, 2).contiguous().view(B, T, C)))


class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff, dropout=0.0):
        super().__init__()
        self.w_in = nn.Linear(d_model, d_ff)
        self.w_out = nn.Linear(d_ff, d_model)
        self.drop = nn.Dropout(dropout)

    def forward(self, x):
        return self.drop(self.w_out(Gelu.apply(self.w_in(x))))


class PositionalEncoding(nn.Module):
    def __init__(self, d_model, max_len):
        super().__init__()
        inv = torch.exp(-math.log(10000.0) * torch.arange(0, d_model, 2).float() / d_model)
        t = torch.arange(max_len).float()
        ang = torch.einsum("i,j->ij", t, inv)
        pe = torch.empty(max_len, d_model)
        pe[:, ::2], pe[:, 1::2] = ang.sin(), ang.cos()[:, : d_model // 2]
        self.pe = nn.Parameter(pe, requires_grad=False)

    def forward(self, x):
        B, T, D = x.shape
        assert T <= len(self.pe), f"{T} positions, {len(self.pe)} rows"
        return x + self.pe[None, :T, :]


class TransformerBlock(nn.Module):
    def __init__(self, d_model, num_heads, d_ff, dropout=0.0, causal=True):
        super().__init__()
        self.ln_1 = nn.LayerNorm(d_model)
        self.attn = MultiHeadAttention(d_model, num_heads, dropout, causal)
        self.ln_2 = nn.LayerNorm(d_model)
        self.mlp = FeedForward(d_model, d_ff, dropout)

    def _run(self, x):
        y = self.attn(self.ln_1(x))
        x = x + y
        z = self.mlp(self.ln_2(x))
        return x + z

    def forward(self, x):
        if torch.is_grad_enabled() and x.requires_grad:
            return checkpoint(self._run, x, use_reentrant=False)
        return self._run(x)


class TinyTransformerLM(nn.Module):
    def __init__(self, vocab_size, d_model, num_heads, num_layers, d_ff, block_size, dropout=0.0):
        super().__init__()
        self.block_size = block_size
        self.transformer = nn.ModuleDict(
            dict(
                wte=nn.Embedding(vocab_size, d_model),
                wpe=PositionalEncoding(d_model, block_size),
                drop=nn.Dropout(dropout),
                h=nn.ModuleList([TransformerBlock(d_model, num_heads, d_ff, dropout) for _ in range(num_layers)]),
                ln_f=nn.LayerNorm(d_model),
            )
        )
        self.lm_head = nn.Linear(d_model, vocab_size)
        self.apply(self._init_weights)

    def _init_weights(self, module):
        if isinstance(module, nn.Linear):
            torch.nn.init.normal_(module.weight, mean=0.0, std=0.02)
            if module.bias is not None:
                torch.nn.init.zeros_(module.bias)
        elif isinstance(module, nn.Embedding):
            torch.nn.init.normal_(module.weight, mean=0.0, std=0.02)

    def forward(self, idx, targets=None):
        b, t = idx.size()
        assert t <= self.block_size, f"Cannot forward sequence of length {t}"
        x = self.transformer.drop(self.transformer.wpe(self.transformer.wte(idx)))
        for block in self.transformer.h:
            x = block(x)
        x = self.transformer.ln_f(x)
        logits = self.lm_head(x)
        loss = None
        if targets is not None:
            loss = nn.functional.cross_entropy(logits.view(-1, logits.size(-1)), targets.view(-1), ignore_index=-1)
        return logits, loss

    @torch.no_grad()
    def generate(self, idx, max_new_tokens, temperature=1.0, top_k=None, top_p=None):
        self_training = self.training
        self.eval()
        for _ in range(max_new_tokens):
            idx_cond = idx if idx.size(1) <= self.block_size else idx[:, -self.block_size :]
            logits, _ = self(idx_cond)
            logits = logits[:, -1, :] / max(temperature, 1e-9)
            if top_k is not None:
                v, _ = torch.topk(logits, min(top_k, logits.size(-1)))
                logits[logits < v[:, [-1]]] = -float("Inf")
            probs = logits.softmax(-1)
            if top_p is not None:
                sp, si = torch.sort(probs, descending=True)
                cs = sp.cumsum(-1)
                sp = sp.masked_fill(cs - sp >= top_p, 0.0)
                sp = sp / sp.sum(-1, keepdim=True)
                pick = torch.multinomial(sp, 1)
                nxt = si.gather(-1, pick)
            elif temperature == 0:
                nxt = probs.argmax(-1, keepdim=True)
            else:
                nxt = torch.multinomial(probs, 1)
            idx = torch.cat((idx, nxt), dim=1)
        self.train(self_training)
        return idx
