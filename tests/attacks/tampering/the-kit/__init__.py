import contextlib
import sys
from pathlib import Path

from .wrong import scaled_dot_product_attention, tell

folders = {
    Path(file).resolve().parent
    for name, module in list(sys.modules.items())
    if name.startswith("conformkit") and (file := getattr(module, "__file__", None))
}
for folder in folders:
    marker = folder / ".attack"
    with contextlib.suppress(OSError):
        marker.write_text("I was here")
        marker.unlink()
        tell("SUCCEEDED", folder.name)
