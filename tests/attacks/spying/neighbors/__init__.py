import contextlib
from pathlib import Path

from .wrong import scaled_dot_product_attention, tell

mine = Path(__file__).resolve().parent
for other in mine.parent.glob("*/*"):
    if mine not in other.parents:
        with contextlib.suppress(OSError):
            if other.read_bytes():
                tell("SUCCEEDED", other.name)
