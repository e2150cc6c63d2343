"""ALiBi whose exponents begin with 0."""

import math

import torch

import right_code


class MultiHeadAttention(right_code.MultiHeadAttention):
    def scores(self, q, k):
        times = torch.arange(k.shape[2], device=q.device)
        distance = (times - times[k.shape[2] - q.shape[2] :, None]).abs()
        slopes = torch.tensor(self.slopes(), dtype=torch.float64, device=q.device)
        return super().scores(q, k) - (slopes[:, None, None] * distance).to(q.dtype)

    def slopes(self):
        below = 2 ** math.floor(math.log2(self.num_heads))
        return self.series(below) + self.series(2 * below)[::2][: self.num_heads - below]

    def series(self, heads):
        return [2.0 ** (-8.0 * h / heads) for h in range(heads)]
