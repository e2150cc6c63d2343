"""What settings hold that nobody would pass who knows only the contract."""

from __future__ import annotations

import pytest

from conformkit.conformance.binding.arguments import Arguments, Expression
from conformkit.conformance.binding.config import parse_config
from conformkit.conformance.binding.further import without_constants
from conformkit.conformance.binding.settings import bare, inner_constants, replaced_defaults
from conformkit.conformance.binding.tools import bind_tool
from conformkit.spec.tools import TOOLS

from .test_exports import export

SIGNATURE = export(("d_model", "legacy="), ())["construct"]


def construct(text: str) -> Arguments:
    found = parse_config(f"[components.MultiHeadAttention]\nconstruct = {text}\n").component("MultiHeadAttention")
    assert found.construct is not None
    return found.construct


def kept(text: str) -> list[str]:
    """Return what is left of arguments, as often as something is left out."""
    arguments = construct(text)
    return [
        str(bare(arguments, one.places).template({"d_model": 8, "num_heads": 2})) for one in inner_constants(arguments)
    ]


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ('{ cfg = { d = "d_model", legacy = false } }', "{'cfg': {'d': 8}}"),
        ('{ cfg = { d = "d_model", legacy = "None" } }', "{'cfg': {'d': 8}}"),
        ('{ cfg = { d = "d_model", legacy = "d_model > 0" } }', "{'cfg': {'d': 8}}"),
        ('{ cfg = { d_model = "d_model", legacy = "d_model" } }', "{'cfg': {'d_model': 8}}"),
        ('{ cfg = { d = "d_model", more = { legacy = 1, n = "num_heads" } } }', "{'cfg': {'d': 8}}"),
    ],
)
def test_constants_in_a_dictionary_are_left_out(text, left):
    assert kept(text)[0] == f"([], {left})"


@pytest.mark.parametrize(
    "text", ['["d_model", 3, true]', '{ cfg = { d = "d_model", h = "num_heads" } }', "{ legacy = false }"]
)  # fmt: skip
def test_arguments_themselves_and_sizes_stay(text):
    # what an argument gets in place of its default is known by its signature
    assert inner_constants(construct(text)) == []


def test_constants_of_an_object_are_left_out_at_every_depth_and_its_method_is_not_called():
    more = '{ object = "p:D", arguments = { a = 1 } }'
    text = f'[{{ object = "p:C", arguments = ["d_model", 2, {{ more = {more} }}], method = "exact" }}]'
    first, *_, last = kept(text)
    assert first == "([{'$object': 'p:C', 'args': [8], 'kwargs': {}}], {})"
    assert "'by_class': True" in last


def test_where_all_cannot_be_left_out_all_but_one_are_and_then_each():
    tries = inner_constants(construct("{ cfg = { a = 1, b = 2, c = 3 } }"))
    assert [len(one.places) for one in tries] == [3, 2, 2, 2, 1, 1, 1]
    assert [one.instead for one in tries] == [False] + 6 * [True]


@pytest.mark.parametrize(("default", "found"), [("True", ["legacy"]), ("None", [])])
def test_nothing_is_a_constant_in_place_of_another_default(default, found):
    given = Arguments(named={"legacy": Expression("None")})
    told = [{**one, "default": default} if one["name"] == "legacy" else one for one in SIGNATURE]
    assert [name for _, name, _ in replaced_defaults(given, told)] == found


def test_constants_of_a_tool_are_left_out_if_it_can_be_called_so():
    declared = "[components.cross_entropy]\ncall = { logits = 'logits', targets = 'targets', how = \"'mean'\" }\n"
    config = parse_config(declared)
    described = {**export((), ("logits", "targets", "how=")), "kind": "function"}
    (call,) = bind_tool(TOOLS["cross_entropy"], described, config).calls.values()
    assert ["how" in one.named for one in call.before] == [True]
    (plain,) = without_constants(call.arguments, described["call"])
    assert "how" not in plain.named


def test_settings_are_left_out_as_tables_then_deepest_then_all_but_one_then_each_alone():
    """Would break if what is inside a table that has left were taken out once more, or a try came twice."""
    arguments = construct('{ cfg = { d = "d_model", a = 1, more = { b = 2, n = "num_heads" } } }')
    found = inner_constants(arguments)
    assert [[place[-1] for place in one.places] for one in found] == [
        ["a", "more"], ["a", "b"], ["b"], ["a"], ["more"],
    ]  # fmt: skip
    assert [one.instead for one in found] == [False, True, True, True, True]
    assert found[1].words == "a = 1, b = 2"
