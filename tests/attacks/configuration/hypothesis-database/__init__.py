from .right import scaled_dot_product_attention
