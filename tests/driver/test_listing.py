"""The class of settings that a constructor is annotated with, in a union and as text too."""

from __future__ import annotations

import sys
import types
from collections.abc import Callable
from typing import Any

import pytest

from conformkit.conformance.driver.worker.listing import config_of

SETTINGS = """
class Vision:
    def __init__(self, width=4): ...
class Text:
    def __init__(self, width=4): ...
class Layer:
    def __init__(self, config: {annotation}, dropout: float = 0.0): ...
"""


@pytest.fixture
def layer(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Any]:
    def made(annotation: str) -> Any:
        module = types.ModuleType("annotated_settings")
        monkeypatch.setitem(sys.modules, module.__name__, module)
        exec(SETTINGS.format(annotation=annotation), vars(module))
        return module.Layer

    return made


@pytest.mark.parametrize(
    ("annotation", "wanted"),
    [("Vision", "Vision"), ("Vision | Text", "Vision"), ("'Text | None'", "Text"), ("int", None)],
)
def test_settings_are_found_by_annotation(layer: Callable[[str], Any], annotation: str, wanted: str | None) -> None:
    assert config_of(layer(annotation)) == (wanted and f"annotated_settings:{wanted}")
