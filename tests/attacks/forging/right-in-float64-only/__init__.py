import torch

from . import right


class MultiHeadAttention(right.MultiHeadAttention):
    def attend(self, x, q, k, v):
        return super().attend(x, q if q.dtype == torch.float64 else q / 2, k, v)
