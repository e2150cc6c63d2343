"""The conversion as a function: names of files, classes and tensors are text in it, whatever they hold."""

from __future__ import annotations

import ast

import pytest

from conformkit.conformance.apps.port.python_map import _key, _quoted

FOREIGN = [
    "{print(1)}", "layers.{i}.{print(1)}", '"] = 1; print(1)  # ', "two\nlines", "back\\slash", "\u202e{i", "{i!r:{h}}",
    "\ud800", "\U0001f600.{i", "{0.__class__}",
]  # fmt: skip


@pytest.mark.parametrize("name", FOREIGN, ids=ascii)
def test_a_foreign_name_is_a_literal(name: str) -> None:
    # would run what stands in the braces of a tensor's name, where the function is called
    assert ast.literal_eval(_key(name)) == name


@pytest.mark.parametrize("name", ["layers.{i}.weight", "body.{2*i+1}.{h}.weight"])
def test_a_counter_is_filled_by_python(name: str) -> None:
    assert eval(_key(name), {"i": 3, "h": 5}) == name.format_map({"i": 3, "2*i+1": 7, "h": 5})


@pytest.mark.parametrize("title", ['three"""\nprint(1)\n"""', 'ends in a quote"', "back\\", "two\nlines"], ids=ascii)
def test_a_title_stays_within_its_docstring(title: str) -> None:
    (only,) = ast.parse(_quoted(title)).body
    assert isinstance(only, ast.Expr)
    assert isinstance(only.value, ast.Constant)
