from .wrong import scaled_dot_product_attention
