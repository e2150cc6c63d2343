"""Arguments with a default that a declaration gives what no caller of the contract passes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from conformkit.conformance.binding.config import parse_config
from conformkit.conformance.binding.exports import bind_export
from conformkit.conformance.binding.tools import bind_tool
from conformkit.spec.components import component
from conformkit.spec.tools import TOOLS

from .test_exports import LM_CONSTRUCT, MHA_CONSTRUCT, export

MHA = "[components.MultiHeadAttention]\n"
ALL = '"d_model", "num_heads", "dropout", "causal"'


def bound(declared, construct=MHA_CONSTRUCT, call=("x",), *, refused=()):
    config = replace(parse_config(MHA + declared), refused=frozenset(refused))
    return bind_export(component("MultiHeadAttention"), export(construct, call), config, None)


@pytest.mark.parametrize(
    ("declared", "more", "call"),
    [
        ("call = ['x', 'x']", (), ("x", "memory=")),
        ("call = { memory = 'x', x = 'x' }", (), ("x", "memory=")),
        ("call = { x = 'x', length = 'T' }", (), ("x", "length=")),
        ("call = { x = 'x', where = 'position_ids' }", (), ("x", "where=")),
        ("call = { x = 'x', size = ['T', 'd_model'] }", (), ("x", "size=")),
        ("call = { x = 'x', width = 'head_width' }", (), ("x", "width=")),
        ("call = { x = 'x', hide = 'causal' }", (), ("x", "hide=")),
        ("mask = { required = true }", (), ("x", "mask=")),
        (f"construct = [{ALL}, 'd_model']", ("wide=",), ("x",)),
        (f"construct = [{ALL}, {{ judged = '1 * d_model' }}]", ("judged=",), ("x",)),
        (f"construct = [{ALL}, {{ sizes = {{ m = 'd_model' }} }}]", ("sizes=",), ("x",)),
        (f"construct = [{ALL}, {{ p = 'dropout' }}]", ("p=",), ("x",)),
    ],
)
def test_what_no_caller_of_the_contract_passes_is_an_excuse(declared, more, call):
    # would let code pass that is right only where such an argument is given
    told = bound(declared, (*MHA_CONSTRUCT, *more), call).further
    assert [one.kind for one in told] == ["further"]


@pytest.mark.parametrize(
    ("declared", "construct", "call"),
    [
        ("call = ['x', 'x', 'x']", MHA_CONSTRUCT, ("query", "key=", "value=")),
        ("call = ['x', 'x', 'T']", MHA_CONSTRUCT, ("here", "there", "length")),
        ("call = ['x', { attn_mask = 'mask' }]", ("d_model", "num_heads"), ("x", "attn_mask=")),
        ("call = { x = 'x', hide = 'causal' }", ("d_model", "num_heads"), ("x", "hide=")),
        ("mask = { required = true }", MHA_CONSTRUCT, ("x", "attn_mask")),
        ("construct = ['d_model', 'd_model', 'num_heads']", ("d_in", "d_out", "num_heads"), ("x",)),
        ("construct = { width = 'd_model', heads = 'num_heads', p = 'dropout' }", ("width=", "heads=", "p="), ("x",)),
        (
            "variant = { kv_heads = 'num_heads // 2' }\nconstruct = ['d_model', 'num_heads', { groups = 'kv_heads' }]",
            ("d_model", "num_heads", "groups="),
            ("x",),
        ),
    ],
)
def test_each_argument_of_the_contract_and_what_has_no_default_is_a_renaming(declared, construct, call):
    assert bound(declared, construct, call).further == ()


@pytest.mark.parametrize("argument", ["head_dim = 'head_width'", "attn_drop = 'dropout'", "groups = 'kv_heads'"])
def test_what_much_right_code_takes_besides_is_told_as_computed(argument):
    own = (*MHA_CONSTRUCT, "head_dim=", "attn_drop=", "groups=")
    (told,) = bound(f"construct = [{ALL}, {{ {argument} }}]", own).further
    assert told.kind == "computed"


def test_what_a_policy_refuses_is_left_out_and_the_rest_stays():
    declared = "construct = ['d_model', 'num_heads', 'd_model', 'dropout', { causal = 'causal' }]"
    kept = bound(declared, ("d_model", "num_heads", "wide=", "dropout=", "causal="), refused={"further"}).construct
    assert [value.text for value in kept.positional] == ["d_model", "num_heads"]
    assert {name: value.text for name, value in kept.named.items()} == {"dropout": "dropout", "causal": "causal"}


def test_a_mask_that_a_policy_does_not_let_every_call_have_is_not_required():
    assert not bound("mask = { required = true }", call=("x", "mask="), refused={"further"}).mask.required


def test_a_tool_that_gets_an_argument_twice_is_told():
    declared = "[components.cross_entropy]\ncall = { logits = 'logits', targets = 'targets', labels = 'targets' }"
    described = export(call=("logits", "targets", "labels="), kind="function")
    (told,) = bind_tool(TOOLS["cross_entropy"], described, parse_config(declared)).further
    assert "labels = targets" in told.words


def test_a_size_by_a_usual_name_that_is_left_out_is_passed():
    # would hide that it has one head, whatever it is asked for
    construct = bound("construct = { d_model = 'd_model' }", ("d_model", "n_heads=")).construct
    assert construct.named["n_heads"].text == "num_heads"


@pytest.mark.parametrize(
    ("declared", "told"),
    [
        ("call = { x = 'x', mode = \"'right'\" }", ["mode"]),
        ("call = ['x', true]", ["mode"]),
        ("call = { x = 'x', mode = { lookup = 'mypkg:rule' } }", ["mode"]),
        ("call = { x = 'x', mode = 'T // T' }", ["mode"]),
    ],
)
def test_a_constant_in_place_of_a_default_is_told_apart_from_one_that_is_needed(declared, told):
    # would leave unsaid, in grading, that code is right only with it
    found = [one for one in bound(declared, call=("x", "mode=")).further if one.kind == "constants"]
    assert [one.words for one in found] == told
    assert not [one for one in bound(declared, call=("x", "mode")).further if one.kind == "constants"]


def test_a_default_that_is_written_down_is_no_constant_in_its_place():
    described = export(MHA_CONSTRUCT, ("x", "mode="))
    described["call"][1]["default"] = "'right'"
    config = parse_config(MHA + "call = { x = 'x', mode = \"'right'\" }")
    assert bind_export(component("MultiHeadAttention"), described, config, None).further == ()


@pytest.mark.parametrize(("default", "kinds"), [("True", []), ("False", []), ("None", ["computed"])])
def test_a_switch_that_is_neither_true_nor_false_by_default_is_told(default, kinds):
    described = export(LM_CONSTRUCT, ("idx",), generate=("idx", "n", "temperature=", "do_sample="))
    described["methods"]["generate"][3]["default"] = default
    call = 'call = ["ids", "max_new_tokens", { temperature = "temperature", do_sample = "temperature > 0" }]'
    config = parse_config(f"[components.TinyTransformerLM.generate]\n{call}\n")
    found = bind_export(component("TinyTransformerLM"), described, config, None).further
    assert [one.kind for one in found] == kinds


NAMED = "{ d_model = 'd_model', num_heads = 'num_heads', dropout = 'dropout', causal = 'causal' }"
PLACED = (("d_model", "num_heads"), ["dropout", "causal"])


@pytest.mark.parametrize(
    ("declared", "construct", "placed"),
    [
        (NAMED, MHA_CONSTRUCT, PLACED),
        (NAMED, ("*given", "dropout=", "causal="), PLACED),
        (NAMED, ("*given", "**named"), PLACED),
        ("['d_model', 'num_heads', 'dropout', 'causal']", MHA_CONSTRUCT, PLACED),
        ("['d_model', 'num_heads', { dropout = 'dropout', causal = 'causal' }]", MHA_CONSTRUCT, None),
        (NAMED, ("num_heads", "d_model", "dropout=", "causal="), None),
        (NAMED, ("num_heads", "d_model", "*given", "dropout=", "causal="), None),
        ("['num_heads', 'd_model', 'dropout', 'causal']", ("num_heads", "d_model", "dropout=", "causal="), None),
        (NAMED, ("settings=", "d_model=", "num_heads="), None),
        ("{ width = '2 * d_model', heads = 'num_heads' }", ("*given", "**named"), None),
    ],
)
def test_what_the_contract_requires_has_its_places_and_the_rest_its_names(declared, construct, placed):
    # other places are a renaming: such code can't be called as the contract calls it
    found = bound(f"construct = {declared}", construct).by_position.get("construct")
    assert (found and (tuple(value.text for value in found.positional), list(found.named))) == placed


def test_methods_and_tools_have_their_places_too():
    described = export(LM_CONSTRUCT, ("idx",), generate=("*given", "**named"))
    call = "call = { idx = 'ids', n = 'max_new_tokens', temperature = 'temperature' }"
    config = parse_config(f"[components.TinyTransformerLM.generate]\n{call}\n")
    found = bind_export(component("TinyTransformerLM"), described, config, None).by_position["generate"]
    assert [value.text for value in found.positional] == ["ids", "max_new_tokens"]
    config = parse_config("[components.cross_entropy]\ncall = { logits = 'logits', targets = 'targets' }\n")
    described = {**export((), ("logits", "targets")), "kind": "function"}
    (call,) = bind_tool(TOOLS["cross_entropy"], described, config).calls.values()
    assert [value.text for value in call.before[0].positional] == ["logits", "targets"]


@pytest.mark.parametrize(("name", "kinds"), [("steps", ["factors"]), ("max_length", [])])
def test_a_count_that_its_place_names_is_no_other_count(name, kinds):
    # would let a text be one id short: `generate(idx, steps)` that gets max_new_tokens + 1 by position
    described = export(LM_CONSTRUCT, ("idx",), generate=("idx", name, "temperature="))
    call = 'call = ["ids", "max_new_tokens + 1", { temperature = "temperature" }]'
    config = parse_config(f"[components.TinyTransformerLM.generate]\n{call}\n")
    assert [one.kind for one in bind_export(component("TinyTransformerLM"), described, config, None).further] == kinds
