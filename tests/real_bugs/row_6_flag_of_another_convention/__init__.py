"""Attention that is documented to align queries with the last key, and aligns them with the first."""

import torch

import right_attention


class Attention(right_attention.Attention):
    def earlier(self, queries, keys):
        return torch.ones(queries, keys, dtype=torch.bool).tril()


scaled_dot_product_attention = Attention().__call__
