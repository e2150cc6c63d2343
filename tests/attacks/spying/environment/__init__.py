import os

from .wrong import scaled_dot_product_attention, tell

for name, value in os.environ.items():
    if "the-secret" in value or "PASSWORD" in name or "PYTEST" in name or "CONFORM" in name:
        tell("SUCCEEDED", name, value)
