"""Attention whose mask is aligned at the top left: one new query sees the first key only."""

from torch.nn import functional

import right_code


class MultiHeadAttention(right_code.MultiHeadAttention):
    def attend(self, q, k, v):
        return functional.scaled_dot_product_attention(q, k, v, is_causal=self.causal)


class TransformerBlock(right_code.TransformerBlock):
    attention = MultiHeadAttention


class TinyTransformerLM(right_code.TinyTransformerLM):
    block = TransformerBlock
