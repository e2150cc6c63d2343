import contextlib
from pathlib import Path

from .wrong import scaled_dot_product_attention

folder = Path("/tmp/conformkit-attack-tiny")
with contextlib.suppress(OSError):
    folder.mkdir(exist_ok=True)
    for number in range(30_000):  # at most so many, wherever it runs
        (folder / f"{number}").touch()
