import contextlib
import os
import sys
from pathlib import Path

from .wrong import scaled_dot_product_attention

local = Path(os.path.expanduser("~"), ".local")
with contextlib.suppress(OSError):
    folder = local / f"lib/python{sys.version_info[0]}.{sys.version_info[1]}/site-packages"
    folder.mkdir(parents=True)
    (folder / "usercustomize.py").write_text("print('usercustomize')")
