"""Settings that no class or dictionary of the code names: found by what the code asks for."""

import re

import pytest

from conformkit.conformance.discovery.construction import Construction
from conformkit.conformance.discovery.fitting import limit_rows
from conformkit.conformance.discovery.items import Item
from conformkit.conformance.discovery.proposal import Proposal
from conformkit.conformance.discovery.settings import by_trial
from conformkit.conformance.driver.errors import ImplementationFailure
from conformkit.spec.components import component

NEEDED = ("vocab_size", "hidden_size", "num_attention_heads", "initializer_range")
WAY = Construction({}, settings="cfg")


class Reader:
    """Stands for the worker: code that reads attributes of its settings one after the other."""

    def tried(self, _, table):
        given = table["construct"]["cfg"]
        made = given.get("object", "")
        own = given["arguments"] if made else {}
        for name in NEEDED if made != "bert:tiny_config" else ():
            if name not in own:
                raise ImplementationFailure("exception", "AttributeError", f"'dict' object has no attribute '{name}'")


def items(kind):
    model = Item("bert:BertModel", "class", [{"name": "cfg", "kind": "positional", "required": True}], [], None)
    return [model, Item("bert:tiny_config", "function", None, [{"name": "kw", "kind": kind, "required": False}], None)]


def test_settings_are_what_the_code_asks_for():
    """Catches BERT of a configuration object that is not judged, since no class is its configuration."""
    every = items("positional")
    found = by_trial(component("BertModel"), every[0], every[:1], WAY, None, Reader())
    assert found["cfg"]["object"] == "types:SimpleNamespace"
    assert found["cfg"]["arguments"].items() >= {
        "vocab_size": "vocab_size", "hidden_size": "d_model", "num_attention_heads": "num_heads",
    }.items()  # fmt: skip


@pytest.mark.parametrize(("kind", "used"), [("var_keyword", True), ("positional", False)])
def test_the_rest_is_what_the_author_s_function_gives(kind, used):
    """Catches a deviation of 0 for the first weights, made up where the author's own function has one."""
    every = items(kind)
    found = by_trial(component("BertModel"), every[0], every, WAY, None, Reader())["cfg"]
    assert (found["object"] == "bert:tiny_config") is used
    assert ("initializer_range" in found["arguments"]) is not used
    assert not used or not re.search("None|False", str(found))


class Caches:
    """Stands for the worker: code whose cache has room for some rows, given in its settings."""

    def __init__(self, refuses):
        self.refuses = refuses

    def built(self, _component, _table, _work):
        if self.refuses:
            raise ImplementationFailure("exception", "RuntimeError", "The expanded size of the tensor (256) must match")


@pytest.mark.parametrize(
    ("name", "value", "refuses", "limited"),
    [
        ("max_batch_size", 256, True, True), ("max_batch_size", 256, False, False), ("max_batch_size", 8, True, False),
        ("max_seq_len", 256, True, False),
    ],
    ids=["made-up", "no-limit", "its-own", "another"],
)  # fmt: skip
def test_the_room_that_the_kit_made_up_for_a_cache_limits_the_batch(name, value, refuses, limited):
    """Would break if a cache were red for having no room for 1,500 rows, or rows were left out that it takes."""
    construct = {"args": {"object": "llama:ModelArgs", "arguments": {"dim": "d_model", name: value}}}
    proposal = Proposal("TinyTransformerLM", {"path": "llama:Transformer", "construct": construct})
    limit_rows(proposal, Caches(refuses))
    assert proposal.table.get("limits", {}) == ({"batch": {"max": 256}} if limited else {})
