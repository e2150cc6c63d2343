"""conform.toml: what it declares, where it is found, and what is refused although it is well-formed."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformkit.conformance.binding.config import (
    Config,
    MaskConfig,
    canonical_axes,
    load_config,
    parse_config,
)
from conformkit.conformance.binding.limits import Range
from conformkit.conformance.binding.rules import describe
from conformkit.conformance.binding.toml_nodes import ConfigError
from conformkit.spec.variants import CANONICAL, Variant

MHA = "[components.MultiHeadAttention]\n"
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


def test_a_configuration_without_masks_takes_both_kinds():
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
    want = "pyproject.toml, line 5: tool.conform.implementation.modul: there is no key with this name; nearest: module"
    assert str(caught.value) == want


# --- how it is refused ----------------------------------------------------------------------------------------------

SEMANTIC = {
    "unknown-name": (
        MHA + "construct = { dim = 'd_modl' }",
        'line 2: components.MultiHeadAttention.construct.dim: "d_modl": unknown name d_modl; nearest: d_model',
    ),
    "name-of-the-call": (MHA + "construct = { dim = 'ids' }", "unknown name ids; known: d_model"),
    "bare-word": (MHA + "construct = { act = 'gelu' }", '"gelu": unknown name gelu'),
    "no-expression": (
        MHA + "construct = { act = 'gelu tanh' }",
        "it is not an expression (a string needs inner quotes",
    ),
    "code": (MHA + "construct = { act = '__import__(\"os\")' }", "there is no function"),
    "code-attribute": (MHA + "call = ['x.T']", "a dotted name is not part of the language"),
    "call-name": (MHA + "call = ['x', 'maks']", 'call[1]: "maks": unknown name maks; nearest: mask'),
    "generate-name": (GENERATE + "call = ['ids', 'n']", "unknown name n; known: model, ids, max_new_tokens"),
    "inner-name": (
        MHA + "construct = [{ object = 'C', arguments = ['x'] }]",
        'construct[0].arguments[0]: "x": unknown name x',
    ),
    "shared-positions": (
        "[variant]\nshared_positions = true",
        "line 2: variant.shared_positions: positions are sinusoidal, and only a learned table can be shared",
    ),
    "shared-positions-of-the-model": (
        "[variant]\npositions = 'rotary'\n[components.Transformer]\nvariant = { shared_positions = true }",
        "line 4: components.Transformer.variant.shared_positions: positions are rotary",
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
    "number-nan": ("[variant]\nnorm_eps = nan", "it is nan, expected a finite number above 0"),
    "number-large": (
        MHA + "construct = { eps = 99999999999999999999 }",
        "construct.eps: the number does not fit into 64 bits",
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
"""What only the parser detects; what the schema also refuses is in test_schema.py."""


@pytest.mark.parametrize(("text", "message"), SEMANTIC.values(), ids=SEMANTIC)
def test_a_refusal_of_meaning_names_the_key_the_problem_and_what_to_write(text, message):
    with pytest.raises(ConfigError) as caught:
        parse_config(text)
    assert message in str(caught.value)
    assert str(caught.value).startswith("conform.toml, line ")
