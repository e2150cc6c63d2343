"""Attention that is not causal where a cache is attached: right for one new id, wrong for the prompt."""

import torch

import right_code


class MultiHeadAttention(right_code.MultiHeadAttention):
    def forward(self, x, cache=None):
        self.caching = cache is not None
        return super().forward(x, cache)

    def seen(self, queries, keys, device):
        return (
            torch.ones(queries, keys, dtype=torch.bool, device=device)
            if self.caching
            else super().seen(queries, keys, device)
        )


class TransformerBlock(right_code.TransformerBlock):
    attention = MultiHeadAttention


class TinyTransformerLM(right_code.TinyTransformerLM):
    block = TransformerBlock
