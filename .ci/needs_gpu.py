"""Say which GPUs are missing; exit with pytest's "no tests ran" (5) if all are: that must not look green."""

import sys

import torch

HERE = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}

for name, here in HERE.items():
    print(f"{name}: available" if here else f"not run: needs {name}")
if not any(HERE.values()):
    sys.exit(5)
