from .wrong import MultiHeadAttention, scaled_dot_product_attention
