"""From exports to calls: signatures and declarations become bound components."""

from __future__ import annotations

import numpy as np
import pytest

from conformkit.conformance.binding.aliases import likely_meaning
from conformkit.conformance.binding.arguments import Arguments
from conformkit.conformance.binding.config import Config, parse_config
from conformkit.conformance.binding.exports import ExportMismatch, bind_export
from conformkit.conformance.binding.lookups import serves, targets
from conformkit.spec.components import COMPONENTS, component

MHA_CONSTRUCT = ("d_model", "num_heads", "dropout=", "causal=")
LM_CONSTRUCT = ("vocab_size", "d_model", "num_heads", "num_layers", "d_ff", "block_size", "dropout=")


def parameters(names):
    """`x` is required, `x=` has a default, `*x` and `**x` take the rest."""
    kinds = {"*": "var_positional", "**": "var_keyword"}
    found = []
    for name in names:
        stars = name[: len(name) - len(name.lstrip("*"))]
        required = not stars and not name.endswith("=")
        plain = name.strip("*=")
        found.append({"name": plain, "kind": kinds.get(stars, "positional"), "required": required, "default": None})
    return found


def export(construct=(), call=("x",), *, kind="class", path="mypkg.attn:Attn", **methods):
    """Return a description as the driver gives it."""
    return {
        "found": True, "path": path, "kind": kind, "construct": parameters(construct) if kind == "class" else None,
        "call": parameters(call), "methods": {n: parameters(p) for n, p in methods.items()},
        "source": "mypkg/attn.py:12", "error": None,
    }  # fmt: skip


def bind(description, text="", name="MultiHeadAttention", free=None):
    return bind_export(component(name), description, parse_config(text), free)


def declared(text, name="MultiHeadAttention"):
    return f"[components.{name}]\n{text}\n"


def texts(arguments):
    """Return arguments with expressions as their texts."""
    plain = lambda a: getattr(a, "text", a)  # noqa: E731
    return [plain(a) for a in arguments.positional], {n: plain(a) for n, a in arguments.named.items()}


# --- where to look ----------------------------------------------------------------------------------------------------


def test_without_a_file_everything_is_searched_for_by_the_contracts_name():
    wanted = targets(Config())
    assert set(wanted) == {c.export for c in COMPONENTS.values()} | {"generate"}
    assert set(wanted.values()) == {None}


def test_a_declared_path_is_looked_up_in_the_declared_module_unless_it_names_one():
    text = (
        "[implementation]\nmodule = 'mypkg.model'\n"
        + declared("path = 'Attn'")
        + declared("path = 'other:FFN'", "FeedForward")
    )
    wanted = targets(parse_config(text))
    assert wanted["MultiHeadAttention"] == "mypkg.model:Attn"
    assert wanted["FeedForward"] == "other:FFN"
    assert wanted["TransformerBlock"] is None


def test_a_bare_path_without_a_module_stays_bare():
    assert targets(parse_config(declared("path = 'Attn'")))["MultiHeadAttention"] == "Attn"


def test_a_generating_function_is_looked_up_and_a_method_is_not():
    table = "[components.TinyTransformerLM.generate]\n"
    assert targets(parse_config(table + "path = 'mypkg.sample:sample'"))["generate"] == "mypkg.sample:sample"
    assert targets(parse_config(table + "path = 'sample'"))["generate"] is None


# --- construction and call --------------------------------------------------------------------------------------------


def test_the_contracts_own_signature_needs_no_file():
    bound = bind(export(MHA_CONSTRUCT))
    assert texts(bound.construct) == ([], {n: n for n in ("d_model", "num_heads", "dropout", "causal")})
    assert texts(bound.call) == (["x"], {})
    assert (bound.path, bound.causal) == ("mypkg.attn:Attn", "construct")
    assert bound.offers["dropout"]


def test_well_known_other_names_are_understood():
    bound = bind(export(("embed_dim", "n_head", "n_kv_heads=", "p=", "bias="), ("query", "key", "value", "attn_mask=")))
    assert texts(bound.construct)[1] == {
        "embed_dim": "d_model", "n_head": "num_heads", "n_kv_heads": "kv_heads", "p": "dropout",
    }  # fmt: skip
    assert texts(bound.call) == (["x", "x", "x"], {"attn_mask": "mask"})


def test_key_value_heads_are_for_components_with_heads_only():
    bound = bind(export(("d_model", "d_ff", "n_kv_heads=")), name="FeedForward")
    assert texts(bound.construct)[1] == {"d_model": "d_model", "d_ff": "d_ff"}


def test_what_the_file_says_is_taken_as_it_is():
    text = declared(
        "construct = ['d_model', { heads = 'num_heads' }]\ncall = ['x', { m = 'mask' }]\nweights_output = 1"
    )
    bound = bind(export(("anything", "else"), ("whatever",)), text)
    assert texts(bound.construct) == (["d_model"], {"heads": "num_heads"})
    assert texts(bound.call) == (["x"], {"m": "mask"})
    assert bound.weights_output == 1
    assert not bound.offers["dropout"]


def test_a_function_is_not_constructed_and_a_factory_is():
    name = "ScaledDotProductAttention"
    attend = bind(export(call=("query", "key", "value", "attn_mask="), kind="function"), name=name)
    assert attend.construct == Arguments()
    assert texts(attend.call) == (["q", "k", "v"], {"attn_mask": "mask"})
    made = bind(export(kind="function"), declared("factory = true\nconstruct = { width = 'd_model' }\ncall = ['x']"))
    assert texts(made.construct)[1] == {"width": "d_model"}


def test_the_signature_of_a_factory_tells_how_the_component_is_made_and_not_how_it_is_called():
    made = bind(export(call=("width", "heads", "p="), kind="function"), declared("factory = true"))
    assert texts(made.construct)[1] == {"width": "d_model", "heads": "num_heads", "p": "dropout"}
    assert texts(made.call) == (["x"], {})
    assert made.insisted == frozenset()


def test_what_a_factory_makes_generates_as_the_file_says():
    called = "[components.TinyTransformerLM.generate]\ncall = ['ids', 'max_new_tokens']\n"
    text = declared("factory = true", "TinyTransformerLM") + called
    made = bind(export(call=LM_CONSTRUCT, kind="function"), text, "TinyTransformerLM")
    assert (made.generation.method, made.generation.function) == ("generate", None)
    untold = bind(
        export(call=LM_CONSTRUCT, kind="function"), declared("factory = true", "TinyTransformerLM"), "TinyTransformerLM"
    )
    assert untold.generation is None


def test_a_call_that_does_not_tell_its_arguments_gets_the_required_ones():
    silent = {**export(MHA_CONSTRUCT), "call": None, "construct": None}
    bound = bind(silent)
    assert texts(bound.call) == (["x"], {})
    assert texts(bound.construct)[1]["num_heads"] == "num_heads"


def test_variant_limits_and_mask_come_from_the_file():
    text = "[variant]\nqkv_bias = true\n[limits]\nrank = 3\n" + declared("mask = { true = 'hide' }")
    bound = bind(export(MHA_CONSTRUCT), text)
    assert bound.variant.qkv_bias
    assert (bound.limits.rank, bound.mask.true, bound.offers["any-rank"]) == (3, "hide", False)


# --- causality --------------------------------------------------------------------------------------------------------

WITHOUT = ("d_model", "num_heads")


@pytest.mark.parametrize(
    ("construct", "call", "text", "causal"),
    [
        (MHA_CONSTRUCT, ("x",), "", "construct"),
        (("d_model", "num_heads", "is_causal="), ("x", "mask="), "", "construct"),
        (WITHOUT, ("x", "mask"), "", "mask"),
        (WITHOUT, ("x", "attn_mask="), "", "mask"),
        (WITHOUT, ("x", "is_causal="), "", "flag"),
        (WITHOUT, ("x",), "", "always"),
        (WITHOUT, ("x",), "causal = 'never'", "never"),
        (WITHOUT, ("x", "mask="), "causal = 'mask'", "mask"),
        (MHA_CONSTRUCT, ("x", "mask="), "causal = 'mask'", "construct"),
        (MHA_CONSTRUCT, ("x", "is_causal="), "causal = 'flag'", "construct"),
        (WITHOUT, ("x",), "call = ['x', { causal = 'causal' }]", "flag"),
        (WITHOUT, ("x",), "construct = { d = 'd_model', c = 'not causal' }", "construct"),
    ],
    ids=[
        "constructor", "alias-beside-a-mask", "mask", "optional-mask", "flag", "always", "declared-never",
        "declared-mask", "mask-besides-a-switch", "flag-besides-a-switch", "flag-in-a-declared-call", "turned-round",
    ],
)  # fmt: skip
def test_the_switch_of_causality_is_found(construct, call, text, causal):
    assert bind(export(construct, call), declared(text)).causal == causal


def test_a_mask_that_the_declared_call_does_not_pass_switches_nothing():
    # the argument exists, but is never passed: "off" seemed possible, and "on" was never requested
    bound = bind(export(WITHOUT, ("x", "mask=")), declared("call = ['x']"))
    assert bound.causal == "always"
    assert (bound.offers["causal-on"], bound.offers["causal-off"], bound.offers["masks"]) == (True, False, False)


@pytest.mark.parametrize(
    ("causal", "on", "off"),
    [
        ("construct", True, True),
        ("mask", True, True),
        ("flag", True, True),
        ("always", True, False),
        ("never", False, True),
    ],
)
def test_causality_that_cannot_be_switched_is_not_an_ability(causal, on, off):
    offers = bind(export(MHA_CONSTRUCT, ("x", "mask=")), declared(f"causal = '{causal}'")).offers
    assert (offers["causal-on"], offers["causal-off"]) == (on, off)


@pytest.mark.parametrize(
    ("text", "masks", "of_bools", "of_floats"),
    [
        ("", True, True, True),
        ("mask = { kinds = ['bool'] }", True, True, False),
        ("mask = { kinds = ['float'] }", True, False, True),
        ("mask = { kinds = [] }", False, False, False),
        ("call = ['q', 'k', 'v']", False, False, False),
    ],
    ids=["undeclared", "bool", "float", "none", "not-passed"],
)
def test_masks_are_an_ability_where_they_are_passed_and_taken(text, masks, of_bools, of_floats):
    name = "ScaledDotProductAttention"
    offers = bind(export(call=("q", "k", "v", "mask="), kind="function"), declared(text, name), name).offers
    assert (offers["masks"], offers["bool-masks"], offers["float-masks"]) == (masks, of_bools, of_floats)


# --- generation -------------------------------------------------------------------------------------------------------


def model(text="", free=None, **methods):
    text = f"[components.TinyTransformerLM.generate]\n{text}\n" if text else ""
    return bind(export(LM_CONSTRUCT, ("ids",), **methods), text, "TinyTransformerLM", free)


def free(*names):
    return export(call=names, kind="function", path="mypkg.sample:generate")


def test_a_model_without_generate_generates_nothing():
    bound = model()
    assert bound.generation is None
    assert not bound.offers["generate"]


def test_a_method_is_called_by_the_contracts_arguments_under_its_own_names():
    generation = model(generate=("idx", "max_new_tokens", "temperature=", "top_k=")).generation
    assert (generation.method, generation.function, generation.new_only) == ("generate", None, False)
    assert texts(generation.call) == (["ids", "max_new_tokens"], {"temperature": "temperature", "top_k": "top_k"})


def test_a_free_function_is_given_the_model_first():
    generation = model(free=free("model", "prompt", "n", "temp=", "seed=")).generation
    assert (generation.method, generation.function) == (None, "mypkg.sample:generate")
    assert texts(generation.call) == (["model", "ids", "max_new_tokens"], {"temp": "temperature", "seed": "seed"})


def test_a_method_goes_before_a_free_function():
    generation = model(free=free("model", "ids", "n"), generate=("ids", "n")).generation
    assert generation.method == "generate"


def test_the_models_own_generate_is_judged_as_it_stands_whatever_is_declared():
    # a right function could be declared in place of the wrong method that everybody calls
    for text, other in (("path = 'mypkg.sample:generate'", free("model", "ids", "n")), ("path = 'write'", None)):
        bound = model(text, other, generate=("ids", "n"), write=("ids", "n"))
        assert (bound.generation.method, bound.generation.function) == ("generate", None)
        assert any("as it stands" in note for note in bound.notes)


def test_a_generate_that_cannot_be_called_leaves_the_declared_one():
    bound = model("path = 'write'", generate=("text", "tokenizer", "style"), write=("ids", "n"))
    assert bound.generation.method == "write"


def test_the_own_methods_of_an_encoder_decoder_stand_too():
    told = "generate = { path = 'write', call = ['src', 'max_new_tokens', 'bos_id'] }"
    methods = {"generate": ("src", "max_new_tokens", "bos_id"), "write": ("src", "n", "start")}
    assert translator(told, **methods).methods["generate"].name == "generate"
    assert translator(told, write=methods["write"]).methods["generate"].name == "write"


def test_a_method_of_another_name_is_declared():
    generation = model("path = 'sample'\nreturns = 'new'", sample=("ids", "n")).generation
    assert (generation.method, generation.new_only) == ("sample", True)


@pytest.mark.parametrize(
    ("names", "greedy"),
    [
        (("ids", "n", "temperature="), {"temperature": 0.0}),
        (("ids", "n", "temperature=", "do_sample="), {"do_sample": False}),
        (("ids", "n", "temp="), {"temp": 0.0}),
        (("ids", "n", "do_sample=", "top_k="), {"do_sample": False}),
        (("ids", "n", "greedy="), {"greedy": True}),
        (("ids", "n", "sample="), {"sample": False}),
        (("ids", "n", "topk="), {"topk": 1}),
        (("ids", "n"), {}),
    ],
    ids=["temperature", "switch-before-temperature", "temp", "do-sample", "greedy", "sample", "top-k", "always-greedy"],
)
def test_greedy_is_requested_with_the_existing_arguments(names, greedy):
    asked = model(generate=names).generate_request(np.zeros((1, 2), np.int64), 3, {"greedy": True})[0]
    assert asked["kwargs"] == greedy


@pytest.mark.parametrize(
    ("name", "value"), [("do_sample", True), ("sample", True), ("greedy", False), ("deterministic", False)]
)
def test_sampling_is_requested_where_there_is_a_switch(name, value):
    # do_sample is False by default: sampled text was greedy
    generation = model(generate=("idx", "n", f"{name}=", "temperature=", "top_k=")).generation
    assert texts(generation.call)[1] == {"temperature": "temperature", "top_k": "top_k", name: value}
    assert generation.own_greedy


def test_a_switch_without_a_default_is_given_a_value_too():
    generation = model(generate=("idx", "n", "do_sample", "temperature=")).generation
    assert texts(generation.call) == (["ids", "max_new_tokens"], {"temperature": "temperature", "do_sample": True})


def test_an_argument_called_like_a_switch_whose_default_is_not_a_boolean_is_left_alone():
    described = export(LM_CONSTRUCT, ("ids",), generate=("ids", "n", "temperature=", "sample="))
    described["methods"]["generate"][-1]["default"] = "'top-p'"
    generation = bind(described, name="TinyTransformerLM").generation
    assert texts(generation.call)[1] == {"temperature": "temperature"}
    assert not generation.own_greedy


def test_the_declared_spelling_of_greedy_goes_first():
    generation = model("greedy = { do_sample = false }", generate=("ids", "n", "temperature=")).generation
    assert texts(generation.greedy)[1] == {"do_sample": False}


def test_a_temperature_passed_by_position_can_be_zero_too():
    # greedy text was sampled, because only named arguments were checked
    bound = model("call = ['ids', 'max_new_tokens', 'temperature']", generate=("a", "b", "c"))
    asked = bound.generate_request(np.zeros((1, 2), np.int64), 3, {"greedy": True})[0]
    assert (asked["args"][1:], asked["kwargs"]) == ([3, 0.0], {})


@pytest.mark.parametrize(
    ("given", "passed"),
    [
        ("{ object = 'm:Pick', arguments = { heat = 'temperature' } }", {"heat": 0.0}),
        ("{ object = 'm:Pick', arguments = { beta = '1 / temperature', k = 'top_k' } }", {"beta": 1.0, "k": 1}),
    ],
    ids=["temperature", "no-temperature-of-0"],
)
def test_greedy_is_requested_by_values_within_objects_too(given, passed):
    """Would break if text that an object of the call picks were sampled where greedy text is asked for."""
    bound = model(f"call = {{ a = 'ids', b = 'max_new_tokens', pick = {given} }}", generate=("a", "b", "pick"))
    asked = bound.generate_request(np.zeros((1, 2), np.int64), 3, {"greedy": True})[0]
    assert asked["kwargs"]["pick"]["kwargs"] == passed


@pytest.mark.parametrize(
    ("text", "names", "options"),
    [
        ("", ("ids", "n", "temperature=", "top_k="), {"temperature", "top-k"}),
        ("", ("ids", "n", "topp="), {"top-p"}),
        ("options = ['top_p']", ("ids", "n", "temperature=", "top_k="), {"top-p"}),
        ("options = []", ("ids", "n", "temperature="), set()),
        ("call = ['ids', 'max_new_tokens', 'temperature']", ("a", "b", "c"), {"temperature"}),
    ],
    ids=["found-out", "alias", "declared", "declared-none", "declared-call"],
)
def test_options_are_those_declared_or_else_those_found(text, names, options):
    offers = model(text, generate=names).offers
    assert {name for name in ("temperature", "top-k", "top-p") if offers[name]} == options


def test_generation_that_cannot_be_called_is_reported_as_unjudged():
    # it looked like a model that does not generate
    bound = model(generate=("ids", "n", "sampler"))
    assert bound.generation is None
    assert not bound.offers["generate"]
    (note,) = bound.notes
    assert "generation is not judged: it requires sampler, which the contract does not have" in note


def test_a_declared_generate_that_does_not_exist_is_reported_as_unjudged():
    for text in ("path = 'sample'", "path = 'mypkg.sample:generate'"):
        (note,) = model(text, generate=("ids", "n")).notes
        assert "sample" in note
        assert "does not exist" in note


def test_a_declared_method_that_does_not_exist_is_not_replaced_by_a_function_that_does():
    bound = model("path = 'sample'", free("model", "ids", "n"))
    assert bound.generation is None
    assert bound.notes == ("generation is not judged: sample does not exist",)


# --- what does not fit ------------------------------------------------------------------------------------------------


def mismatch(*arguments, **named):
    with pytest.raises(ExportMismatch) as caught:
        bind(*arguments, **named)
    return caught.value


def test_a_constructor_that_wants_more_gets_lines_to_paste_with_what_is_known():
    error = mismatch(export(("embed_dim", "n_head", "window")))
    assert str(error) == "MultiHeadAttention: mypkg.attn:Attn requires window, which the contract does not have"
    assert (error.component, error.path, error.source) == ("MultiHeadAttention", "mypkg.attn:Attn", "mypkg/attn.py:12")
    assert error.advice == (
        (
            "the contract has (d_model, num_heads, dropout, causal), yours has (embed_dim, n_head, window); "
            "say in conform.toml how they correspond:"
        ),
        "    [components.MultiHeadAttention]",
        '    construct = { embed_dim = "d_model", n_head = "num_heads", window = "…" }',
    )


def test_a_constructor_that_takes_less_is_named_with_what_it_lacks():
    assert str(mismatch(export(("embed_dim",)))).endswith("mypkg.attn:Attn does not take num_heads")


def test_a_constructor_that_takes_nothing_is_not_told_to_pass_nothing():
    """Would break if `construct = {  }` were shown as the way out."""
    (line,) = mismatch(export(())).advice
    assert line.endswith("(d_model, num_heads, dropout, causal), yours takes nothing: it must take them to be judged")


def test_a_config_object_gets_the_line_that_makes_one():
    error = mismatch(export(("config",)))
    assert error.advice[-1] == (
        '    construct.config = { object = "your.module:YourConfig", arguments = '
        '{ d_model = "d_model", num_heads = "num_heads" } }'
    )


def test_a_call_that_wants_more_gets_lines_for_the_call():
    error = mismatch(export(MHA_CONSTRUCT, ("x", "freqs_cis", "mask=")))
    assert "requires freqs_cis" in str(error)
    assert error.advice[0].startswith("the contract has (x), yours has (x, freqs_cis, mask)")
    assert error.advice[-1].startswith("    call = {")
    assert 'freqs_cis = "…"' in error.advice[-1]


def test_the_lines_to_paste_are_a_valid_file_once_the_blanks_are_filled():
    for description in (export(("embed_dim", "n_head", "window")), export(("cfg",)), export(MHA_CONSTRUCT, ("x", "f"))):
        lines = "\n".join(line.strip() for line in mismatch(description).advice[1:])
        parse_config(lines.replace('"…"', "7"))


def test_a_pasted_call_passes_the_input_as_well():
    # the proposed line named the unknown arguments and forgot x
    lines = "\n".join(line.strip() for line in mismatch(export(MHA_CONSTRUCT, ("x", "f"))).advice[1:])
    bound = bind(export(MHA_CONSTRUCT, ("x", "f")), lines.replace('"…"', "7"))
    assert bound.call.template({"x": "X"}) == ([], {"x": "X", "f": 7})


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("construct = { d = 'd_model', b = 'block_size' }\ncall = ['x']", None),
        (
            "construct = { d = 'd_model', b = '2 * block_size' }",
            "is constructed with block_size, which MultiHeadAttention",
        ),
        ("call = ['q', 'x']", "is called with q, which MultiHeadAttention does not have"),
        ("call = ['x', { n = '(ids, 1)' }]", "is called with ids, which"),
    ],
    ids=["passed-on", "size", "input", "ids"],
)
def test_a_declared_argument_without_a_value_here_is_named(text, problem):
    # plain names are left out; anything else was a traceback at the first call
    if problem is None:
        bind(export(), declared(text))
        return
    error = mismatch(export(MHA_CONSTRUCT), declared(text))
    assert problem in str(error)
    assert "num_heads" in error.advice[0]


# --- what an encoder-decoder writes with ------------------------------------------------------------------------------

SEQ2SEQ_CONSTRUCT = (
    "src_vocab_size", "tgt_vocab_size", "d_model", "num_heads", "num_encoder_layers", "num_decoder_layers", "d_ff",
    "max_len", "dropout=", "pad_id=",
)  # fmt: skip


def translator(text="", **methods):
    described = export(SEQ2SEQ_CONSTRUCT, ("src", "tgt", "src_mask=", "tgt_mask="), **methods)
    return bind(described, f"[components.Transformer.methods]\n{text}\n" if text else "", "Transformer")


def test_options_of_what_writes_are_known_by_well_known_names_and_are_abilities():
    found = translator(generate=("src", "src_mask", "n", "start_symbol", "eos_token_id=", "topk="))
    assert texts(found.methods["generate"].call)[1] == {
        "src": "src", "src_mask": "src_mask", "n": "max_new_tokens", "start_symbol": "bos_id",
        "eos_token_id": "eos_id", "topk": "top_k",
    }  # fmt: skip
    offered = {name for name in ("generate", "eos-id", "top-k", "top-p", "temperature") if found.offers[name]}
    assert offered == {"generate", "eos-id", "top-k"}
    assert found.methods["generate"].insisted == {"src", "src_mask", "n", "start_symbol"}


@pytest.mark.parametrize(("switch", "wanted"), [("do_sample", "temperature > 0"), ("greedy", "temperature == 0")])
def test_a_switch_between_sampled_and_greedy_text_follows_the_temperature(switch, wanted):
    described = ("src", "max_new_tokens", "bos_id", f"{switch}=", "temperature=")
    assert texts(translator(generate=described).methods["generate"].call)[1][switch] == wanted
    assert switch not in texts(translator(generate=described[:-1]).methods["generate"].call)[1]


@pytest.mark.parametrize(
    ("theirs", "default", "wanted"),
    [("eos_token_id", None, True), ("eos_token_id=", "2", True), ("eos_token_id=", "None", False)],
    ids=["without-default", "ended-by-default", "not-ended-by-default"],
)
def test_an_end_id_that_has_to_be_given_is_known_by_any_name(theirs, default, wanted):
    described = export(SEQ2SEQ_CONSTRUCT, ("src", "tgt"), generate=("src", "max_new_tokens", "bos_id", theirs))
    described["methods"]["generate"][-1]["default"] = default
    assert bind(described, "", "Transformer").methods["generate"].insists("eos_id") == wanted


def test_beams_come_with_their_scores():
    found = translator(seq2seq_beam_search=("src", "max_new_tokens", "bos_id", "beam_width", "alpha=", "eos_id="))
    assert found.methods["beam_search"].output == (0, 1)
    assert found.offers["length-penalty"]
    assert found.offers["beam-eos-id"]


def test_a_method_that_writes_and_is_called_otherwise_is_noted():
    found = translator(generate=("src", "max_length", "start"))
    assert not found.offers["generate"]
    assert any("generate of Transformer is not judged" in note for note in found.notes)


def test_a_declared_function_writes_and_gets_the_model():
    found = translator("generate = { path = 'mypkg:greedy', call = ['model', 'src', 'max_new_tokens + 1', 'bos_id'] }")
    src = np.array([[3, 4]])
    header, arrays = found.call_request(
        {"src": src}, {"max_new_tokens": 5, "bos_id": 1, "num_heads": 2}, method="generate"
    )
    assert header["function"] == "mypkg:greedy"
    assert header["args"] == [{"$self": True}, {"$tensor": "src"}, 6, 1]
    assert list(arrays) == ["src"]


@pytest.mark.parametrize(("module", "wanted"), [("", ":greedy"), ("mypkg.model", "mypkg.model:greedy")])
def test_a_bare_name_that_is_not_a_method_is_a_function_of_the_module(module, wanted):
    # it was ignored, and generation was not judged
    text = "[components.Transformer.methods]\ngenerate = { path = 'greedy', call = ['model', 'src', 'bos_id'] }\n"
    text += f"[implementation]\nmodule = '{module}'\n" if module else ""
    found = bind(export(SEQ2SEQ_CONSTRUCT, ("src", "tgt"), greedy_search=("src",)), text, "Transformer")
    header, _ = found.call_request({"src": np.array([[3]])}, {"bos_id": 1, "num_heads": 2}, method="generate")
    assert header["function"] == wanted


def test_a_declared_name_that_does_not_exist_is_reported_and_not_replaced():
    found = translator("generate = { path = 'greedy' }", generate=("src", "max_new_tokens", "bos_id"))
    assert "generate" not in found.methods
    assert any("greedy is not a method" in note for note in found.notes)


def test_a_factory_is_constructed_by_its_signature_and_what_it_makes_is_called_as_declared():
    # its arguments are not arguments of the call
    described = export(kind="function", call=(*SEQ2SEQ_CONSTRUCT[:-1], "pad="))
    text = "[components.Transformer]\nfactory = true\npath = 'make'\n[components.Transformer.methods]\n"
    text += "encode = { call = ['src', 'src_mask'] }\ngenerate = { path = 'greedy', call = ['model', 'src'] }\n"
    bound = bind(described, text, "Transformer")
    assert texts(bound.construct)[1]["num_encoder_layers"] == "num_encoder_layers"
    assert texts(bound.call) == (["src", "tgt"], {})
    assert [bound.methods[name].name for name in ("encode", "generate")] == ["encode", ":greedy"]
    assert any("no mask is passed" in note for note in bound.notes)


def test_masks_of_the_memory_are_as_those_of_the_source_where_they_are_not_declared():
    forms = "src_mask = { kind = 'int', shape = 'B T' }\nsrc_padding = { true = 'attend' }\n"
    own = "memory_padding = { shape = 'B 1 T' }\n"
    described = export(SEQ2SEQ_CONSTRUCT, ("src", "tgt"))
    masks = bind(described, f"[components.Transformer.masks]\n{forms}{own}", "Transformer").masks
    assert masks["memory_mask"] == masks["src_mask"]
    assert (masks["memory_padding"].shape, masks["memory_padding"].true) == ("B 1 T", "hide")
    assert masks["src_padding"].true == "attend"


# --- encoder-decoders -------------------------------------------------------------------------------------------------

S2S_CONSTRUCT = ("vocab_size", "d_model", "nhead", "num_layers", "d_ff", "max_len")


def test_one_vocabulary_and_one_depth_serve_both_sides():
    bound = bind(export(S2S_CONSTRUCT, ("src", "tgt")), name="Transformer")
    given = texts(bound.construct)[1]
    assert given["vocab_size"] == "src_vocab_size"
    assert given["num_layers"] == "num_encoder_layers"
    assert bound.limits.of("tgt_vocab_size").equals == "src_vocab_size"
    assert bound.limits.of("num_decoder_layers").equals == "num_encoder_layers"


def test_methods_are_found_by_their_further_names():
    described = export(S2S_CONSTRUCT, ("src", "tgt"), encode=("src", "mask="), decode_step=("tgt", "memory"))
    bound = bind(described, name="Transformer")
    assert {name: method.name for name, method in bound.methods.items()} == {
        "encode": "encode",
        "decode": "decode_step",
    }
    assert texts(bound.methods["encode"].call)[1]["mask"] == "src_mask"
    assert bound.offers["encode"]


def test_embeddings_serve_as_a_table_where_they_are_made_with_no_length_and_no_dropout():
    wanted, call = component("TokenEmbedding"), ("ids",)
    assert serves(wanted, export(("vocab_size", "d_model", "padding_idx="), call))
    assert not serves(wanted, export(("vocab_size", "d_model", "max_len="), call))
    assert not serves(wanted, export(("vocab_size", "d_model", "drop="), call))


def test_a_padding_id_is_an_ability_of_a_table_that_takes_one():
    for construct, able in ((("vocab_size", "d_model", "padding_idx="), True), (("vocab_size", "d_model"), False)):
        bound = bind_export(component("TokenEmbedding"), export(construct, ("ids",)), Config(), None)
        assert bound.offers["pad-id"] is able


def test_attention_serves_as_cross_attention_where_it_takes_a_key_and_a_value():
    wanted = component("CrossAttention")
    assert serves(wanted, export(MHA_CONSTRUCT, ("query", "key", "value", "mask=")))
    assert not serves(wanted, export(MHA_CONSTRUCT, ("x", "mask=", "cache=")))


# --- masks and factories ----------------------------------------------------------------------------------------------


def test_a_mask_argument_without_a_default_is_required():
    required = {"name": "attn_mask", "kind": "positional", "required": True, "default": None}
    described = export(("d_model", "num_heads"))
    described["call"] = [*parameters(("x",)), required]
    found = bind(described)
    assert (found.causal, found.mask.required) == ("mask", True)
    assert not bind({**described, "call": [*parameters(("x",)), {**required, "required": False}]}).mask.required
    model = export(("vocab_size", "d_model", "num_heads", "num_layers", "d_ff", "block_size"))
    model["call"] = [*parameters(("ids",)), required]
    assert bind(model, name="TinyTransformerLM").causal == "mask"
    assert bind(model, declared("causal = 'always'", "TinyTransformerLM"), "TinyTransformerLM").causal == "always"


def test_a_declared_mask_that_no_call_would_pass_is_refused():
    text = "call = ['x', { attn_mask = 'mask' }]\n"
    described = export(("d_model", "num_heads", "causal"), ("x", "attn_mask="))
    error = mismatch(described, declared(text))
    assert "is called with `mask`, but none is ever passed: causality is requested by the constructor" in str(error)
    assert "required = true" in error.advice[0]
    for more in ("causal = 'mask'", "mask = { required = true }"):
        assert bind(described, declared(text + more)).call.names() == {"x", "mask"}


def test_a_declared_mask_that_an_encoder_decoder_never_has_is_refused():
    described = export(("d_model", "num_heads", "d_ff"), ("x", "attn_mask="))
    error = mismatch(described, declared("call = ['x', { attn_mask = 'causality' }]", "EncoderLayer"), "EncoderLayer")
    assert "is called with causality, which no call of EncoderLayer has" in str(error)
    assert error.advice == ("its masks are: mask",)
    one = declared("call = ['x', { attn_mask = 'src_mask' }]", "EncoderLayer")
    assert bind(described, one, "EncoderLayer").call.names() == {"x", "src_mask"}  # there is only one mask to mean


@pytest.mark.parametrize("call", [("cfg",), ("d_model", "heads"), ()], ids=["config", "sizes", "nothing"])
def test_a_function_of_sizes_is_told_to_be_a_factory(call):
    described = export(call=call, kind="function", path="mypkg.attn:make")
    error = mismatch(described)
    assert "is a function that does not take x: it is no MultiHeadAttention itself" in str(error)
    assert "    factory = true" in error.advice
    assert bind(described, declared("factory = true\nconstruct = ['d_model']")).config.factory


def test_code_that_only_samples_offers_samples_and_nothing_greedy():
    described = export(
        ("vocab_size", "d_model", "num_heads", "num_layers", "d_ff", "block_size"), ("ids",),
        generate=("ids", "max_new_tokens"),
    )  # fmt: skip
    plain = bind(described, name="TinyTransformerLM")
    assert plain.offers["greedy"]
    assert not plain.offers["samples"]
    text = "[components.TinyTransformerLM]\ngenerate = { greedy = false }"
    sampler = bind(described, text, "TinyTransformerLM")
    assert sampler.offers["samples"]
    assert not sampler.offers["greedy"]
    assert sampler.generation.greedy.named == {}


def test_halves_that_cannot_hide_padding_are_none_of_the_contracts():
    """Would break if `encode(src, src_mask)` beside a call that takes padding apart got the contract's masks."""
    call = 'call = ["src", "tgt", "None", "causality", "src_padding", "tgt_padding", "src_padding"]'
    arguments = ("src", "tgt", "src_mask", "tgt_mask", "src_pad", "tgt_pad", "memory_pad")
    blind, seeing = ("src", "src_mask"), ("src", "src_key_padding_mask")
    for encode, there in ((blind, False), (seeing, True)):
        described = export(SEQ2SEQ_CONSTRUCT, arguments, encode=encode)
        found = bind(described, f"[components.Transformer]\n{call}\n", "Transformer")
        assert ("encode" in found.methods) == there
        assert any("encode of Transformer is not judged" in note for note in found.notes) != there


# --- what a file leaves out -------------------------------------------------------------------------------------------


def test_a_declared_call_must_pass_what_has_no_default() -> None:
    """Would break if a missing mask were a TypeError of the code, which then looked like some mistake."""
    layer = export(MHA_CONSTRUCT, ("x", "blocked_mask", "scale="))
    with pytest.raises(
        ExportMismatch, match=r"requires blocked_mask, which `call` in conform.toml does not pass"
    ) as told:
        bind(layer, declared("call = ['x']"))
    assert "add { blocked_mask = " in told.value.advice[0]
    assert bind(layer, declared("call = ['x', { blocked_mask = 'mask' }]")).mask.required


def test_a_declared_constructor_that_passes_no_size_is_noted() -> None:
    layer = export(("width",))
    notes = bind(layer, declared("construct = { width = 'd_model' }", "FeedForward"), "FeedForward").notes
    assert [note for note in notes if "passes no d_ff" in note]
    fixed = declared("construct = { width = 'd_model' }\nlimits = { d_ff = '4 * d_model' }", "FeedForward")
    assert not [note for note in bind(layer, fixed, "FeedForward").notes if "passes no" in note]


def test_settings_may_name_sizes_that_a_part_does_not_have() -> None:
    """Would break if one object of settings, written for all parts, kept the feed-forward from being judged."""
    settings = "construct = [{ object = 'mypkg:Config', arguments = { width = 'd_model', heads = 'num_heads' } }]"
    text = f"{settings}\nlimits = {{ d_ff = '4 * d_model' }}"
    bound = bind(export(("config",)), declared(text, "FeedForward"), "FeedForward")
    assert bound.construct.names() == {"d_model"}
    assert "num_heads, which FeedForward does not have, is 1 in its settings" in bound.notes
    with pytest.raises(ExportMismatch, match="is constructed with num_heads, which FeedForward does not have"):
        bind(export(("d", "h")), declared("construct = ['d_model', '2 * num_heads']", "FeedForward"), "FeedForward")


@pytest.mark.parametrize(
    ("positions", "told", "noted"),
    [("learned", "", True), ("rotary", "", False), ("learned", ", max_seq_len = 256", False)],
    ids=["a-table", "without-an-end", "told-by-a-number"],
)
def test_a_length_that_is_not_passed_is_noted_where_it_matters(positions, told, noted) -> None:
    names = ("vocab_size", "d_model", "num_heads", "num_layers", "d_ff")
    passed = ", ".join(f"{name} = '{name}'" for name in names)
    text = f"construct = {{ {passed}{told} }}\nvariant = {{ positions = '{positions}' }}"
    model = export((*names, "max_seq_len=1024"), ("ids",))
    notes = bind(model, declared(text, "TinyTransformerLM"), "TinyTransformerLM").notes
    assert any("passes no block_size" in note for note in notes) == noted


def test_inputs_of_two_axes_are_those_of_code_without_a_batch_axis() -> None:
    text = "[components.ScaledDotProductAttention]\nlimits = { rank = 2 }"
    own = parse_config(text).component("ScaledDotProductAttention")
    assert (own.layout, own.limits.rank) == ("one sequence", None)


def test_a_decoder_without_a_mask_for_its_memory_is_noted() -> None:
    sizes = ("d_model", "num_heads", "d_ff", "dropout=")
    bound = bind(export(sizes, ("x", "memory", "tgt_mask=")), name="DecoderLayer")
    assert bound.offers["target-masks"]
    assert not bound.offers["memory-masks"]
    assert any("no argument for a memory padding mask" in note for note in bound.notes)
    declared_away = declared("call = ['x', 'memory', { tgt_mask = 'tgt_mask' }]", "DecoderLayer")
    whole = bind(export(sizes, ("x", "memory", "tgt_mask=", "memory_mask=")), declared_away, "DecoderLayer")
    assert whole.exempted["memory-masks"] == "components.DecoderLayer.call"


def test_a_table_at_the_end_of_a_list_is_a_dictionary_where_no_key_is_an_argument():
    """Would break if settings as one dictionary, in a list, were passed as keywords that nothing takes."""
    described = export(("config",), ("x",))
    bound = bind(
        described, declared("construct = [{ width = 'd_model', inner = 'd_ff' }]", "FeedForward"), "FeedForward"
    )
    assert bound.construct.template({"d_model": 4, "d_ff": 8}) == ([{"width": 4, "inner": 8}], {})
    keywords = bind(described, declared("construct = [{ config = 'd_model' }]", "FeedForward"), "FeedForward").construct
    assert keywords.template({"d_model": 4})[1] == {"config": 4}


@pytest.mark.parametrize(
    ("width", "inner"),
    [
        ("num_hiddens", "d_ff"),
        ("dim", "mlp_hidden_size"),
        ("units", "ffn_width"),
        ("dim", "expert_hidden"),
        ("width", "inter"),
    ],
)
def test_likely_names_are_believed_where_they_are_just_what_is_missing(width, inner):
    bound = bind(export((width, inner), ("x",)), name="FeedForward")
    assert texts(bound.construct)[1] == {width: "d_model", inner: "d_ff"}
    assert any("is taken for" in note for note in bound.notes)


@pytest.mark.parametrize("name", ["n_expert", "num_experts", "expert_num", "moe_n", "hidden_experts"])
def test_a_number_of_experts_is_no_width(name):
    assert likely_meaning(name, ["d_model", "d_ff"]) is None


def test_what_may_correspond_is_proposed_by_what_is_left():
    """Would break if the line to add had three dots where only one size is left."""
    with pytest.raises(ExportMismatch) as raised:
        bind(export(("largeur", "interne"), ("x",)), name="FeedForward")
    assert raised.value.advice[-1].strip() == 'construct = { largeur = "d_model", interne = "d_ff" }'


def test_a_model_whose_positions_have_no_end_takes_no_block_size():
    described = export(("vocab_size", "d_model", "n_heads", "n_layers", "hidden"), ("ids",))
    assert "block_size" not in bind(described, "variant.positions = 'alibi'", "TinyTransformerLM").construct.names()
    with pytest.raises(ExportMismatch, match="block_size"):
        bind(described, "variant.positions = 'learned'", "TinyTransformerLM")


def test_what_counts_heads_is_no_self_attention_of_one_head():
    """Would break if a class of several heads were judged as the contract's `SelfAttention`, which has one."""
    several = export(("emb", "heads=", "mask="))
    with pytest.raises(ExportMismatch, match="takes heads, a number of heads"):
        bind(several, name="SelfAttention")
    text = declared('construct = { emb = "d_model", heads = 1, mask = "causal" }', "SelfAttention")
    assert texts(bind(several, text, "SelfAttention").construct)[1]["heads"] == 1
