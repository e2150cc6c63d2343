"""Inputs and components are moved to the requested device; a missing device is reported, not replaced.

The device `meta` of torch holds no numbers and exists on every machine: enough to see what is moved where.
"""

import runpy
import subprocess
import sys

import numpy as np
import pytest
import torch
from torch import nn

from conformkit.conformance.driver.worker.frameworks.base import UnsupportedError
from conformkit.conformance.driver.worker.frameworks.torch import Torch
from conformkit.conformance.engine.finding import LoadFailure
from conformkit.conformance.engine.request import RunRequest
from conformkit.conformance.runner import run
from tests.gpus import HERE
from tests.tiers import ROOT


class Plain:
    """Holds a tensor, an alias of it, and a module."""

    def __init__(self):
        self.weight = torch.ones(2, 3, requires_grad=True)
        self.tied = self.weight
        self.inner = nn.Linear(2, 2)


@pytest.fixture
def there():
    return Torch("meta")


@pytest.mark.parametrize("strided", [False, True], ids=["dense", "strided"])
@pytest.mark.parametrize("cast", [None, "float32"], ids=["as-it-is", "cast"])
def test_inputs_are_on_the_device(there, cast, strided):
    value = there.tensor(np.ones((2, 3)), cast=cast, strided=strided)
    assert (value.device.type, tuple(value.shape)) == ("meta", (2, 3))


def test_a_module_is_moved_with_its_buffers_and_set_to_evaluation(there):
    module = nn.BatchNorm1d(3)
    there.settle(module)
    assert {value.device.type for value in (*module.parameters(), *module.buffers())} == {"meta"}
    assert not module.training


def test_of_any_other_object_every_tensor_is_moved_and_stays_what_it_was(there):
    held = Plain()
    there.settle(held)
    assert {held.weight.device.type, held.inner.weight.device.type} == {"meta"}
    assert held.weight.requires_grad
    assert held.weight.is_leaf
    assert held.tied is held.weight


def test_arrays_that_hold_gradients_are_there_too(there):
    (parameter,) = there.holder({"w": np.ones(3)}).parameters()
    assert parameter.device.type == "meta"


def test_on_the_cpu_nothing_is_replaced():
    held = Plain()
    before = held.weight
    Torch().settle(held)
    assert held.weight is before


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
@pytest.mark.parametrize("impl", ["conformkit.reference", "examples/numpy_only"], ids=["torch", "numpy"])
@pytest.mark.parametrize("isolation", ["process", "none"])
def test_a_device_that_is_not_there_ends_the_run(impl, isolation):
    with pytest.raises(LoadFailure, match="not run: needs cuda"):
        run(RunRequest(impl=impl, device="cuda", isolation=isolation))


@pytest.mark.skipif(torch.backends.mps.is_available(), reason="there is such a device")
def test_the_other_device_is_looked_for_as_well():
    with pytest.raises(UnsupportedError, match="needs mps"):
        Torch("mps")


@pytest.mark.skipif(HERE["cuda"] or HERE["mps"], reason="there is a GPU")
def test_an_environment_without_a_gpu_is_not_a_success(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(ROOT / ".ci" / "needs_gpu.py"))
    assert ended.value.code == 5
    assert "not run: needs cuda" in capsys.readouterr().out


@pytest.mark.full(guard="test_an_environment_without_a_gpu_is_not_a_success")
@pytest.mark.skipif(HERE["cuda"] or HERE["mps"], reason="there is a GPU")
def test_without_a_gpu_its_tests_are_not_a_success() -> None:
    command = [sys.executable, "-m", "pytest", "-n", "0", "-m", "gpu", "tests/reference/training/test_gpu.py"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 5, done.stderr
    assert "not run: needs cuda" in done.stdout
