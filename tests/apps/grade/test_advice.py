import ast
import inspect
from pathlib import Path

import pytest

from conformkit.conformance.apps.grade.advice import WATCHING, advise
from conformkit.conformance.apps.grade.copies import copied
from conformkit.conformance.binding.config import parse_config
from conformkit.reference import attention, multi_head_attention
from conformkit.reference.seq2seq import decoder

FORBIDDEN = ("torch.nn.MultiheadAttention", "torch.nn.functional.scaled_dot_product_attention", "transformers")
ATTENTION, FUNCTION, LIBRARY = FORBIDDEN


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("import torch\nm = torch.nn.MultiheadAttention(4, 2)", [("call", ATTENTION, 2)]),
        ("import torch.nn as nn\nm = nn.MultiheadAttention(4, 2)", [("call", ATTENTION, 2)]),
        ("from torch import nn as n\n\nn.MultiheadAttention", []),
        ("from torch import nn as n\n\nn.MultiheadAttention(4, 2)", [("call", ATTENTION, 3)]),
        ("from torch.nn import MultiheadAttention", [("import", ATTENTION, 1)]),
        ("from torch.nn import MultiheadAttention as M\nM(4, 2)", [("import", ATTENTION, 1), ("call", ATTENTION, 2)]),
        ("import torch.nn.functional as F\nf = F.scaled_dot_product_attention\nf(q, k, v)", [("call", FUNCTION, 3)]),
        ("import torch as t\nF = t.nn.functional\nf = F.scaled_dot_product_attention\nf()", [("call", FUNCTION, 4)]),
        ("import torch\nclass M(torch.nn.MultiheadAttention): ...", [("call", ATTENTION, 2)]),
        ("def f():\n    from transformers import GPT2Model", [("import", LIBRARY, 2)]),
        ("import transformers.models.gpt2 as g\ng.GPT2Model()", [("import", LIBRARY, 1), ("call", LIBRARY, 2)]),
        ("import importlib\nimportlib.import_module('transformers')", [("import", LIBRARY, 2)]),
        ("__import__('transformers.models')", [("import", LIBRARY, 1)]),
        ("import transformers_mine\nfrom mine import MultiheadAttention\nMultiheadAttention()", []),
        ("from .transformers import block\nblock()", []),
        ("class MultiheadAttention: ...\nMultiheadAttention()", []),
        ("import torch\nx = torch.nn.Linear(2, 2)", []),
        ("this is no Python", []),
    ],
)
def test_uses_are_found_by_import_and_by_call_under_any_name(tmp_path, text, found):
    (tmp_path / "model.py").write_text(text, encoding="utf-8")
    assert [(a.kind, a.what, a.where) for a in advise(tmp_path, FORBIDDEN)] == [
        (kind, what, f"model.py:{line}") for kind, what, line in found
    ]


def test_files_in_folders_are_read_and_named_from_the_top(tmp_path):
    (tmp_path / "pkg").mkdir()
    (tmp_path / "pkg" / "a.py").write_text("import transformers", encoding="utf-8")
    assert [a.where for a in advise(tmp_path, FORBIDDEN)] == ["pkg/a.py:1"]
    assert advise(tmp_path, ()) == []


def test_what_conform_toml_binds_counts_as_a_call(tmp_path):
    config = parse_config('[components.MultiHeadAttention]\npath = "torch.nn:MultiheadAttention"')
    assert [(a.kind, a.what, a.where) for a in advise(tmp_path, FORBIDDEN, config)] == [
        ("call", ATTENTION, "conform.toml")
    ]


@pytest.mark.parametrize(
    "text",
    ["(" * 100_000, "-" * 100_000 + "1", "a" + ".a" * 100_000, "x = " + "[" * 5000 + "]" * 5000, "if 1:\n" * 200],
    ids=["parentheses", "signs", "attributes", "lists", "blocks"],
)
def test_source_that_is_made_to_break_a_parser_does_not(tmp_path, text):
    (tmp_path / "a.py").write_text(text, encoding="utf-8")
    (tmp_path / "b.py").write_text("import transformers", encoding="utf-8")
    assert [a.where for a in advise(tmp_path, FORBIDDEN)] == ["b.py:1"]


def test_a_thousand_uses_are_shown_in_part(tmp_path):
    (tmp_path / "a.py").write_text("import transformers\n" * 1000, encoding="utf-8")
    assert len(advise(tmp_path, FORBIDDEN)) == 50


class Renamed(ast.NodeTransformer):
    """Renames everything, and removes strings and annotations: what a plagiarist would do first."""

    def visit_Name(self, node):
        node.id = f"{node.id}_1"
        return node

    def visit_arg(self, node):
        node.arg, node.annotation = f"{node.arg}_1", None
        return node

    def visit_FunctionDef(self, node):
        node.name, node.returns = f"{node.name}_1", None
        if ast.get_docstring(node) is not None:
            node.body = node.body[1:] or [ast.Pass()]
        return self.generic_visit(node)


def test_functions_of_the_reference_are_found_under_other_names(tmp_path):
    tree = Renamed().visit(ast.parse(inspect.getsource(multi_head_attention)))
    (tmp_path / "own.py").write_text(ast.unparse(tree), encoding="utf-8")
    (tmp_path / "as_it_is.py").write_text(inspect.getsource(attention), encoding="utf-8")
    (tmp_path / "decoder.py").write_text(inspect.getsource(decoder), encoding="utf-8")
    found = dict(copied(tmp_path))
    line = inspect.getsourcelines(decoder.DecoderLayer.forward)[1]
    assert found["conformkit.reference.seq2seq.decoder.DecoderLayer.forward"] == f"decoder.py:{line}"
    assert "conformkit.reference.multi_head_attention.MultiHeadAttention.forward" in found
    line = inspect.getsourcelines(attention._check_shapes)[1]
    assert found["conformkit.reference.attention._check_shapes"] == f"as_it_is.py:{line}"
    assert {a.kind for a in advise(tmp_path, ("conformkit",))} == {"import", "call", "copy"}


EXAMPLES = sorted((Path(__file__).resolve().parents[3] / "examples").glob("*"))


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.name)
def test_shared_library_code_is_not_a_copy(example):
    assert list(copied(example)) == []


LINES = "    x\n" * 2000


@pytest.mark.parametrize(
    "text",
    [f"def f(x):\n    return {'-' * 80}x\n{LINES}", f"def f(x):\n    x = 0x{'f' * 9000}\n{LINES}"],
    ids=["deep", "a number of more digits than Python writes"],
)
def test_a_source_made_to_break_readers_is_not_a_copy(tmp_path, text):
    (tmp_path / "a.py").write_text(text, encoding="utf-8")
    assert list(copied(tmp_path)) == []


def test_what_is_imported_by_a_number_is_nothing(tmp_path):
    (tmp_path / "a.py").write_text(f"__import__(0x{'f' * 9000})\n__import__('transformers')\n", encoding="utf-8")
    assert [a.where for a in advise(tmp_path, FORBIDDEN)] == ["a.py:2"]


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("import sys\nsys._getframe(1)", "sys._getframe"),
        ("from inspect import stack as s\n\ns()", "inspect.stack"),
        ("import gc as g\ng.get_objects()", "gc.get_objects"),
    ],
)
def test_code_that_looks_who_calls_it_is_told(tmp_path, text, what):
    (tmp_path / "model.py").write_text(text, encoding="utf-8")
    assert what in [a.what for a in advise(tmp_path, WATCHING)]
