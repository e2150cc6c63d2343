"""Arguments of constructors and calls: what templates give once their values are known."""

from __future__ import annotations

import pytest

from conformkit.conformance.binding.arguments import Arguments
from conformkit.conformance.binding.config import parse_config
from conformkit.conformance.binding.language import ExpressionError

MHA = "[components.MultiHeadAttention]\n"
GENERATE = "[components.TinyTransformerLM.generate]\n"


def attention(text):
    return parse_config(MHA + text).component("MultiHeadAttention")


def test_named_arguments_are_expressions_constants_and_objects():
    construct = attention(
        "construct = { embed_dim = 'd_model', ff = '4 * d_model', act = \"'gelu'\", bias = false, eps = 1e-6,"
        " sizes = ['d_model', 3], table = { n = 'num_heads' }, norm = { lookup = 'mypkg.norms:RMS' },"
        " kind = { dtype = 'float32' },"
        " config = { object = 'mypkg:Config', arguments = ['num_heads', { n = 'd_model' }] } }"
    ).construct
    args, kwargs = construct.template({"d_model": 8, "num_heads": 2})
    assert args == []
    assert kwargs == {
        "embed_dim": 8, "ff": 32, "act": "gelu", "bias": False, "eps": 1e-6, "sizes": [8, 3], "table": {"n": 2},
        "norm": {"$name": "mypkg.norms:RMS"}, "kind": {"$dtype": "float32"},
        "config": {"$object": "mypkg:Config", "args": [2], "kwargs": {"n": 8}},
    }  # fmt: skip
    assert construct.names() == {"d_model", "num_heads"}


def test_a_list_is_positional_and_a_table_at_its_end_named():
    call = attention("call = ['x', 'x', 'x', { attn_mask = 'mask', need_weights = false }]").call
    x, mask = {"$tensor": "x"}, {"$tensor": "mask"}
    assert call.template({"x": x, "mask": mask}) == ([x, x, x], {"attn_mask": mask, "need_weights": False})


def test_an_object_at_the_end_of_a_list_is_positional():
    construct = attention("construct = [{ object = 'GPTConfig', arguments = { n_embd = 'd_model' } }]").construct
    assert construct.template({"d_model": 8}) == ([{"$object": "GPTConfig", "args": [], "kwargs": {"n_embd": 8}}], {})


def test_an_object_without_arguments_is_called_without():
    construct = attention("construct = { norm = { object = 'Norm' } }").construct
    assert construct.template({}) == ([], {"norm": {"$object": "Norm", "args": [], "kwargs": {}}})


def test_tuples_become_lists_as_they_would_on_the_wire():
    x = {"$tensor": "x"}
    assert attention("call = ['(x, (1, x))']").call.template({"x": x}) == ([[x, [1, x]]], {})


def test_a_value_that_is_absent_at_run_time_is_an_expression_error():
    with pytest.raises(ExpressionError, match="unknown name mask"):
        attention("call = ['x', 'mask']").call.template({"x": 1})


def test_greedy_replaces_a_positional_argument_that_stands_by_its_name():
    text = 'call = ["ids", "max_new_tokens", "temperature"]\ngreedy = { temperature = 0.0, top_k = 1 }'
    generate = parse_config(GENERATE + text).component("TinyTransformerLM").generate
    assert generate.call.but(generate.greedy).template({"ids": "I", "max_new_tokens": 2}) == (
        ["I", 2, 0.0],
        {"top_k": 1},
    )


def test_arguments_without_changes_stay():
    assert Arguments((1,), {"a": 2}).but(Arguments()) == Arguments((1,), {"a": 2})
