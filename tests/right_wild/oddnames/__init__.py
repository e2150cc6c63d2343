"""A decoder in which a head may have any width, for queries and keys another than for values."""
import math

import torch
from torch import nn


class Linear(nn.Module):
    def __init__(self, in_sz, out_sz, use_bias=True, init_scale=1.0):
        super().__init__()
        self.kernel = nn.Parameter(torch.empty(in_sz, out_sz))
        self.use_bias = use_bias
        if use_bias:
            self.offset = nn.Parameter(torch.zeros(out_sz))
        nn.init.normal_(self.kernel, std=init_scale / math.sqrt(in_sz))

    def forward(self, x):
        y = torch.tensordot(x, self.kernel, dims=1)
        return y + self.offset if self.use_bias else y


class Attn(nn.Module):
    def __init__(self, init_size, n_hd, *, qk_sz=None, v_sz=None, p_drop=0.0):
        super().__init__()
        qk_sz = qk_sz or init_size // n_hd
        v_sz = v_sz or init_size // n_hd
        assert qk_sz > 0 and v_sz > 0
        self.n_hd, self.qk_sz, self.v_sz = n_hd, qk_sz, v_sz
        self.queries_proj = Linear(init_size, n_hd * qk_sz, use_bias=True)
        self.keys_proj = Linear(init_size, n_hd * qk_sz, use_bias=True)
        self.values_proj = Linear(init_size, n_hd * v_sz, use_bias=True)
        self.agg_proj = Linear(n_hd * v_sz, init_size, use_bias=True)
        self.p_drop = nn.Dropout(p_drop)

    def forward(self, seq):
        bs, n, _ = seq.shape
        qs = self.queries_proj(seq).view(bs, n, self.n_hd, self.qk_sz)
        ks = self.keys_proj(seq).view(bs, n, self.n_hd, self.qk_sz)
        vs = self.values_proj(seq).view(bs, n, self.n_hd, self.v_sz)
        sims = torch.einsum("bihc,bjhc->bijh", qs, ks) / math.sqrt(self.qk_sz)
        keep = torch.ones(n, n, device=seq.device).tril().bool()[None, :, :, None]
        probs = self.p_drop(torch.softmax(sims.masked_fill(~keep, -math.inf), dim=2))
        return self.agg_proj(torch.einsum("bijh,bjhc->bihc", probs, vs).reshape(bs, n, -1))


class Mlp(nn.Module):
    def __init__(self, init_size, mid_size, p_drop=0.0):
        super().__init__()
        self.lin_in = Linear(init_size, mid_size, use_bias=True)
        self.lin_out = Linear(mid_size, init_size, use_bias=True)
        self.p_drop = nn.Dropout(p_drop)

    def forward(self, seq):
        return self.lin_out(self.p_drop(nn.functional.silu(self.lin_in(seq))))


class Layer(nn.Module):
    def __init__(self, init_size, n_hd, mid_size, *, qk_sz=None, v_sz=None, p_drop=0.0):
        super().__init__()
        self.ln_attn, self.ln_mlp = nn.LayerNorm(init_size, eps=1e-6), nn.LayerNorm(init_size, eps=1e-6)
        self.attn = Attn(init_size, n_hd, qk_sz=qk_sz, v_sz=v_sz, p_drop=p_drop)
        self.mlp = Mlp(init_size, mid_size, p_drop)

    def forward(self, seq):
        seq = seq + self.attn(self.ln_attn(seq))
        return seq + self.mlp(self.ln_mlp(seq))


class PosTable(nn.Module):
    def __init__(self, init_size, ctx_n):
        super().__init__()
        self.pos_kernel = nn.Parameter(torch.randn(ctx_n, init_size) * 0.02)

    def forward(self, seq):
        assert seq.shape[1] <= self.pos_kernel.shape[0], "context exceeded"
        return seq + self.pos_kernel[: seq.shape[1]]


class Decoder(nn.Module):
    def __init__(self, *, voc_n, init_size, n_hd, lyr_n, mid_size, ctx_n, qk_sz=None, v_sz=None, p_drop=0.0):
        super().__init__()
        self.tok_kernel = nn.Parameter(torch.randn(voc_n, init_size) * 0.02)
        self.pos = PosTable(init_size, ctx_n)
        self.lyrs = nn.ModuleList(
            [Layer(init_size, n_hd, mid_size, qk_sz=qk_sz, v_sz=v_sz, p_drop=p_drop) for _ in range(lyr_n)]
        )
        self.ln_out = nn.LayerNorm(init_size, eps=1e-6)

    def forward(self, tok_ids):
        seq = self.pos(self.tok_kernel[tok_ids.long()])
        for lyr in self.lyrs:
            seq = lyr(seq)
        return self.ln_out(seq) @ self.tok_kernel.t()
