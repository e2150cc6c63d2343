from .attention import MultiHeadAttention
from .ffn import FeedForward
from .norm import LayerNorm


class TransformerBlock:
    """Pre-norm."""

    def __init__(self, d_model, num_heads, d_ff, dropout=0.0, causal=True):
        self.ln1, self.attn = LayerNorm(d_model), MultiHeadAttention(d_model, num_heads, dropout, causal)
        self.ln2, self.ffn = LayerNorm(d_model), FeedForward(d_model, d_ff, dropout)

    def __call__(self, x):
        x = x + self.attn(self.ln1(x))
        return x + self.ffn(self.ln2(x))
