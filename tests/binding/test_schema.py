"""What the parser and conform.schema.json both refuse and accept, and that the documentation covers it all."""

from __future__ import annotations

import json
import tomllib
from dataclasses import fields
from importlib.resources import files
from pathlib import Path

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformkit.conformance.binding import config as module
from conformkit.conformance.binding.arguments import DTYPES
from conformkit.conformance.binding.config import MaskConfig, parse_config
from conformkit.conformance.binding.limits import LIMITED
from conformkit.conformance.binding.masks import NAMES, SHAPES, MaskForm
from conformkit.conformance.binding.path_config import PathsConfig
from conformkit.conformance.binding.toml_nodes import ConfigError
from conformkit.conformance.binding.tool_config import MethodConfig, ToolConfig
from conformkit.spec.components import COMPONENTS, SEVERAL_NAMES
from conformkit.spec.presets import PRESETS
from conformkit.spec.tools import FUNCTION, TOOLS
from conformkit.spec.variants import choices

MHA = "[components.MultiHeadAttention]\n"
LM = "[components.TinyTransformerLM]\n"
PATHS = "[components.TinyTransformerLM.paths]\n"
GENERATE = "[components.TinyTransformerLM.generate]\n"
WEIGHTS = "[components.MultiHeadAttention.weights]\n"
BATCH = "[components.get_batch]\n"
CHARACTERS = "[components.CharTokenizer]\n"
PADDING = "[components.create_padding_mask]\n"
LOSS = "[components.LabelSmoothingLoss]\n"

STRUCTURAL = {
    "unknown-table": (
        "\n[implementaton]",
        "line 2: implementaton: there is no key with this name; nearest: implementation",
    ),
    "unknown-component": (
        "[components.MultiHedAttention]",
        "components.MultiHedAttention: there is no component with this name; nearest: MultiHeadAttention",
    ),
    "export-name": (
        "[components.scaled_dot_product_attention]",
        "there is no component with this name; nearest: ScaledDotProductAttention",
    ),
    "unknown-key": (
        MHA + "\nconstuct = []",
        "line 3: components.MultiHeadAttention.constuct: there is no key with this name",
    ),
    "far-off-key": ("[implementation]\nzzz = 1", "there is no key with this name; known: framework, module, dtypes"),
    "generate-elsewhere": (
        MHA + "generate = {}",
        "components.MultiHeadAttention.generate: there is no key with this name",
    ),
    "table-of-tables": ("[[variant]]", "variant: it is a list, expected a table"),
    "components-text": ("components = 'a'", "components: it is a string, expected a table"),
    "framework": ("[implementation]\nframework = 'pytorch'", '"pytorch" is not one of torch, numpy; nearest: torch'),
    "framework-type": ("[implementation]\nframework = 3", "it is a whole number, expected a string"),
    "module-path": ("[implementation]\nmodule = '../other'", '"../other" is not a dotted name; write "package.module"'),
    "module-dots": ("[implementation]\nmodule = '..other'", "is not a dotted name"),
    "module-empty": ("[implementation]\nmodule = ''", "the string has 0 characters, expected 1 to 200"),
    "dtype": (
        "[implementation]\ndtypes = ['float32', 'float65']",
        'line 2: implementation.dtypes[1]: "float65" is not one of',
    ),
    "dtypes-twice": ("[implementation]\ndtypes = ['float32', 'float32']", "a value is listed twice"),
    "dtypes-none": ("[implementation]\ndtypes = []", "at least one dtype is needed"),
    "dtypes-text": ("[implementation]\ndtypes = 'float32'", "it is a string, expected a list"),
    "choice-name": ("[variant]\nnormalization = 'rmsnorm'", "variant.normalization: there is no choice with this name"),
    "choice-value": ("[variant]\nnorm = 'rms'", '"rms" is not one of layernorm, rmsnorm; nearest: rmsnorm'),
    "choice-type": ("[variant]\ntied = 'yes'", "variant.tied: it is a string, expected true or false"),
    "choice-number": ("[variant]\ntied = 1", "it is a whole number, expected true or false"),
    "eps-zero": ("[variant]\nnorm_eps = 0", "it is 0, expected a finite number above 0"),
    "eps-text": ("[variant]\nnorm_eps = '1e-5'", "it is a string, expected a number"),
    "eps-flag": ("[variant]\nnorm_eps = true", "it is true or false, expected a number"),
    "kv-heads-zero": ("[variant]\nkv_heads = 0", "it is 0, expected 1 to 1000000"),
    "kv-heads-flag": ("[variant]\nkv_heads = true", "it is true or false, expected a whole number"),
    "limit-name": ("[limits]\nd_modl = 3", "limits.d_modl: there is no size with this name; nearest: d_model"),
    "limit-key": ("[limits]\nd_model = { minimum = 3 }", "limits.d_model.minimum: there is no key with this name"),
    "limit-negative": ("[limits]\nd_model = { min = -3 }", "limits.d_model.min: it is -3, expected 1 to 1000000"),
    "limit-flag": ("[limits]\nd_model = true", "it is true or false, expected a whole number"),
    "limit-fraction": ("[limits]\nd_model = 2.5", "it is a number, expected a whole number"),
    "limit-date": ("[limits]\nd_model = 2020-01-01", "it is a date or time, expected a whole number"),
    "rank": ("[limits]\nrank = 1", "limits.rank: it is 1, expected 2 to 8"),
    "path": (MHA + "path = 'a/b.py:C'", '"a/b.py:C" is not a dotted name; write "package.module:name", no file path'),
    "path-colons": (MHA + "path = 'a:b:c'", "is not a dotted name"),
    "factory": (MHA + "factory = 'yes'", "it is a string, expected true or false"),
    "construct-text": (MHA + "construct = 'd_model'", "it is a string, expected a list"),
    "construct-date": (
        MHA + "construct = [1979-05-27]",
        "construct[0]: it is a date or time, expected a string, a number",
    ),
    "argument-name": (MHA + "construct = { 'a b' = 1 }", '"a b" cannot be the name of an argument'),
    "object-type": (
        MHA + "construct = { c = { object = 3 } }",
        "construct.c.object: it is a whole number, expected a string",
    ),
    "object-key": (
        MHA + "construct = { c = { object = 'C', args = [] } }",
        "construct.c.args: there is no key with this name",
    ),
    "object-path": (MHA + "construct = { c = { object = '/tmp/x:C' } }", "is not a dotted name"),
    "lookup-key": (
        MHA + "construct = { c = { lookup = 'C', arguments = [] } }",
        "c.arguments: there is no key with this name",
    ),
    "dtype-name": (MHA + "construct = { c = { dtype = 'float' } }", '"float" is not one of'),
    "dollar": (MHA + "construct = { c = { '$tensor' = 1 } }", "a key cannot begin with $ here"),
    "output": (MHA + "output = true", "it is true or false, expected a whole number"),
    "output-far": (MHA + "output = 99", "it is 99, expected -16 to 16"),
    "output-empty": (MHA + "output = []", "an empty list selects nothing"),
    "output-nested": (MHA + "output = [[0]]", "it is a list, expected a whole number"),
    "weights-output": (MHA + "weights_output = [1]", "it is a list, expected a whole number"),
    "causal": (MHA + "causal = true", "it is true or false, expected a string"),
    "causal-word": (
        MHA + "causal = 'alway'",
        '"alway" is not one of construct, always, never, mask, flag; nearest: always',
    ),
    "layout": (
        MHA + "layout = 'batch_first'",
        '"batch_first" is not one of batch first, sequence first, one sequence; nearest: batch first',
    ),
    "mask-key": (
        MHA + "mask = { polarity = 'hide' }",
        "mask.polarity: there is no key with this name; known: kinds, true, shape",
    ),
    "mask-kind": (MHA + "mask = { kinds = ['int'] }", 'mask.kinds[0]: "int" is not one of bool, float'),
    "mask-true": (MHA + "mask = { true = 'show' }", '"show" is not one of attend, hide'),
    "mask-shape": (MHA + "mask = { shape = 'T' }", '"T" is not one of T T, 1 T T, 1 1 T T, T T 1'),
    "ignore": (MHA + "ignore = 'mask'", "it is a string, expected a list"),
    "ignore-item": (MHA + "ignore = [3]", "ignore[0]: it is a whole number, expected a string"),
    "weights-list": (WEIGHTS + "a = ['q.weight']", "weights.a: it is a list, expected a string"),
    "weights-unquoted": (
        WEIGHTS + "wq.weight = 'q.weight'",
        'a rule is a string; quote the whole name: "wq.…" = "q.weight"',
    ),
    "paths-key": (PATHS + "padding = 'm'", "paths.padding: there is no key with this name"),
    "paths-name": (PATHS + "mask = true", "paths.mask: it is true or false, expected a string"),
    "paths-kind": (
        PATHS + "mask_form = { kind = 'boolean' }",
        '"boolean" is not one of int, bool, float; nearest: bool',
    ),
    "paths-shifts": (PATHS + "shifts = 1", "paths.shifts: it is a whole number, expected true or false"),
    "paths-elsewhere": (MHA + "paths = {}", "components.MultiHeadAttention.paths: there is no key with this name"),
    "generate-key": (GENERATE + "sample = 1", "generate.sample: there is no key with this name"),
    "generate-options": (
        GENERATE + "options = ['topk']",
        "no_repeat_ngram_size; nearest: top_k, top_p",
    ),
    "generate-returns": (GENERATE + "returns = 'fresh'", '"fresh" is not one of all, new'),
    "generate-greedy": (GENERATE + "greedy = ['temperature']", "greedy: it is a list, expected a table"),
    "tool": ("[components.get_batches]\npath = 'f'", "there is no component with this name; nearest: get_batch"),
    "tool-key": (BATCH + "weights = {}", "get_batch.weights: there is no key with this name"),
    "tool-arrays": (BATCH + "arrays = 'numpy'", '"numpy" is not one of tensor, array, list'),
    "tool-construct": (BATCH + "construct = []", "get_batch.construct: there is no key with this name"),
    "tool-call": (CHARACTERS + "call = ['text']", "CharTokenizer.call: there is no key with this name"),
    "tool-mask": (BATCH + "mask = {}", "get_batch.mask: there is no key with this name"),
    "tool-mask-true": (PADDING + "mask = { true = 'see' }", '"see" is not one of attend, hide'),
    "tool-mask-kind": (PADDING + "mask = { kind = 'bits' }", '"bits" is not one of bool, float, int'),
    "tool-methods-of-a-call": (LOSS + "methods = {}", "LabelSmoothingLoss.methods: there is no key with this name"),
    "tool-method": (
        CHARACTERS + "methods = { tokenize = {} }",
        "methods.tokenize: there is no method with this name; known: encode, decode",
    ),
    "tool-method-path": (
        CHARACTERS + "methods = { encode = { path = 3 } }",
        "encode.path: it is a whole number, expected a",
    ),
    "tool-attribute": (
        CHARACTERS + "attributes = { size = 'n' }",
        "there is no attribute with this name; nearest: vocab_size",
    ),
}
"""What the schema also refuses."""
TOGETHER = {
    "latent-of-nothing": ("[variant]\nrotary_width = 4", "keys and values come from no latent; declare latent too"),
    "latent-groups": ("[variant]\nlatent = 8\nkv_heads = 1", "with a latent, kv_heads is '1'; declare kv_heads"),
    "latent-of-a-family": ("[variant]\nlike = 'gemma2'\nlatent = 8", "with a latent, kv_heads is 'num_heads // 2'"),
    "latent-alibi": ("[variant]\nlatent = 8\npositions = 'alibi'", "with a latent has no positions = 'alibi'"),
}
"""Choices that do not go together, which a schema does not say."""


@pytest.mark.parametrize(("text", "message"), (STRUCTURAL | TOGETHER).values(), ids=STRUCTURAL | TOGETHER)
def test_a_refusal_names_the_key_the_problem_and_what_to_write(text, message):
    with pytest.raises(ConfigError) as caught:
        parse_config(text)
    assert message in str(caught.value)
    assert str(caught.value).startswith("conform.toml, line ")


# --- the schema says the same ---------------------------------------------------------------------------------------

SCHEMA = json.loads((files("conformkit.conformance.binding") / "conform.schema.json").read_text(encoding="utf-8"))
ACCEPTED = {
    "empty": "",
    "implementation": "[implementation]\nframework = 'torch'\nmodule = 'a.b'\ndtypes = ['float32', 'bfloat16']",
    "variant": "[variant]\nnorm = 'rmsnorm'\nnorm_eps = 1e-6\nrotary_base = 50000\n"
    "kv_heads = 'num_heads // 2'\nhead_width = 8",
    "latent": "[variant]\nlatent = 'd_model // 4'\nquery_latent = 0\nvalue_width = '2 * head_width'\nrotary_width = 4",
    "limits": "[limits]\nd_model = { min = 2, max = 8, multiple_of = 2 }\n"
    "num_heads = 1\nd_ff = '4 * d_model'\nrank = 3\nbatch = 1",
    "arguments": MHA
    + "construct = ['d_model', true, 1.5, [1, 'num_heads'], { a = 1, b = { c = \"'x'\" } }]\ncall = { x = 'x' }",
    "objects": MHA + "construct = [{ object = 'a.b:C.D' }, { lookup = 'c' }, { dtype = 'int64' }]\ncall = []",
    "paths": PATHS
    + "mask = 'm'\nmask_form = { kind = 'bool', true = 'hide' }\npositions = 'p'\nsegments = 's'\nrestarts = true\n"
    "cache = 'c'\nuse_cache = 'u'\nnew_cache = { object = 'a:C', arguments = ['num_layers', 'B'] }\n"
    "cache_output = 'past'\ncrop = 'cut'\nreset = 'clear'\nreorder = 'pick'\ntargets = 'y'\nshifts = false\n"
    "loss_output = 1\nweights = 'w'",
    "attention": "[components.ScaledDotProductAttention.paths]\ncausal = 'c'\ncausal_alignment = 'last'\nscale = 's'\n"
    "dropout = 'p'\ngrouped = 'g'",
    "globals": MHA + "globals = { n_embd = 'd_model', 'cfg.n_head' = 'num_heads', block_size = 256, bias = false }",
    "head-of-an-encoder-decoder": "[components.Transformer]\nhead = 'generator'",
    "dictionary": MHA + "construct = { cfg = { 'emb dim' = 'd_model', arguments = 3 } }",
    "dtypes": MHA
    + "construct = [{ dtype = \"'float32'\", n = 'd_model' }, { dtype = 'dtype' }, { a = { dtype = \"'float32'\" } }]",
    "outputs": MHA + "output = ['logits', 0, -1]\nweights_output = 'weights'",
    "conventions": MHA
    + "causal = 'flag'\nlayout = 'batch first'\nmask = { kinds = [], true = 'hide', shape = '1 T T' }",
    "weights": WEIGHTS
    + "'a.{h}' = 'q.weight -> d m'\nb = '2 * k.weight'\n[components.FeedForward.weights]\n'x.*' = '*'",
    "model": LM
    + "ignore = ['*']\n"
    + GENERATE
    + "path = 'm:f'\ncall = ['ids']\ngreedy = { k = 1 }\noptions = []\nreturns = 'all'",
    "function": BATCH
    + "path = 'm:f'\ncall = ['ids', { bs = 'batch_size', n = 3 }]\noutput = ['x', 'y']\narrays = 'list'",
    "class": CHARACTERS
    + "path = 'm:make'\nfactory = true\nconstruct = ['text']\nattributes = { vocab_size = 'n' }\n"
    + "methods = { encode = { path = 'tokenize', call = ['text'], output = 'ids' }, decode = {} }",
    "tool-masks": PADDING + "mask = { kind = 'int', true = 'hide' }",
    "tool-loss": LOSS + "construct = ['smoothing']\ncall = ['targets', 'logits']",
    "every-tool": "\n".join(f"[components.{name}]\npath = 'A'" for name in TOOLS),
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
    # JSON has no dates: the schema never sees one.
    assert "-01-01" in text or "1979" in text or not schema_accepts(text)


def test_the_schema_knows_every_component_choice_and_key():
    definitions = SCHEMA["$defs"]
    assert list(SCHEMA["properties"]["components"]["properties"]) == [*COMPONENTS, *SEVERAL_NAMES, *TOOLS]
    for name, tool in TOOLS.items():
        kind = SCHEMA["properties"]["components"]["properties"][name]["$ref"].rpartition("/")[2]
        keys = definitions[kind]["properties"]
        declared = {f.name for f in fields(ToolConfig)} - {"name"}
        if tool.construct is None:
            plain = (
                "hiding"
                if tool.limited
                else "windows"
                if tool.texts
                else "functionOrClass"
                if tool.made
                else "function"
            )
            assert kind == ("maskBuilder" if tool.masks else plain)
            continue
        if FUNCTION in tool.calls:
            assert set(keys) == declared - {"mask", "methods", "attributes", "globals", "limits", "stride"}
            continue
        assert set(keys) == declared - {"call", "mask", "globals", "limits", "logits", "reduction", "stride"}
        assert list(keys["methods"]["properties"]) == list(tool.calls)
        assert list(keys["attributes"]["properties"]) == list(tool.attributes)
    of_function = {"path", "skip", "output", "arrays", "call", "globals"}
    assert set(definitions["function"]["properties"]) == of_function
    assert set(definitions["maskBuilder"]["properties"]) == of_function | {"mask"}
    assert set(definitions["functionOrClass"]["properties"]) == of_function | {"construct", "factory"}
    assert set(definitions["windows"]["properties"]) == of_function | {"construct", "factory", "stride"}
    assert set(definitions["hiding"]["properties"]) == of_function | {"limits"}
    assert set(definitions["method"]["properties"]) == {f.name for f in fields(MethodConfig)}
    variant = definitions["variant"]["properties"]
    assert list(variant) == ["like", *choices()]
    assert variant["like"]["enum"] == list(PRESETS)
    for name, kind in choices().items():
        if isinstance(kind, tuple):
            assert tuple(variant[name]["enum"]) == kind
    assert set(definitions["limits"]["properties"]) == {*LIMITED, "rank"}
    declared = {f.name for f in fields(module.ComponentConfig)} - {"name", "generate", "head", "methods", "paths"}
    assert set(definitions["keys"]["properties"]) == declared - {"masks"}
    assert set(definitions["severalKeys"]["properties"]) == declared - {"causal", "mask"}
    assert list(definitions["forms"]["properties"]) == list(NAMES)
    assert set(definitions["form"]["properties"]) == {f.name for f in fields(MaskForm)}
    assert tuple(definitions["form"]["properties"]["shape"]["enum"]) == SHAPES
    assert set(definitions["generate"]["properties"]) == {f.name for f in fields(module.GenerateConfig)}
    assert set(definitions["mask"]["properties"]) == {f.name for f in fields(MaskConfig)}
    assert set(definitions["paths"]["properties"]) == {f.name for f in fields(PathsConfig)}


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


def written(value):
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(k)} = {written(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[\n" + ",\n".join(map(written, value)) + "]"
    return json.dumps(value)


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
        *SCHEMA["$defs"]["paths"]["properties"],
        *LIMITED,
        *choices(),
    ]
    keys += [f.name for f in fields(ToolConfig) if f.name != "name"]
    assert [
        key
        for key in [*keys, *NAMES, *COMPONENTS, *SEVERAL_NAMES, *TOOLS, *DTYPES, *module.CAUSAL]
        if f"`{key}`" not in text
    ] == []
