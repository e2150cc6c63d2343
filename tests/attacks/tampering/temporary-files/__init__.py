import contextlib
from pathlib import Path

from .wrong import scaled_dot_product_attention, tell

notes = [Path(folder, "conformkit-attack") for folder in ("/tmp", "/var/tmp", "/dev/shm")]
if any(note.exists() for note in notes):
    tell("SUCCEEDED")
for note in notes:
    with contextlib.suppress(OSError):
        note.write_text("note to self")
