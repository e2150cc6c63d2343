import contextlib
from pathlib import Path

from .wrong import scaled_dot_product_attention, tell

here = Path(__file__).resolve()
for folder in [*here.parents, Path.cwd(), Path("/tmp")]:
    for name in ("policy.toml", "results.sqlite", "grades.csv"):
        with contextlib.suppress(OSError):
            if (folder / name).read_bytes():
                tell("SUCCEEDED", name)
