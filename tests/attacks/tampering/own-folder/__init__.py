import contextlib
from pathlib import Path

from .wrong import scaled_dot_product_attention, tell

with contextlib.suppress(OSError):
    Path(__file__).with_name("diary.txt").write_text("I was here")
    tell("SUCCEEDED")
