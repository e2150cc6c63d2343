"""Numbers at the top of a file are set for one request: what is built next reads the author's."""

import sys
import types

import pytest
import torch

from conformkit.conformance.driver.worker.frameworks.base import RequestError
from conformkit.conformance.driver.worker.module_globals import device_named, globals_set


@pytest.fixture
def module(monkeypatch):
    """Return an imported module with settings in the usual forms."""
    made = types.ModuleType("settings_of_a_test")
    made.width, made.config, made.args = 64, {"heads": 4}, types.SimpleNamespace(layers=2)
    monkeypatch.setitem(sys.modules, made.__name__, made)
    return made


def test_globals_are_as_before_afterwards(module):
    """Catches a size that stays from the build before, in each form; it changes what other code computes."""
    with globals_set(module.__name__, {"width": 12, "config.heads": 3, "args.layers": 1}):
        assert (module.width, module.config, module.args.layers) == (12, {"heads": 3}, 1)
    assert (module.width, module.config, module.args.layers) == (64, {"heads": 4}, 2)


def test_those_before_an_unknown_one_are_taken_back(module):
    """Catches a request that fails half way and leaves what it has set."""
    with (
        pytest.raises(RequestError, match="has no global depth"),
        globals_set(module.__name__, {"width": 12, "depth": 1}),
    ):
        pass
    assert module.width == 64


def test_the_device_at_the_top_of_a_file_is_one_of_its_settings(module):
    """Catches the most copied lecture, red for its device, and a list of devices that is replaced."""
    assert device_named(module.__name__, "ghost") == {}
    module.device, module.DEVICE, module.devices = "cuda", torch.device("cpu"), ["cpu"]
    assert device_named(module.__name__, "meta") == {"device": "meta", "DEVICE": torch.device("meta")}
