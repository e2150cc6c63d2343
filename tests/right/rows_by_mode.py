"""As sockeye: (q; k; v) in training, in evaluation for each head its q, k, v: the rows of one parameter change places."""

import math

import torch
from torch import nn


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, num_heads, dropout=0.0, causal=True):
        super().__init__()
        self.h, self.causal = num_heads, causal
        self.ff_in = nn.Linear(d_model, 3 * d_model, bias=False)
        self.ff_out = nn.Linear(d_model, d_model, bias=False)
        self.drop = nn.Dropout(dropout)
        self.by_head = False

    def train(self, mode=True):
        if mode == self.by_head:
            w = self.ff_in.weight.data
            d = w.shape[1]
            a = w.view(self.h, 3, -1, d).transpose(0, 1) if mode else w.view(3, self.h, -1, d).transpose(0, 1)
            self.ff_in.weight.data = a.reshape(3 * d, d).contiguous()
            self.by_head = not mode
        return super().train(mode)

    def forward(self, x):
        b, t, d = x.shape
        y = self.ff_in(x)
        if self.by_head:
            y = y.view(b, t, self.h, 3, -1)
            q, k, v = (y[:, :, :, i].transpose(1, 2) for i in range(3))
        else:
            q, k, v = (z.view(b, t, self.h, -1).transpose(1, 2) for z in y.chunk(3, -1))
        s = q @ k.mT / math.sqrt(q.shape[-1])
        if self.causal:
            s = s.masked_fill(torch.ones(t, t, dtype=torch.bool, device=x.device).triu(1), -math.inf)
        return self.ff_out((self.drop(s.softmax(-1)) @ v).transpose(1, 2).reshape(b, t, d))
