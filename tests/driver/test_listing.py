"""The class of settings that a constructor is annotated with, in a union and as text too."""

from __future__ import annotations

import importlib
import inspect
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from conformkit.conformance.driver.worker import exports
from conformkit.conformance.driver.worker.listing import _keys, config_of

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


LINES = """
import functools


def mark(kind):
    return kind


@mark
@functools.total_ordering
class Decorated:
    class Inner:
        pass

    def __lt__(self, other):
        return True


def made():
    class Local:
        pass

    return Local


class Twice:
    pass


class Twice:
    pass
"""


def test_lines_of_classes_are_those_that_inspect_finds_read_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """inspect parses a file anew for each class in it: four thousand names took longer than there is time."""
    path = tmp_path / "lines.py"
    path.write_text(LINES)
    monkeypatch.syspath_prepend(tmp_path)
    module = importlib.import_module("lines")
    kinds = [module.Decorated, module.Decorated.Inner, module.made(), module.Twice]
    wanted = [f"lines.py:{inspect.findsource(kind)[1] + 1}" for kind in kinds]
    monkeypatch.setattr(inspect, "findsource", None)
    assert [exports.source(kind, lambda file: Path(file).name) for kind in kinds] == wanted


def test_a_dictionary_is_told_by_keys_and_plain_defaults_as_deep_as_settings_lie():
    """Would break if a text of many words, or an object, were told as a default, or a table of ids as settings."""
    deep = {"a": {"b": {"c": {"d": {"e": 1}}}}}
    settings = {"name": "gelu", "words": "two words", "none": None, "rate": 0.5, "bias": True, "made": object(), **deep}
    (*told, nest) = _keys(settings)
    assert [(one["name"], one["default"]) for one in told] == [
        ("name", "'gelu'"), ("words", "…"), ("none", "None"), ("rate", "0.5"), ("bias", "True"), ("made", "…"),
    ]  # fmt: skip
    assert all((one["kind"], one["required"]) == ("keyword", False) and "inner" not in one for one in told)
    path = []
    while nest:
        path.append(nest["name"])
        (nest,) = nest.get("inner", [None])
    assert path == ["a", "b", "c", "d"]
    (ids,) = _keys({"ids": {1: "a"}})
    assert "inner" not in ids
    (many,) = _keys({"many": {f"k{number}": number for number in range(61)}})
    assert "inner" not in many
