import contextlib
from pathlib import Path

from .wrong import scaled_dot_product_attention, tell

note = Path("/dev/shm/conformkit-attack-note")
if note.exists():
    tell("SUCCEEDED")
with contextlib.suppress(OSError):
    note.write_text("q @ k.T / sqrt(d_k)")
