"""Each key of conform.toml is a renaming or an excuse, and excuses are told in words."""

from __future__ import annotations

import tomllib
from dataclasses import fields
from pathlib import Path

import pytest

from conformkit.conformance.apps.grade.policy import Allowed
from conformkit.conformance.apps.grade.policy_file import EXCUSES
from conformkit.conformance.binding.config import ComponentConfig, Config, GenerateConfig, MaskConfig, parse_config
from conformkit.conformance.binding.declarations import CHANGING, KIND_OF_KEY, KINDS, RENAMING, excuses
from conformkit.conformance.binding.factors import FACTORS
from conformkit.conformance.binding.masks import MaskForm
from conformkit.conformance.binding.path_config import PathsConfig
from conformkit.conformance.binding.tool_config import MethodConfig, ToolConfig
from tests.tiers import ROOT

MHA = "[components.MultiHeadAttention]\n"
WEIGHTS = "[components.MultiHeadAttention.weights]\n"
LM = "[components.TinyTransformerLM]\n"


def names(kind: type) -> set[str]:
    return {field.name for field in fields(kind)} - {"name"}


def every_key() -> set[str]:
    nested = {
        "mask": MaskConfig,
        "masks": MaskForm,
        "methods": MethodConfig,
        "generate": GenerateConfig,
        "paths": PathsConfig,
    }
    component = names(ComponentConfig) - nested.keys()
    component |= {f"{table}.{key}" for table, kind in nested.items() for key in names(kind)} - {"paths.mask_form"}
    component |= {f"paths.mask_form.{key}" for key in names(MaskForm)}
    tool = names(ToolConfig) - {"mask", "methods"}
    tool |= {f"mask.{key}" for key in names(MaskForm)} | {f"methods.{key}" for key in names(MethodConfig)}
    head = {f"implementation.{key}" for key in ("framework", "module", "dtypes")}
    return head | {"variant", "limits"} | {f"components.{k}" for k in component} | {f"tools.{k}" for k in tool}


def test_the_table_says_of_every_key_whether_it_can_hide_a_mistake():
    # a new key would otherwise be a renaming by default
    assert set(KIND_OF_KEY) == every_key()
    assert set(KIND_OF_KEY.values()) <= {RENAMING, *KINDS}
    assert CHANGING | {"dtypes"} <= set(KINDS)


def test_grading_allows_no_excuse_that_changes_arithmetic_unless_the_policy_does():
    assert not (set(Allowed().excuses) & CHANGING) - {"ignore"}  # which are counted in any case
    assert set(Allowed().excuses) <= set(EXCUSES)


@pytest.mark.parametrize(
    ("text", "kind", "words"),
    [
        (WEIGHTS + '"q" = "q.weight * 2"', "weights", "q of MultiHeadAttention holds q.weight * 2"),
        (WEIGHTS + '"q" = "q.weight + 1"', "weights", "as if the code undid that"),
        (WEIGHTS + '"q" = "t5_scale(q.weight)"', "t5_scale", "divided by √head_width, as T5 does"),
        (WEIGHTS + '"q" = "q.weight / head_width ** 0.5"', "t5_scale", "t5_scale in MultiHeadAttention, q"),
        ("[components.TransformerBlock.weights]\n'n' = 'norm1.weight - 1'", "gemma_offset", "minus one, as Gemma"),
        (LM + "weights = { p = 'scaled_positions(positions.weight) -> 1 t m' }", "scaled_positions", "√d_model"),
        (MHA + "ignore = ['temperature']", "ignore", "neither written nor compared: temperature"),
        (MHA + "output = 1", "output", "the output of MultiHeadAttention is 1"),
        (MHA + "mask = { true = 'hide' }", "masks", "True hides in mask"),
        ("[components.cosine_schedule]\nglobals = { top = 'peak', w = 3 }", "defaults", "judged with w = 3"),
        (MHA + "mask = { kinds = [] }", "masks", "takes no masks only"),
        (LM + "paths = { mask_form = { true = 'hide' } }", "masks", "True hides in the mask of TinyTransformerLM"),
        (LM + "paths = { new_cache = { object = 'a:C' } }", "constants", "a cache is made"),
        (MHA + "causal = 'always'", "causal", "always hides later positions"),
        (MHA + "call = { x = 'x', scale = '1 / sqrt(head_width)' }", "factors", "scale = 1 / sqrt(head_width)"),
        (MHA + "call = ['x', 'head_width ** -0.5']", "factors", "head_width ** -0.5"),
        (MHA + "call = ['x', { object = 'math:sqrt', arguments = ['d_model'] }]", "factors", "an object of math:sqrt"),
        (MHA + "construct = { width = 'd_model', causal = 'not causal' }", "factors", "causal = not causal"),
        (MHA + "construct = ['d_model', 'num_heads', '1 - dropout']", "factors", "1 - dropout"),
        (MHA + "construct = { width = 'd_model', p = '1 - dropout' }", "factors", "p = 1 - dropout"),
        (LM + "construct = { n_vocab = 'vocab_size + 1' }", "factors", "n_vocab = vocab_size + 1"),
        (LM + "construct = { n_ctx = 'max(block_size, 2)' }", "factors", "n_ctx = max(block_size, 2)"),
        (MHA + "construct = { width = 'd_model', keep = '1 - dropout' }", "factors", "keep = 1 - dropout"),
        (MHA + "construct = { width = 'd_model', open = 'not causal' }", "computed", "open = not causal"),
        (
            MHA + "construct = [{ c = { object = 'Config', arguments = { open = 'not causal' } } }]",
            "computed",
            "Config",
        ),
        (LM + "generate = { call = ['ids', 'max_new_tokens + 1'] }", "computed", "max_new_tokens + 1"),
        (LM + "generate = { call = { n = 'max_new_tokens + 1' } }", "factors", "n = max_new_tokens + 1"),
        (LM + "generate = { call = { temp = '1 / temperature' } }", "factors", "temp = 1 / temperature"),
        (LM + "generate = { call = { k = 'top_k + 1 if top_k else None' } }", "factors", "k = top_k + 1"),
        (LM + "generate = { call = { k = 'top_k if top_k is None else 1' } }", "factors", "k = top_k if"),
        (LM + "generate = { call = ['ids'], greedy = { pick = \"'best'\" } }", "constants", "pick = 'best'"),
        (MHA + "construct = ['d_model', { bias = false }]", "constants", "bias = False"),
        (MHA + "construct = [{ object = 'mypkg:Config', arguments = {} }]", "constants", "an object of mypkg:Config"),
        (MHA + "construct = { cfg = { eps = 1e-5 } }", "constants", "with cfg = { eps = 1e-05 }"),
        (MHA + "construct = { act = { lookup = 'torch:relu' } }", "constants", "act = torch:relu"),
        (
            MHA + "construct = [{ object = 'mypkg:Config', arguments = { d = 'd_model', eps = 1e-5 } }]",
            "constants",
            "an object of mypkg:Config with eps = 1e-05",
        ),
        (MHA + "call = ['x', { causal = true }]", "constants", "is called with causal = True"),
        (MHA + "limits = { num_heads = 1 }", "limits", "sizes of MultiHeadAttention are limited: num_heads = 1"),
        ("[limits]\nd_model = { multiple_of = 2, max = 64 }", "limits", "d_model to 64 in multiples of 2"),
        ("[implementation]\ndtypes = ['bfloat16']", "dtypes", "judged in bfloat16 only"),
        ("[variant]\nactivation = 'relu'", "variant", 'activation = "relu"'),
        (MHA + "skip = true", "skip", "MultiHeadAttention is left out"),
        (LM + "generate = { path = 'write' }", "generate", "text is generated by write"),
        (LM + "generate = { options = [] }", "generate", "options of generation: none"),
        (
            LM + "generate = { greedy = false }",
            "generate",
            "its generate only samples",
        ),
    ],
    ids=lambda value: value.replace("\n", " ")[:60] if isinstance(value, str) else "",
)
def test_an_excuse_is_told_in_words(text, kind, words):
    (found,) = excuses(parse_config(text))
    assert found.kind == kind
    assert words in found.words


@pytest.mark.parametrize(
    "text",
    [
        "", "[implementation]\nmodule = 'mypkg'", "[variant]\nnorm = 'layernorm'", MHA + "path = 'mypkg:Attn'",
        MHA + "output = 0", LM + "output = 'logits'", MHA + "layout = 'sequence first'", MHA + "causal = 'mask'",
        MHA + "construct = { embed_dim = 'd_model', inner = '4 * d_model', room = 'block_size + 1' }",
        MHA + "call = ['x', 'x', 'x', { attn_mask = 'mask', need = 'None' }]",
        WEIGHTS + '"qkv" = "q.weight, k.weight, v.weight -> m (s h d)"',
        LM + "generate = { call = { sample = 'temperature > 0', k = 'top_k' } }",
        LM + "generate = { call = { top_k = 'top_k if top_k is not None else vocab_size' } }",
        LM + "generate = { call = { top_p = '1.0 if top_p is None else top_p' } }",
    ],
    ids=lambda value: value.replace("\n", " ")[:60],
)  # fmt: skip
def test_a_renaming_is_no_excuse(text):
    assert not list(excuses(parse_config(text)))


def test_half_precision_alone_lets_numbers_be_off_by_percents():
    coarse = {text: next(excuses(Config(dtypes=text))).arithmetic for text in (("bfloat16",), ("bfloat16", "float32"))}
    assert list(coarse.values()) == [True, False]


def test_right_code_declares_no_number_but_those_that_the_law_knows():
    allowed = {"gemma_offset", "t5_scale", "ignore", "output", "layout"}  # a trial shows whether the last three are any
    for path in sorted(Path(ROOT, "tests").glob("right*/**/conform.toml")):
        found = {excuse.kind for excuse in excuses(parse_config(path.read_text(encoding="utf-8"), path))}
        assert found & CHANGING <= allowed, path


def test_each_known_factor_is_documented():
    documented = (ROOT / "docs" / "conform-toml.md").read_text(encoding="utf-8")
    policy = tomllib.loads((ROOT / "conformance/apps/grade/policy.example.toml").read_text(encoding="utf-8"))
    assert all(f"{name}(" in documented for name in FACTORS)
    assert policy["allow"]["excuses"] == list(Allowed().excuses)
