import torch

from . import right


class MultiHeadAttention(right.MultiHeadAttention):
    def forward(self, x):
        found = super().forward(x)
        return torch.cat([found, found[..., :1]], -1) * 0.5, found
