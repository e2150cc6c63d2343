import contextlib
from pathlib import Path

from .wrong import scaled_dot_product_attention, tell

for process in Path("/proc").iterdir():
    if process.name.isdigit():
        for what in ("environ", "cmdline"):
            with contextlib.suppress(OSError):
                text = (process / what).read_bytes()
                if b"the-secret" in text or b"pytest" in text or b"conform run" in text:
                    tell("SUCCEEDED", what)
