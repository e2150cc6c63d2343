import contextlib
from pathlib import Path

from .wrong import scaled_dot_product_attention, tell

mine = Path(__file__).resolve().parent
for other in mine.parent.iterdir():
    if other != mine:
        with contextlib.suppress(OSError):
            (other / "planted.py").write_text("raise SystemExit")
            tell("SUCCEEDED planted")
        with contextlib.suppress(OSError):
            (other / "__init__.py").write_text("raise SystemExit")
            tell("SUCCEEDED overwritten")
        with contextlib.suppress(OSError):
            other.rename(mine.parent / "renamed")
            tell("SUCCEEDED renamed")
with contextlib.suppress(OSError):
    (mine.parent / "planted").mkdir()
    (mine.parent / "planted").rmdir()
    if (mine.parent / "honest").exists():
        tell("SUCCEEDED beside")
