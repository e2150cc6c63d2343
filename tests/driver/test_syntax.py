"""Source is parsed in one place: two threads that parse at the same time can crash CPython's parser."""

import ast
import warnings
from pathlib import Path

import pytest

from conformkit.conformance import driver
from conformkit.conformance.driver import syntax

_ROOT = Path(driver.__file__).parents[2]


def test_only_one_module_of_the_product_calls_the_parser():
    calling = {
        file.relative_to(_ROOT).as_posix()
        for folder in ("cli", "conformance", "fixtures", "spec")
        for file in (_ROOT / folder).rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute) and node.attr == "parse" and ast.unparse(node.value) == "ast"
    }
    assert calling == {"conformance/driver/syntax.py"}


def test_a_warning_about_the_source_is_not_shown():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert isinstance(syntax.module("x = 1 is 1\ny = '\\d'"), ast.Module)
        assert isinstance(syntax.expression("'\\d'"), ast.Constant)


@pytest.mark.parametrize("parse", [syntax.module, syntax.expression])
def test_what_is_not_python_is_a_syntax_error(parse):
    with pytest.raises(SyntaxError):
        parse("1 +")
    assert parse("1")
