"""Attention that is causal only where another mask is passed as well."""

import math

import torch

import right_code


class MultiHeadAttention(right_code.MultiHeadAttention):
    def forward(self, x, mask=None):
        q, k, v = (self.split(part(x)) for part in (self.q, self.k, self.v))
        scores = self.scores(q, k)
        if mask is not None:
            seen = self.seen(x.shape[1], x.shape[1], x.device) & mask
            scores = scores.masked_fill(~seen, -math.inf)
        return self.out(self.merge(torch.softmax(scores, dim=-1) @ v))
