"""How a method that generates is called, by the names of its arguments."""

from __future__ import annotations

from typing import Any

import pytest

from conformkit.conformance.discovery import completing
from conformkit.conformance.discovery.generation import _cuts_off, _greedy_ways, _may_write, _table
from conformkit.conformance.discovery.tools.roles import ROLES
from conformkit.conformance.discovery.tools.tables import passed
from conformkit.spec.tools import FUNCTION, TOOLS


def signature(text: str) -> list[dict[str, Any]]:
    """Return `ids, n=3, *, top_k=None` as it is listed."""
    found, kind = [], "positional"
    for part in text.split(", "):
        name, _, default = part.partition("=")
        if name == "*":
            kind = "keyword"
        else:
            described = {"name": name, "kind": kind, "positional_only": False, "required": not default}
            found.append({**described, "default": default or None})
    return found


@pytest.mark.parametrize(
    ("arguments", "free", "call", "options"),
    [
        ("idx, max_new_tokens", False, ["ids", {"max_new_tokens": "N"}], []),
        ("prompt, steps=10, *, rng=None", False, ["ids", {"steps": "N"}], []),
        ("prompt, how_long", False, ["ids", {"how_long": "N"}], []),
        ("prompt, how_long, width", False, None, None),
        ("prompt, how_long, context_length", False, ["ids", {"how_long": "N", "context_length": "block_size"}], []),
        ("prompt, n, mystery", False, None, None),
        ("prompt, n, mystery=3", False, ["ids", {"n": "N"}], []),
        ("prompt, temperature", False, None, None),
        ("prompt", False, None, None),
        ("model, prompt, n", True, ["model", "ids", {"n": "N"}], []),
        ("thing, prompt, n", True, None, None),
        ("model", True, None, None),
        ("prompt, n, temperature=1.0, top_k=None", False,
         ["ids", {"n": "N", "temperature": "temperature", "top_k": "top_k"}], ["temperature", "top_k"]),
        ("prompt, n, top_k=50, top_p=0.9", False,
         ["ids", {"n": "N", "top_k": "top_k if top_k is not None else vocab_size",
                  "top_p": "top_p if top_p is not None else 1.0"}], ["top_k", "top_p"]),
        ("prompt, n, filter_thres=0.9", False, ["ids", {"n": "N", "filter_thres": 0.0}], []),
        ("ids, generation_config", False,
         ["ids", {"max_new_tokens": "max_new_tokens", "do_sample": True, "temperature": "temperature",
                  "top_k": "0 if top_k is None else top_k", "top_p": "1.0 if top_p is None else top_p",
                  "use_cache": False}], ["temperature", "top_k", "top_p"]),
    ],
)  # fmt: skip
def test_a_call_is_written_by_the_names_of_its_arguments(arguments: str, free: bool, call: Any, options: Any) -> None:
    """Would break if a count were missed, an option left on, or an argument passed that nobody knows."""
    found = _table("m:G.generate", signature(arguments), "N", free=free)
    assert found == (call and {"path": "m:G.generate", "call": call, "options": options})


@pytest.mark.parametrize(
    ("named", "arguments", "greedy"),
    [
        ({"n": "N"}, "ids, n", [{}]),
        ({"n": "N", "t": "temperature"}, "ids, n, t", [None]),
        ({"n": "N", "k": "top_k"}, "ids, n, k", [{"k": 1}]),
        ({"n": "N", "t": "temperature", "k": "top_k"}, "ids, n, t, k", [None, {"t": 1.0, "k": 1}]),
        ({"n": "N", "t": "temperature"}, "ids, n, t, do_sample=False", [{"do_sample": False, "t": 1.0}]),
        ({"n": "N"}, "ids, n, greedy=True", [{"greedy": True}]),
        ({"n": "N", "sample": True, "t": "temperature"}, "ids, n, sample, t", [{"sample": False}]),
    ],
)
def test_greedy_text_is_asked_for_by_a_switch_or_by_the_options(named: Any, arguments: str, greedy: Any) -> None:
    ways = list(_greedy_ways({"path": "p", "call": ["ids", named]}, signature(arguments)))
    assert [way.get("greedy") for way in ways] == greedy
    switches = {"do_sample": True, "greedy": False, "sample": True}
    for way in ways:
        assert all(way["call"][-1].get(name, on) is on for name, on in switches.items())
        assert {name: way["call"][-1][name] for name in named if name != "sample"} == {
            name: ours for name, ours in named.items() if name != "sample"
        }


@pytest.mark.parametrize(
    ("name", "arguments", "may"),
    [
        ("generate", "ids", True), ("sample_text", "ids", True), ("decode", "ids", True), ("forward", "ids", False),
        ("roll", "ids, temperature=1.0", True), ("roll", "ids, n", False),
    ],
)  # fmt: skip
def test_a_name_or_a_temperature_says_that_text_is_written(name: str, arguments: str, may: bool) -> None:
    assert _may_write(name, signature(arguments)) is may
    assert _may_write(name, None) is (may and name != "roll")


@pytest.mark.parametrize(
    ("argument", "cuts"),
    [("top_k=50", True), ("top_k=None", False), ("top_p=0.9", True), ("top_k", False), ("temperature=0.7", False)],
)
def test_an_option_that_is_left_out_may_still_cut_off(argument: str, cuts: bool) -> None:
    assert _cuts_off(signature(argument)[0]) is cuts


@pytest.mark.parametrize(
    ("arguments", "call", "sure"),
    [
        ("logits, targets", {"logits": "logits", "targets": "targets"}, True),
        ("a, b", {"a": "logits", "b": "targets"}, False),
        ("logits, b", {"logits": "logits", "b": "targets"}, False),
        ("logits, targets, device", {"logits": "logits", "targets": "targets", "device": "'cpu'"}, True),
        ("logits, targets, c", None, None),
        ("logits", None, None),
    ],
)  # fmt: skip
def test_what_a_loss_takes_is_passed_by_name_and_the_rest_in_order(arguments: str, call: Any, sure: Any) -> None:
    """Would break if an argument without a name that says anything made sure tables, or was left out."""
    found = passed(ROLES["cross_entropy"], signature(arguments), TOOLS["cross_entropy"].calls[FUNCTION])
    assert (found and (found.arguments, found.sure)) == (call and (call, sure))


def test_it_is_said_how_doubtful_a_definition_is() -> None:
    assert (
        completing._doubtful("m:Block", "Block")
        == "it is not certain that Block is built and called as it is meant to be"
    )
    assert completing._doubtful("m:Layer", "Block") == "Layer may be Block, or something else"
