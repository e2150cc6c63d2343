"""One class for everything, raw parameters and einsum; two fixed segments, added masks, positions before the others."""

import torch
from torch import nn


class BertForPreTraining(nn.Module):
    def __init__(self, vocab_size, d_model, num_heads, num_layers, d_ff, max_len, dropout=0.0):
        super().__init__()
        h, w, n = num_heads, d_model // num_heads, num_layers
        if w * h != d_model:
            raise ValueError("num_heads must divide d_model")

        def p(*shape):
            return nn.Parameter(torch.randn(*shape) * 0.02)

        def ones(*shape):
            return nn.Parameter(torch.ones(*shape))

        def zeros(*shape):
            return nn.Parameter(torch.zeros(*shape))

        self.wpe, self.wte, self.wse = p(max_len, d_model), p(vocab_size, d_model), p(2, d_model)
        self.emb_ln_g, self.emb_ln_b = ones(d_model), zeros(d_model)
        self.wq, self.wk, self.wv = (nn.ParameterList(p(d_model, h, w) for _ in range(n)) for _ in range(3))
        self.bq, self.bk, self.bv = (nn.ParameterList(zeros(h, w) for _ in range(n)) for _ in range(3))
        self.wo, self.bo = (
            nn.ParameterList(p(h, w, d_model) for _ in range(n)),
            nn.ParameterList(zeros(d_model) for _ in range(n)),
        )
        self.w1, self.b1 = (
            nn.ParameterList(p(d_model, d_ff) for _ in range(n)),
            nn.ParameterList(zeros(d_ff) for _ in range(n)),
        )
        self.w2, self.b2 = (
            nn.ParameterList(p(d_ff, d_model) for _ in range(n)),
            nn.ParameterList(zeros(d_model) for _ in range(n)),
        )
        self.ln1_g, self.ln1_b = (
            nn.ParameterList(ones(d_model) for _ in range(n)),
            nn.ParameterList(zeros(d_model) for _ in range(n)),
        )
        self.ln2_g, self.ln2_b = (
            nn.ParameterList(ones(d_model) for _ in range(n)),
            nn.ParameterList(zeros(d_model) for _ in range(n)),
        )
        self.transform_w, self.transform_b = p(d_model, d_model), zeros(d_model)
        self.transform_ln_g, self.transform_ln_b = ones(d_model), zeros(d_model)
        self.vocab_bias = zeros(vocab_size)
        self.pool_w, self.pool_b, self.nsp_w, self.nsp_b = p(d_model, d_model), zeros(d_model), p(d_model, 2), zeros(2)
        self.rate, self.w = dropout, w

    def drop(self, x):
        return nn.functional.dropout(x, self.rate, self.training)

    @staticmethod
    def norm(x, g, b):
        m = x.mean(-1, keepdim=True)
        return (x - m) * ((x - m).square().mean(-1, keepdim=True) + 1e-12).rsqrt() * g + b

    def forward(self, ids, segments, mask=None):
        if ids.max() >= len(self.wte) or segments.max() > 1:
            raise IndexError("no such row")
        x = self.wpe[None, : ids.shape[1]] + self.wte[ids] + self.wse[segments]
        x = self.drop(self.norm(x, self.emb_ln_g, self.emb_ln_b))
        for i in range(len(self.wq)):
            q = torch.einsum("btd,dhw->bhtw", x, self.wq[i]) + self.bq[i][:, None]
            k = torch.einsum("btd,dhw->bhtw", x, self.wk[i]) + self.bk[i][:, None]
            v = torch.einsum("btd,dhw->bhtw", x, self.wv[i]) + self.bv[i][:, None]
            s = torch.einsum("bhtw,bhsw->bhts", q, k) / self.w**0.5
            s = s if mask is None else s + mask
            y = torch.einsum("bhts,bhsw,hwd->btd", self.drop(s.softmax(-1)), v, self.wo[i]) + self.bo[i]
            x = self.norm(x + self.drop(y), self.ln1_g[i], self.ln1_b[i])
            y = nn.functional.gelu(x @ self.w1[i] + self.b1[i]) @ self.w2[i] + self.b2[i]
            x = self.norm(x + self.drop(y), self.ln2_g[i], self.ln2_b[i])
        g = nn.functional.gelu(x @ self.transform_w + self.transform_b)
        g = self.norm(g, self.transform_ln_g, self.transform_ln_b)
        return g @ self.wte.T + self.vocab_bias, torch.tanh(
            x[:, 0] @ self.pool_w + self.pool_b
        ) @ self.nsp_w + self.nsp_b
