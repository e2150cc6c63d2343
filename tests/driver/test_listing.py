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

from conformkit.conformance.driver.worker import exports, listing
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


class Named:
    ndim, dtype = 1, "float32"


@pytest.mark.parametrize(
    ("question", "yes", "no"),
    [
        (listing._is_plain, [None, True, 3, 0.5, "relu"], ["a b", [1], (), {}, Named, b"relu"]),
        (listing._is_table, [{"a": 1}], [{}, {1: 2}, {"a": 1, 2: 3}, [1], dict.fromkeys(map(str, range(61)))]),
        (listing._is_read, [3, 0.5, Named()], [True, "3", None, [1], type("Two", (Named,), {"ndim": 2})()]),
        (lambda one: listing._is_setting(*one), [("n", 3), ("dropout", 0.1), ("p_drop", 0.0)],
         [("n", 0), ("n", -1), ("n", True), ("rate", 0.1), ("drop", "0.1")]),
        (listing._hides, [[{"kind": "var_positional"}, {"kind": "var_keyword"}]],
         [None, [], [{"kind": "positional"}, {"kind": "var_keyword"}]]),
        (listing._is_settings, [Named, types.SimpleNamespace],
         [int, type("Layer", (), {"forward": None}), type("T", (), {"__module__": "torch.nn"})]),
        (listing._has_call, [type("Layer", (), {"forward": None}), type("Call", (), {"__call__": None})], [Named]),
    ],
    ids=["plain", "table", "read", "setting", "hides", "settings", "call"],
)  # fmt: skip
def test_what_is_listed_is_told_from_what_is_not(
    question: Callable[[Any], bool], yes: list[Any], no: list[Any]
) -> None:
    """Would break if the search were told of more, or of less, than can be an argument, a size or a table."""
    assert [bool(question(one)) for one in yes] == [True] * len(yes)
    assert [bool(question(one)) for one in no] == [False] * len(no)


@pytest.mark.parametrize(("one", "other", "alike"), [("GPTConfig", "GPT", 3), ("Model", "Config", 0), ("ab", "ab", 2)])
def test_names_are_alike_as_far_as_they_begin_alike(one: str, other: str, alike: int) -> None:
    assert listing._alike(one, other) == alike


def test_the_class_of_settings_that_is_called_most_like_it_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    module = types.ModuleType("beside_settings")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    source = "class VitConfig: ...\nclass GPTConfig: ...\nclass GPT:\n    def __init__(self, config): ...\n"
    source += "class Other:\n    def __init__(self, config): ...\nclass GPTx:\n    def __init__(self, n): ...\n"
    exec(source, vars(module))
    assert config_of(module.GPT) == "beside_settings:GPTConfig"
    assert config_of(module.Other) is config_of(module.GPTx) is None


@pytest.mark.parametrize(
    ("rate", "found"),
    [("drop", True), ("self.cfg.drop", True), ("settings['drop']", True), ("0.1", False)],
    ids=["global", "attribute", "key", "none"],
)
def test_a_rate_that_nothing_reads_is_no_setting(monkeypatch: pytest.MonkeyPatch, rate: str, found: bool) -> None:
    """Catches red for a dropout that has no effect, in code with an idle number of that name at its top."""
    module = types.ModuleType("with_numbers")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    source = f"drop, n_embd = 0.1, 8\nclass Layer:\n    def __init__(self):\n        self.rate = lambda: {rate}\n"
    exec(source, vars(module))
    assert [one["name"] for one in listing._numbers(module)["construct"]] == (
        ["drop", "n_embd"] if found else ["n_embd"]
    )
