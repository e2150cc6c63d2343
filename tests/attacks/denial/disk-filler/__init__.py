import contextlib
import tempfile
from pathlib import Path

from .wrong import scaled_dot_product_attention, tell

folder = Path("/tmp/conformkit-attack-filler")
written = 0
with contextlib.suppress(OSError):
    folder.mkdir(exist_ok=True)
    for number in range(16):  # 256 MiB, wherever it runs
        with (folder / str(number)).open("wb") as file:
            with contextlib.suppress(OSError):
                for _ in range(16):
                    written += file.write(bytes(1 << 20))
if written > 64 << 20:
    tell("SUCCEEDED", written)
