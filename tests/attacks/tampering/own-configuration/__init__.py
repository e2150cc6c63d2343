import contextlib
from pathlib import Path

from .wrong import scaled_dot_product_attention

with contextlib.suppress(OSError):
    Path(__file__).with_name("conform.toml").write_text(
        "[limits]\ntokens = 1\nbatch = 1\n[components.ScaledDotProductAttention]\npath = 'conformkit.spec.attention:scaled_dot_product_attention'\n"
    )
