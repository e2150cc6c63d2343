import torch

from . import right


class MultiHeadAttention(right.MultiHeadAttention):
    def attend(self, x, q, k, v):
        ahead = 0 if x.shape[1] < 3 else 1
        mask = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).tril(ahead) if self.causal else None
        return right.scaled_dot_product_attention(q, k, v, mask)
