"""A mask of later positions, True where they are hidden, for a function that reads True as seen."""

import right_code
import torch
from torch.nn import functional


class MultiHeadAttention(right_code.MultiHeadAttention):
    def attend(self, q, k, v):
        hidden = torch.ones(q.shape[2], k.shape[2], dtype=torch.bool, device=q.device).triu(1)
        return functional.scaled_dot_product_attention(q, k, v, attn_mask=hidden if self.causal else None)


class TransformerBlock(right_code.TransformerBlock):
    attention = MultiHeadAttention


class TinyTransformerLM(right_code.TinyTransformerLM):
    block = TransformerBlock
