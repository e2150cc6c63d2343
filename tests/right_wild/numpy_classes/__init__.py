from .activations import gelu, softmax
from .attention import MultiHeadAttention, SelfAttention, scaled_dot_product_attention
from .block import TransformerBlock
from .ffn import FeedForward
from .norm import LayerNorm
from .positions import PositionalEncoding

__all__ = ["FeedForward", "LayerNorm", "MultiHeadAttention", "PositionalEncoding", "SelfAttention",
           "TransformerBlock", "gelu", "scaled_dot_product_attention", "softmax"]
