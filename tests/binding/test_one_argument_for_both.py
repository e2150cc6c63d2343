"""Cross-attention whose keys and values come from one argument, and tables of masks with omitted keys."""

from __future__ import annotations

from typing import Any

import pytest

from conformkit.conformance.binding.arguments import Expression
from conformkit.conformance.binding.calls import call_of
from conformkit.conformance.binding.config import parse_config
from conformkit.conformance.binding.masks import MaskForm

INPUTS = ("query", "key", "value", "mask")


def signature(text: str) -> list[dict[str, Any]]:
    found = []
    for name in text.split(", "):
        own, _, default = name.partition("=")
        found.append({"name": own, "kind": "positional", "required": not default, "default": None})
    return found


def told(text: str) -> str:
    call = call_of(signature(text), INPUTS)
    positional = [value.text for value in call.positional if isinstance(value, Expression)]
    named = [f"{name}={value.text}" for name, value in call.named.items() if isinstance(value, Expression)]
    return ", ".join([*positional, *sorted(named)])


@pytest.mark.parametrize(
    ("theirs", "call"),
    [
        ("q, k, v, mask=None", "k=key, mask=mask, q=query, v=value"),
        ("x, memory, mask=None", "mask=mask, memory=key, x=query"),
        ("x, context, src_mask", "context=key, src_mask=mask, x=query"),
        ("a, b", "a=query, b=key"),
        ("a, b, c", "a=query, b=key, c=value"),
    ],
)
def test_keys_and_values_may_come_from_one_argument(theirs: str, call: str) -> None:
    assert told(theirs) == call


def test_a_table_about_a_mask_keeps_what_it_leaves_open() -> None:
    told = '[components.Transformer.masks]\nsrc_padding = { true = "attend" }\ncausality = { kind = "float" }'
    masks = parse_config(told).component("Transformer").masks
    assert masks["src_padding"] == MaskForm("bool", "attend", "B T")
    assert masks["causality"] == MaskForm("float", "hide", "T T")
