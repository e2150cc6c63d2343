"""The GPUs that tests need. Tests of missing ones are skipped, and the summary says so."""

import pytest
import torch

HERE = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}

on_each_gpu = pytest.mark.parametrize(
    "device",
    [
        pytest.param(name, marks=pytest.mark.skipif(not here, reason=f"not run: needs {name}"))
        for name, here in HERE.items()
    ],
)
