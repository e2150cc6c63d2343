import sys

from .wrong import scaled_dot_product_attention

sys.exit(0)
