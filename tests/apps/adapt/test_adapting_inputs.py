"""conform adapt on arguments that only a trial explains: masks of any name, other orders, positions, what is read."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from conformkit.conformance.apps.adapt.adapt import draft
from conformkit.conformance.binding.config import Config
from conformkit.conformance.discovery.calling import Call, call_of, numbered
from conformkit.conformance.discovery.items import Item
from conformkit.conformance.discovery.passed_weights import takes_weights, weighted
from conformkit.conformance.engine.request import RunRequest
from conformkit.spec.components import component

ATTENTION = '''
    import numpy as np

    def attend({order}, {mask}=None, note=None):
        """{says}"""
        scores = Q @ np.swapaxes(K, -1, -2) / np.sqrt(Q.shape[-1])
        if {mask} is not None:
            scores = np.where(np.asarray({mask}) == {hides}, -np.inf, scores)
        weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
        return weights / weights.sum(axis=-1, keepdims=True) @ V
'''


def attention(folder: Path, **code: object) -> tuple[dict[str, object], list[tuple[str, str]]]:
    """Return the drafted table of the function, and the lines that are only offered."""
    path = folder / "theirs.py"
    usual = {"order": "Q, K, V", "mask": "mask", "says": "", "hides": 0}
    path.write_text(textwrap.dedent(ATTENTION).format(**usual | code), encoding="utf-8")
    found = draft(RunRequest(impl=str(path), config=Config()), {})
    proposal = next(p for p in found.proposals if p.component == "ScaledDotProductAttention")
    return proposal.table, proposal.offered


def function(name: str, *required: str) -> Item:
    """Return a function with these arguments."""
    form = {"kind": "positional", "required": True, "default": None}
    return Item(f"theirs:{name}", "function", None, [{"name": argument, **form} for argument in required], None)


@pytest.mark.parametrize(("hides", "true"), [(1, "hide"), (0, "attend")], ids=["one-hides", "one-shows"])
def test_an_argument_of_any_name_that_hides_as_a_mask_does_is_one(tmp_path, hides, true):
    table, _ = attention(tmp_path, mask="veil", hides=hides)
    assert table["call"][-1] == {"veil": "mask"}
    assert table["mask"].get("true", "attend") == true


def test_queries_keys_and_values_are_passed_in_the_order_of_the_function(tmp_path):
    table, _ = attention(tmp_path, order="K, Q, V")
    assert table["call"][:3] == ["k", "q", "v"]


def test_a_mask_whose_author_says_that_true_hides_is_taken_so(tmp_path):
    table, offered = attention(tmp_path, says="True marks pairs that are NOT allowed.", hides=1)
    assert (table["mask"]["true"], offered) == ("hide", [])


def test_a_mask_that_hides_and_of_which_nothing_is_said_is_left_as_a_mistake(tmp_path):
    table, offered = attention(tmp_path, says="The mask is True where a query may look, False is hidden.", hides=1)
    assert "mask" not in table
    assert offered


@pytest.mark.parametrize(
    ("name", "required", "read"),
    [
        ("multihead_self_attention", ("in_features", "num_heads", "q_proj_weight", "o_proj_weight"), "in_features"),
        ("run_attention", ("d_model", "num_heads", "q_proj_weight", "o_proj_weight", "in_features"), "in_features"),
    ],
    ids=["first", "last-beside-a-width"],
)
def test_what_a_function_with_weights_reads_is_told_from_sizes_and_weights(name, required, read):
    part, item = component("MultiHeadAttention"), function(name, *required)
    assert takes_weights(part, item)
    found = next(weighted(part, item, [item]))
    assert found.call.named[read] == "x"
    assert set(found.parameters) == {"q_proj_weight", "o_proj_weight"}


def test_positions_that_a_call_needs_are_tried_for_all_texts_and_for_each():
    call = call_of(component("TransformerBlock"), function("forward", "x", "positions").call)
    assert [each.named["positions"] for each in numbered(call)] == ["positions", "position_ids"]
    assert list(numbered(Call(("x",)))) == [Call(("x",))]
