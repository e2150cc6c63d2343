"""conform.toml: what it says, where it is found, how it is refused, and that the schema says the same."""

from __future__ import annotations

import json
import os
import time
import tomllib
from dataclasses import fields
from importlib.resources import files
from pathlib import Path

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformkit.conformance.binding import config as module
from conformkit.conformance.binding.config import (
    Arguments,
    Config,
    ConfigError,
    Limits,
    MaskConfig,
    Range,
    canonical_axes,
    find_config,
    load_config,
    parse_config,
)
from conformkit.conformance.binding.expressions import ExpressionError
from conformkit.conformance.binding.patterns import describe
from conformkit.conformance.binding.toml_lines import MAX_BYTES, key_lines
from conformkit.spec.components import COMPONENTS
from conformkit.spec.variants import CANONICAL, Variant, choices

MHA = "[components.MultiHeadAttention]\n"
LM = "[components.TinyTransformerLM]\n"
GENERATE = "[components.TinyTransformerLM.generate]\n"
WEIGHTS = "[components.MultiHeadAttention.weights]\n"


def attention(text):
    return parse_config(MHA + text).component("MultiHeadAttention")


# --- what it says ---------------------------------------------------------------------------------------------------


def test_an_empty_file_declares_nothing():
    config = parse_config("")
    assert config == Config(path=Path("conform.toml"))
    assert config.dtypes == ("float64", "float32")
    assert config.variant_for("MultiHeadAttention") == CANONICAL
    assert config.component("FeedForward").construct is None


def test_the_implementation_is_described_as_a_whole():
    config = parse_config('[implementation]\nframework = "numpy"\nmodule = "mypkg.model"\ndtypes = ["float32"]')
    assert (config.framework, config.module, config.dtypes) == ("numpy", "mypkg.model", ("float32",))


def test_a_component_overrides_the_general_variant_choice_by_choice():
    config = parse_config(
        '[variant]\nnorm = "rmsnorm"\nactivation = "silu"\nrotary_base = 500\n'
        '[components.FeedForward]\nvariant = { activation = "relu", gated = true }'
    )
    assert config.variant_for("FeedForward") == Variant(
        norm="rmsnorm", activation="relu", gated=True, rotary_base=500.0
    )
    assert config.variant_for("TransformerBlock") == Variant(norm="rmsnorm", activation="silu", rotary_base=500.0)


def test_head_counts_of_a_variant_are_expressions_or_numbers():
    variant = parse_config('[variant]\nkv_heads = 1\nhead_width = "d_model // 2"').variant_for("MultiHeadAttention")
    assert (variant.kv_heads, variant.head_width) == ("1", "d_model // 2")


def test_a_component_overrides_the_general_limits_bound_by_bound():
    config = parse_config(
        "[limits]\nd_model = { multiple_of = 2, min = 4, max = 64 }\nnum_heads = 1\nrank = 3\ntokens = { max = 9 }\n"
        '[components.MultiHeadAttention.limits]\nd_model = { multiple_of = 4 }\nrank = 4\nd_ff = "4 * d_model"'
    )
    assert config.limits_for("FeedForward").of("d_model") == Range(4, 64, 2)
    own = config.limits_for("MultiHeadAttention")
    assert own.of("d_model") == Range(4, 64, 4)
    assert own.of("num_heads") == Range(1, 1)
    assert own.of("d_ff") == Range(equals="4 * d_model")
    assert (own.rank, config.limits_for("FeedForward").rank) == (4, 3)
    assert own.of("tokens").allows(9)
    assert not own.of("tokens").allows(10)


def test_an_expression_and_bounds_replace_each_other():
    fixed, bounds = Range(equals="d_model"), Range(min=2)
    assert bounds.merged(fixed) == fixed
    assert fixed.merged(bounds) == bounds
    assert Limits({"d_ff": fixed}).merged(Limits()).of("d_ff") == fixed


@pytest.mark.parametrize(("size", "allowed"), [(3, False), (4, True), (6, False), (12, True), (16, False)])
def test_a_range_has_inclusive_bounds_and_a_step(size, allowed):
    assert Range(4, 12, 4).allows(size) is allowed


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


def test_conventions_of_the_call_are_read():
    component = attention(
        'path = "mypkg.attn:Attn"\nfactory = true\noutput = [0, "logits"]\nweights_output = 1\ncausal = "mask"\n'
        'layout = "sequence first"\nmask = { kinds = ["bool"], true = "hide", shape = "T T 1" }\n'
        'ignore = ["mask", "*.inv_freq"]'
    )
    assert (component.path, component.factory) == ("mypkg.attn:Attn", True)
    assert (component.output, component.weights_output) == ((0, "logits"), 1)
    assert (component.causal, component.layout) == ("mask", "sequence first")
    assert component.mask == MaskConfig(("bool",), "hide", "T T 1")
    assert component.ignores("rope.inv_freq")
    assert component.ignores("mask")
    assert not component.ignores("masked")


def test_what_is_silent_about_masks_takes_both_kinds():
    assert attention("mask = {}").mask == MaskConfig(("bool", "float"), "attend", "T T")
    assert attention("mask = { kinds = [] }").mask.kinds == ()


def test_weights_of_parts_are_filled_in_below_the_whole():
    config = parse_config(
        WEIGHTS + '"c_attn.weight" = "q.weight, k.weight, v.weight -> m (s h d)"\n'
        '[components.TransformerBlock.weights]\n"attn.*" = "attention.*"\n"ln.weight" = "norm1.weight - 1"\n'
        '[components.TinyTransformerLM.weights]\n"h.{i}.*" = "blocks.{i}.*"\n"wte.weight" = "embedding.weight"'
    )
    lines = [describe(rule) for rule in config.rules_for("TinyTransformerLM")]
    below = ", ".join(f"blocks.{{i}}.attention.{n}.weight" for n in "qkv")
    assert lines == [
        f'"h.{{i}}.attn.c_attn.weight" = "{below} -> m (s h d)"',
        '"h.{i}.ln.weight" = "blocks.{i}.norm1.weight - 1"',
        '"wte.weight" = "embedding.weight"',
    ]


def test_generation_is_described():
    text = (
        'path = "mypkg:sample"\ncall = ["model", "ids", "max_new_tokens", { temperature = "temperature" }]\n'
        'greedy = { temperature = 0.0, do_sample = false }\noptions = ["temperature", "top_k"]\nreturns = "new"'
    )
    generate = parse_config(GENERATE + text).component("TinyTransformerLM").generate
    assert (generate.path, generate.options, generate.returns) == ("mypkg:sample", ("temperature", "top_k"), "new")
    values = {"model": "M", "ids": "I", "max_new_tokens": 3, "temperature": 0.7}
    assert generate.call.template(values) == (["M", "I", 3], {"temperature": 0.7})
    greedy = generate.call.but(generate.greedy)
    assert greedy.template(values) == (["M", "I", 3], {"temperature": 0.0, "do_sample": False})


def test_greedy_replaces_a_positional_argument_that_stands_by_its_name():
    text = 'call = ["ids", "max_new_tokens", "temperature"]\ngreedy = { temperature = 0.0, top_k = 1 }'
    generate = parse_config(GENERATE + text).component("TinyTransformerLM").generate
    assert generate.call.but(generate.greedy).template({"ids": "I", "max_new_tokens": 2}) == (
        ["I", 2, 0.0],
        {"top_k": 1},
    )


def test_arguments_without_changes_stay():
    assert Arguments((1,), {"a": 2}).but(Arguments()) == Arguments((1,), {"a": 2})


def test_canonical_axes_name_every_parameter_of_any_variant():
    axes = canonical_axes("TinyTransformerLM")
    assert axes["blocks.{i}.attention.q.weight"] == "(h d) m"
    assert {"positions.weight", "head.bias", "embedding_norm.bias", "blocks.{i}.feed_forward.gate.bias"} <= set(axes)
    assert canonical_axes("ScaledDotProductAttention") == {}


# --- where it is found ----------------------------------------------------------------------------------------------


def test_the_nearest_folder_that_has_a_configuration_wins(tmp_path):
    inner = tmp_path / "mypkg"
    inner.mkdir()
    (tmp_path / "conform.toml").write_text("[implementation]\nmodule = 'outer'")
    assert load_config([inner, tmp_path]).module == "outer"
    (inner / "conform.toml").write_text("[implementation]\nmodule = 'inner'")
    assert load_config([inner, tmp_path]).module == "inner"
    assert load_config(tmp_path / "conform.toml").module == "outer"


def test_a_project_file_counts_when_it_has_the_table(tmp_path):
    (tmp_path / "pyproject.toml").write_text("[tool.ruff]\nline-length = 100\n")
    assert find_config([tmp_path]) is None
    assert load_config([tmp_path]) == Config()
    (tmp_path / "pyproject.toml").write_text("[project]\nname = 'a'\n[tool.conform.implementation]\nmodule = 'a'\n")
    assert load_config([tmp_path]).module == "a"
    (tmp_path / "conform.toml").write_text("[implementation]\nmodule = 'b'")
    assert load_config([tmp_path]).module == "b"


def test_a_project_file_is_named_with_the_whole_key(tmp_path):
    path = tmp_path / "pyproject.toml"
    path.write_text("[project]\nname = 'a'\n[tool.conform.implementation]\n\nmodul = 'a'\n")
    with pytest.raises(ConfigError) as caught:
        load_config(path)
    want = "pyproject.toml, line 5: tool.conform.implementation.modul: there is no key of this name; nearest: module"
    assert str(caught.value) == want


def test_a_link_that_leaves_the_folder_is_refused(tmp_path):
    (tmp_path / "secret").write_text("password = 1")
    (tmp_path / "submission").mkdir()
    (tmp_path / "submission" / "conform.toml").symlink_to(tmp_path / "secret")
    with pytest.raises(ConfigError, match="it is a link that leaves its folder"):
        load_config([tmp_path / "submission"])


def test_a_link_within_the_folder_is_followed(tmp_path):
    (tmp_path / "real.toml").write_text("[implementation]\nmodule = 'a'")
    (tmp_path / "conform.toml").symlink_to("real.toml")
    assert load_config([tmp_path]).module == "a"


def test_a_pipe_is_refused_without_waiting_for_it(tmp_path):
    os.mkfifo(tmp_path / "conform.toml")
    with pytest.raises(ConfigError, match="it is no regular file"):
        load_config(tmp_path / "conform.toml")


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(ConfigError, match=r"^conform\.toml: it cannot be read: No such file"):
        load_config(tmp_path / "conform.toml")


def test_a_large_file_is_refused(tmp_path):
    (tmp_path / "conform.toml").write_text("# \n" * (MAX_BYTES // 3 + 1))
    with pytest.raises(ConfigError, match="larger than 256 KiB"):
        load_config([tmp_path])


def test_other_encodings_are_refused_and_a_byte_order_mark_is_not(tmp_path):
    path = tmp_path / "conform.toml"
    path.write_bytes(b"[implementation]\nmodule = '\xff'")
    with pytest.raises(ConfigError, match="line 2: it is not UTF-8"):
        load_config(path)
    path.write_bytes(b"\xef\xbb\xbf[implementation]\r\nmodule = 'a'\r\n")
    assert load_config(path).module == "a"


# --- how it is refused ----------------------------------------------------------------------------------------------

STRUCTURAL = {
    "unknown-table": (
        "\n[implementaton]",
        "line 2: implementaton: there is no key of this name; nearest: implementation",
    ),
    "unknown-component": (
        "[components.MultiHedAttention]",
        "components.MultiHedAttention: there is no component of this name; nearest: MultiHeadAttention",
    ),
    "export-name": (
        "[components.scaled_dot_product_attention]",
        "there is no component of this name; nearest: ScaledDotProductAttention",
    ),
    "unknown-key": (
        MHA + "\nconstuct = []",
        "line 3: components.MultiHeadAttention.constuct: there is no key of this name",
    ),
    "far-off-key": ("[implementation]\nzzz = 1", "there is no key of this name; known: framework, module, dtypes"),
    "generate-elsewhere": (
        MHA + "generate = {}",
        "components.MultiHeadAttention.generate: there is no key of this name",
    ),
    "table-of-tables": ("[[variant]]", "variant: it is a list, want a table"),
    "components-text": ("components = 'a'", "components: it is a text, want a table"),
    "framework": ("[implementation]\nframework = 'pytorch'", '"pytorch" is not one of torch, numpy; nearest: torch'),
    "framework-type": ("[implementation]\nframework = 3", "it is a whole number, want a text"),
    "module-path": ("[implementation]\nmodule = '../other'", '"../other" is not a dotted name; write "package.module"'),
    "module-dots": ("[implementation]\nmodule = '..other'", "is not a dotted name"),
    "module-empty": ("[implementation]\nmodule = ''", "the text has 0 characters, want 1 to 200"),
    "dtype": (
        "[implementation]\ndtypes = ['float32', 'float65']",
        'line 2: implementation.dtypes[1]: "float65" is not one of',
    ),
    "dtypes-twice": ("[implementation]\ndtypes = ['float32', 'float32']", "a value is listed twice"),
    "dtypes-none": ("[implementation]\ndtypes = []", "at least one dtype is needed"),
    "dtypes-text": ("[implementation]\ndtypes = 'float32'", "it is a text, want a list"),
    "choice-name": ("[variant]\nnormalization = 'rmsnorm'", "variant.normalization: there is no choice of this name"),
    "choice-value": ("[variant]\nnorm = 'rms'", '"rms" is not one of layernorm, rmsnorm; nearest: rmsnorm'),
    "choice-type": ("[variant]\ntied = 'yes'", "variant.tied: it is a text, want true or false"),
    "choice-number": ("[variant]\ntied = 1", "it is a whole number, want true or false"),
    "eps-zero": ("[variant]\nnorm_eps = 0", "it is 0, want a finite number above 0"),
    "eps-text": ("[variant]\nnorm_eps = '1e-5'", "it is a text, want a number"),
    "eps-flag": ("[variant]\nnorm_eps = true", "it is true or false, want a number"),
    "kv-heads-zero": ("[variant]\nkv_heads = 0", "it is 0, want 1 to 1000000"),
    "kv-heads-flag": ("[variant]\nkv_heads = true", "it is true or false, want a whole number"),
    "limit-name": ("[limits]\nd_modl = 3", "limits.d_modl: there is no size of this name; nearest: d_model"),
    "limit-key": ("[limits]\nd_model = { minimum = 3 }", "limits.d_model.minimum: there is no key of this name"),
    "limit-negative": ("[limits]\nd_model = { min = -3 }", "limits.d_model.min: it is -3, want 1 to 1000000"),
    "limit-flag": ("[limits]\nd_model = true", "it is true or false, want a whole number"),
    "limit-fraction": ("[limits]\nd_model = 2.5", "it is a number, want a whole number"),
    "limit-date": ("[limits]\nd_model = 2020-01-01", "it is a date or time, want a whole number"),
    "rank": ("[limits]\nrank = 1", "limits.rank: it is 1, want 2 to 8"),
    "path": (MHA + "path = 'a/b.py:C'", '"a/b.py:C" is not a dotted name; write "package.module:name", no file path'),
    "path-colons": (MHA + "path = 'a:b:c'", "is not a dotted name"),
    "factory": (MHA + "factory = 'yes'", "it is a text, want true or false"),
    "construct-text": (MHA + "construct = 'd_model'", "it is a text, want a list"),
    "construct-date": (MHA + "construct = [1979-05-27]", "construct[0]: it is a date or time, want a text, a number"),
    "argument-name": (MHA + "construct = { 'a b' = 1 }", '"a b" cannot be the name of an argument'),
    "object-type": (
        MHA + "construct = { c = { object = 3 } }",
        "construct.c.object: it is a whole number, want a text",
    ),
    "object-key": (
        MHA + "construct = { c = { object = 'C', args = [] } }",
        "construct.c.args: there is no key of this name",
    ),
    "object-path": (MHA + "construct = { c = { object = '/tmp/x:C' } }", "is not a dotted name"),
    "lookup-key": (
        MHA + "construct = { c = { lookup = 'C', arguments = [] } }",
        "c.arguments: there is no key of this name",
    ),
    "dtype-name": (MHA + "construct = { c = { dtype = 'float' } }", '"float" is not one of'),
    "dollar": (MHA + "construct = { c = { '$tensor' = 1 } }", "a key that begins with $ is not possible here"),
    "output": (MHA + "output = true", "it is true or false, want a whole number"),
    "output-far": (MHA + "output = 99", "it is 99, want -16 to 16"),
    "output-empty": (MHA + "output = []", "an empty list selects nothing"),
    "output-nested": (MHA + "output = [[0]]", "it is a list, want a whole number"),
    "weights-output": (MHA + "weights_output = [1]", "it is a list, want a whole number"),
    "causal": (MHA + "causal = true", "it is true or false, want a text"),
    "causal-word": (
        MHA + "causal = 'alway'",
        '"alway" is not one of construct, always, never, mask, flag; nearest: always',
    ),
    "layout": (
        MHA + "layout = 'batch_first'",
        '"batch_first" is not one of batch first, sequence first; nearest: batch first',
    ),
    "mask-key": (
        MHA + "mask = { polarity = 'hide' }",
        "mask.polarity: there is no key of this name; known: kinds, true, shape",
    ),
    "mask-kind": (MHA + "mask = { kinds = ['int'] }", 'mask.kinds[0]: "int" is not one of bool, float'),
    "mask-true": (MHA + "mask = { true = 'show' }", '"show" is not one of attend, hide'),
    "mask-shape": (MHA + "mask = { shape = 'T' }", '"T" is not one of T T, 1 T T, 1 1 T T, T T 1'),
    "ignore": (MHA + "ignore = 'mask'", "it is a text, want a list"),
    "ignore-item": (MHA + "ignore = [3]", "ignore[0]: it is a whole number, want a text"),
    "weights-list": (WEIGHTS + "a = ['q.weight']", "weights.a: it is a list, want a text"),
    "weights-unquoted": (
        WEIGHTS + "wq.weight = 'q.weight'",
        'a rule is a text; quote the whole name: "wq.…" = "q.weight"',
    ),
    "generate-key": (GENERATE + "sample = 1", "generate.sample: there is no key of this name"),
    "generate-options": (
        GENERATE + "options = ['topk']",
        '"topk" is not one of temperature, top_k, top_p; nearest: top_k',
    ),
    "generate-returns": (GENERATE + "returns = 'fresh'", '"fresh" is not one of all, new'),
    "generate-greedy": (GENERATE + "greedy = ['temperature']", "greedy: it is a list, want a table"),
}
"""What the schema refuses as well."""

SEMANTIC = {
    "unknown-name": (
        MHA + "construct = { dim = 'd_modl' }",
        'line 2: components.MultiHeadAttention.construct.dim: "d_modl": unknown name d_modl; nearest: d_model',
    ),
    "name-of-the-call": (MHA + "construct = { dim = 'ids' }", "unknown name ids; known: d_model"),
    "bare-word": (MHA + "construct = { act = 'gelu' }", '"gelu": unknown name gelu'),
    "no-expression": (
        MHA + "construct = { act = 'gelu tanh' }",
        "it is no expression (a text as such needs quotes within",
    ),
    "code": (MHA + "construct = { act = '__import__(\"os\")' }", "there is no function"),
    "code-attribute": (MHA + "call = ['x.T']", "a dotted name is not part of the language"),
    "call-name": (MHA + "call = ['x', 'maks']", 'call[1]: "maks": unknown name maks; nearest: mask'),
    "generate-name": (GENERATE + "call = ['ids', 'n']", "unknown name n; known: model, ids, max_new_tokens"),
    "inner-name": (
        MHA + "construct = [{ object = 'C', arguments = ['x'] }]",
        'construct[0].arguments[0]: "x": unknown name x',
    ),
    "kv-heads": ("[variant]\nkv_heads = 'kv_heads'", "unknown name kv_heads"),
    "limits-impossible": (
        "[limits]\nd_model = { min = 5, max = 7, multiple_of = 4 }",
        "no multiple of 4 lies between 5 and 7",
    ),
    "limits-crossed": ("[limits]\nd_model = { min = 5, max = 4 }", "no multiple of 1 lies between 5 and 4"),
    "limits-merged": (
        "[limits]\nd_model = { max = 6 }\n" + MHA + "\nlimits = { d_model = { min = 8 } }",
        "line 5: components.MultiHeadAttention.limits.d_model: no multiple of 1 lies between 8 and 6",
    ),
    "limits-itself": ("[limits]\nd_ff = '4 * d_ff'", "limits.d_ff: it depends on d_ff, which is an expression itself"),
    "limits-cycle": (
        "[limits]\nd_ff = 'd_model'\nd_model = 'd_ff'",
        "limits.d_ff: it depends on d_model, which is an expression",
    ),
    "limits-name": ("[limits]\nd_ff = 'tokens'", "unknown name tokens"),
    "number-infinite": (MHA + "construct = { eps = inf }", "a number is not finite, or larger than 2 ** 63"),
    "number-nan": ("[variant]\nnorm_eps = nan", "it is nan, want a finite number above 0"),
    "number-large": (
        MHA + "construct = { eps = 99999999999999999999 }",
        "a number is not finite, or larger than 2 ** 63",
    ),
    "nested": (MHA + f"construct = {{ a = {'[' * 12}{']' * 12} }}", "it is nested more than 8 deep"),
    "nested-objects": (
        MHA + "construct = " + "[{object='C',arguments=" * 12 + "[]" + "}]" * 12,
        "it is nested more than 8 deep",
    ),
    "weights-name": (
        "[components.MultiHeadAttention.weights]\n# c\n'wq' = 'q.weigth'",
        'line 3: components.MultiHeadAttention.weights.wq: "q.weigth": there is no canonical part q.weigth; nearest: q',
    ),
    "weights-axes": (WEIGHTS + "'a.b' = 'q.weight -> h d'", 'weights."a.b": "q.weight -> h d": the axis m of q.weight'),
    "weights-pattern": (WEIGHTS + "a = 'q.weight, k.weight'", "several parts need axes with an s"),
    "weights-size": (WEIGHTS + "a = 'q.weight / d_mod'", "unknown name d_mod in"),
    "weights-below": (WEIGHTS + "'a.*' = 'blocks.{i}.*'", "both sides end in"),
    "weights-none": (
        "[components.ScaledDotProductAttention.weights]\na = 'q.weight'",
        "there is no canonical part q.weight",
    ),
}
"""What only the parser can see."""

SYNTAX = {
    "no-toml": ("a = 1\nb = = 3", "conform.toml, line 2: not TOML: Invalid value"),
    "twice": ("[variant]\n[variant]", "conform.toml, line 2: not TOML: Cannot declare"),
    "open": ("[variant]\nnorm = '", "conform.toml, line 2: not TOML:"),
    "brackets": ("a = [\n" + "[" * 3000, "it is too deeply nested"),
    "brackets-on-lines": ("a = " + "[\n" * 9000, "it is too deeply nested"),
    "tables": ("a = " + "{a=" * 1000, "it is too deeply nested"),
    "digits": ("a = " + "9\\n" * 4090, "line 1: the line is longer than 4096 characters"),
    "dots": ("\n".join(f"a{n}{'.a' * 2000} = 1" for n in range(60)), "line 1: the line has more than 200 dots"),
}


@pytest.mark.parametrize(("text", "message"), [*STRUCTURAL.values(), *SEMANTIC.values()], ids=[*STRUCTURAL, *SEMANTIC])
def test_a_refusal_names_the_key_the_problem_and_what_to_write(text, message):
    with pytest.raises(ConfigError) as caught:
        parse_config(text)
    assert message in str(caught.value)
    assert str(caught.value).startswith("conform.toml, line ")


@pytest.mark.parametrize(("text", "message"), SYNTAX.values(), ids=SYNTAX)
def test_what_is_no_toml_is_refused_at_once(text, message):
    start = time.perf_counter()
    with pytest.raises(ConfigError) as caught:
        parse_config(text)
    assert message in str(caught.value)
    assert time.perf_counter() - start < 2.0, "milliseconds are usual"


def test_an_error_keeps_its_facts_as_fields():
    with pytest.raises(ConfigError) as caught:
        parse_config("\n[variants]")
    error = caught.value
    assert (error.path, error.line, error.problem, error.advice) == (
        Path("conform.toml"), 2, "variants: there is no key of this name", "nearest: variant",
    )  # fmt: skip


def test_a_message_shows_no_control_characters_and_is_short():
    with pytest.raises(ConfigError) as caught:
        parse_config('"\\u001b[31m' + "x" * 3000 + '" = 1')
    assert "\x1b" not in str(caught.value)
    assert len(str(caught.value)) < 500


# --- lines ----------------------------------------------------------------------------------------------------------


def test_the_line_of_every_key_is_known():
    text = (
        "# [fake]\n"
        "a.b = 'x' # c\n"
        '[t."q.r"]\n'
        's = """[not]\n'
        'key = 1 \\""" # no\n'
        '""""\n'
        "l = [1, # ]\n"
        "  { x = 2, y = [\n"
        "   3] },\n"
        "]\n"
        "m = '''\n'''\n"
        "n = {p.q = 1}\r\n"
        "[[u]]\n"
        "v = 1979-05-27T07:32:00Z\n"
        "[[u]]\n"
        "[u.w]\n"
        "z = '#'\n"
    )
    tomllib.loads(text)
    assert key_lines(text) == {
        ("a",): 2, ("a", "b"): 2, ("t",): 3, ("t", "q.r"): 3, ("t", "q.r", "s"): 4, ("t", "q.r", "l"): 7,
        ("t", "q.r", "l", 0): 7, ("t", "q.r", "l", 1): 8, ("t", "q.r", "l", 1, "x"): 8, ("t", "q.r", "l", 1, "y"): 8,
        ("t", "q.r", "l", 1, "y", 0): 9, ("t", "q.r", "m"): 11, ("t", "q.r", "n"): 13, ("t", "q.r", "n", "p"): 13,
        ("t", "q.r", "n", "p", "q"): 13, ("u",): 14, ("u", 0, "v"): 15, ("u", "w"): 17, ("u", "w", "z"): 18,
    }  # fmt: skip


KEYS = st.text(alphabet="ab.'\"\\#=[]{} \né", max_size=4)
VALUES = st.recursive(
    st.one_of(st.integers(-9, 9), st.booleans(), KEYS),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(KEYS, inner, max_size=3)),
    max_leaves=8,
)


def written(value):
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(k)} = {written(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[\n" + ",\n".join(map(written, value)) + "]"
    return json.dumps(value)


def paths(value, prefix=()):
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield (*prefix, key)
        yield from paths(inner, (*prefix, key))


@given(st.dictionaries(KEYS, VALUES, max_size=4))
def test_the_scanner_finds_exactly_the_keys_that_tomllib_finds(document):
    text = "\n".join(f"{json.dumps(key)} = {written(value)}" for key, value in document.items())
    assert tomllib.loads(text) == document
    found = key_lines(text)
    assert set(found) == set(paths(document))
    lines = text.split("\n")
    for key, line in found.items():
        if isinstance(key[-1], str):
            assert json.dumps(key[-1]) in lines[line - 1]


# --- the schema says the same ---------------------------------------------------------------------------------------

SCHEMA = json.loads((files("conformkit.conformance.binding") / "conform.schema.json").read_text(encoding="utf-8"))
ACCEPTED = {
    "empty": "",
    "implementation": "[implementation]\nframework = 'torch'\nmodule = 'a.b'\ndtypes = ['float32', 'bfloat16']",
    "variant": "[variant]\nnorm = 'rmsnorm'\nnorm_eps = 1e-6\nrotary_base = 50000\n"
    "kv_heads = 'num_heads // 2'\nhead_width = 8",
    "limits": "[limits]\nd_model = { min = 2, max = 8, multiple_of = 2 }\n"
    "num_heads = 1\nd_ff = '4 * d_model'\nrank = 3\nbatch = 1",
    "arguments": MHA
    + "construct = ['d_model', true, 1.5, [1, 'num_heads'], { a = 1, b = { c = \"'x'\" } }]\ncall = { x = 'x' }",
    "objects": MHA + "construct = [{ object = 'a.b:C.D' }, { lookup = 'c' }, { dtype = 'int64' }]\ncall = []",
    "dictionary": MHA + "construct = { cfg = { 'emb dim' = 'd_model', arguments = 3 } }",
    "outputs": MHA + "output = ['logits', 0, -1]\nweights_output = 'weights'",
    "conventions": MHA
    + "causal = 'flag'\nlayout = 'batch first'\nmask = { kinds = [], true = 'hide', shape = '1 T T' }",
    "weights": WEIGHTS
    + "'a.{h}' = 'q.weight -> d m'\nb = '2 * k.weight'\n[components.FeedForward.weights]\n'x.*' = '*'",
    "model": LM
    + "ignore = ['*']\n"
    + GENERATE
    + "path = 'm:f'\ncall = ['ids']\ngreedy = { k = 1 }\noptions = []\nreturns = 'all'",
    "every-component": "\n".join(
        f"[components.{name}]\npath = 'A'\nvariant = {{}}\nlimits = {{}}" for name in COMPONENTS
    ),
}


def schema_accepts(text):
    return jsonschema.Draft202012Validator(SCHEMA).is_valid(tomllib.loads(text))


def parser_accepts(text):
    try:
        parse_config(text)
    except ConfigError:
        return False
    return True


def test_the_schema_is_a_schema():
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


@pytest.mark.parametrize("text", ACCEPTED.values(), ids=ACCEPTED)
def test_schema_and_parser_accept_the_same(text):
    parse_config(text)
    assert schema_accepts(text)


@pytest.mark.parametrize("text", [t for t, _ in STRUCTURAL.values()], ids=list(STRUCTURAL))
def test_schema_and_parser_refuse_the_same(text):
    assert not parser_accepts(text)
    # A date is no JSON: the schema never sees one.
    assert "-01-01" in text or "1979" in text or not schema_accepts(text)


def test_the_schema_knows_every_component_choice_and_key():
    definitions = SCHEMA["$defs"]
    assert list(SCHEMA["properties"]["components"]["properties"]) == list(COMPONENTS)
    variant = definitions["variant"]["properties"]
    assert list(variant) == list(choices())
    for name, kind in choices().items():
        if isinstance(kind, tuple):
            assert tuple(variant[name]["enum"]) == kind
    assert set(definitions["limits"]["properties"]) == {*module.LIMITED, "rank"}
    assert set(definitions["keys"]["properties"]) == {f.name for f in fields(module.ComponentConfig)} - {
        "name",
        "generate",
    }
    assert set(definitions["generate"]["properties"]) == {f.name for f in fields(module.GenerateConfig)}
    assert set(definitions["mask"]["properties"]) == {f.name for f in fields(MaskConfig)}


SAMPLE_KEYS = st.sampled_from(
    ["d_model", "min", "max", "object", "lookup", "arguments", "path", "a", "kinds", "true", "call"]
)
SAMPLE_VALUES = st.recursive(
    st.one_of(
        st.integers(-2, 20), st.booleans(), st.sampled_from(["d_model", "bool", "hide", "always", "a:b", "'x'", ""])
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=2), st.dictionaries(SAMPLE_KEYS, inner, max_size=2)),
    max_leaves=5,
)


@given(
    key=st.sampled_from(["path", "factory", "construct", "output", "weights_output", "causal", "mask", "ignore"]),
    value=SAMPLE_VALUES,
)
def test_what_the_schema_refuses_the_parser_refuses(key, value):
    text = f"{MHA}{key} = {written(value)}"
    assert not parser_accepts(text) or schema_accepts(text)


# --- the documentation ----------------------------------------------------------------------------------------------

DOCUMENT = Path(__file__).parents[2] / "docs" / "conform-toml.md"


def examples():
    for block in DOCUMENT.read_text(encoding="utf-8").split("```toml\n")[1:]:
        yield block.split("```")[0]


@pytest.mark.parametrize("text", list(examples()))
def test_every_example_of_the_documentation_is_accepted(text):
    path = Path("pyproject.toml" if "[tool.conform" in text else "conform.toml")
    parse_config(text, path)
    if path.name == "conform.toml":
        assert schema_accepts(text)


def test_the_documentation_explains_every_key():
    text = DOCUMENT.read_text(encoding="utf-8")
    keys = [
        *SCHEMA["$defs"]["keys"]["properties"],
        *SCHEMA["$defs"]["generate"]["properties"],
        *module.LIMITED,
        *choices(),
    ]
    assert [key for key in [*keys, *COMPONENTS, *module.DTYPES, *module.CAUSAL] if f"`{key}`" not in text] == []
