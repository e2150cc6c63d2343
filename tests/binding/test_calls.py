"""Calls with several arrays, read from signatures as people write them."""

from __future__ import annotations

import pytest

from conformkit.conformance.binding.calls import call_of, insisted_on, unread
from conformkit.conformance.binding.signatures import SignatureMismatch
from conformkit.conformance.driver.worker.exports import signature
from conformkit.spec.components import Argument

LAYER = ("x", "memory", "tgt_mask", "memory_mask")
DECODE = ("tgt", "memory", "tgt_mask", "memory_mask")
ATTENTION = ("query", "key", "value", "mask")
MODEL = ("src", "tgt", "src_mask", "tgt_mask")


def ours(function, inputs):
    """Return the value of each of a function's arguments."""
    described = signature(function)
    call = call_of(described, inputs)
    names = [p["name"] for p in described]
    positional = dict(zip(names, (a.text for a in call.positional), strict=False))
    return {**positional, **{name: a.text for name, a in call.named.items()}}


CASES = {
    "annotated layer": (
        lambda x, memory, src_mask, tgt_mask: 0, LAYER,
        {"x": "x", "memory": "memory", "src_mask": "memory_mask", "tgt_mask": "tgt_mask"},
    ),
    "annotated decode": (
        lambda memory, src_mask, tgt, tgt_mask: 0, DECODE,
        {"memory": "memory", "src_mask": "memory_mask", "tgt": "tgt", "tgt_mask": "tgt_mask"},
    ),
    "names that say nothing": (lambda a, b: 0, LAYER, {"a": "x", "b": "memory"}),
    "memory first": (lambda memory, h: 0, LAYER, {"memory": "memory", "h": "x"}),
    "values first": (
        lambda values, keys, query, mask: 0, ATTENTION,
        {"values": "value", "keys": "key", "query": "query", "mask": "mask"},
    ),
    "one mask, whatever it is called": (
        lambda x, padding_mask=None: 0, ("x", "mask"), {"x": "x", "padding_mask": "mask"},
    ),
    "the memory's mask of a model": (
        lambda src, tgt, src_mask=None, tgt_mask=None, memory_mask=None: 0, MODEL,
        {"src": "src", "tgt": "tgt", "src_mask": "src_mask", "tgt_mask": "tgt_mask", "memory_mask": "memory_mask"},
    ),
    "padding by its own name": (
        lambda tgt, memory, tgt_mask=None, src_padding=None: 0, DECODE,
        {"tgt": "tgt", "memory": "memory", "tgt_mask": "tgt_mask", "src_padding": "src_padding"},
    ),
    "torch's encoder layer": (
        lambda src, src_mask=None, src_key_padding_mask=None, is_causal=False: 0, ("x", "mask"),
        {"src": "x", "src_key_padding_mask": "padding"},
    ),
    "torch's decoder layer": (
        lambda tgt, memory, tgt_mask=None, memory_mask=None, tgt_key_padding_mask=None, memory_key_padding_mask=None: 0,
        LAYER,
        {"tgt": "x", "memory": "memory", "tgt_mask": "causality", "tgt_key_padding_mask": "tgt_padding",
         "memory_key_padding_mask": "memory_padding"},
    ),
}  # fmt: skip


@pytest.mark.parametrize(("function", "inputs", "want"), CASES.values(), ids=CASES)
def test_arrays_reach_the_arguments_that_mean_them(function, inputs, want):
    assert ours(function, inputs) == want


def test_an_argument_without_a_value_is_refused():
    with pytest.raises(SignatureMismatch):
        call_of(signature(lambda x, memory, cache: 0), LAYER)


def test_an_array_does_not_go_to_a_mask_by_its_place():
    # a decoder-only layer takes no memory; it was called with the memory as its mask
    with pytest.raises(SignatureMismatch, match="does not take memory"):
        call_of(signature(lambda x, mask=None: 0), LAYER)


def test_arguments_without_a_default_are_passed_even_where_there_is_no_mask():
    assert insisted_on(signature(lambda x, mask, other=None: 0)) == {"x", "mask"}


def test_options_are_passed_by_name():
    options = (Argument("max_new_tokens", required=True), Argument("bos_id", required=True), Argument("eos_id"))
    call = call_of(signature(lambda src, max_tokens, sos_idx, eos=None: 0), ("src", "src_mask"), options)
    texts = {name: a.text for name, a in call.named.items()}
    assert texts["sos_idx"] == "bos_id"
    assert texts["eos"] == "eos_id"
    assert texts["max_tokens"] == "max_new_tokens"


FREE = {
    "an unknown name": (lambda tgt, memory, tgt_mask=None, hidden=None: 0, ["hidden"]),
    "a mask that is passed": (lambda tgt, memory, tgt_mask=None, memory_mask=None: 0, []),
    "no mask at all": (lambda tgt, memory: 0, []),
    "a cache, and ids to compare with": (lambda tgt, memory, past_key_values=None, labels=None: 0, []),
    "what is on or off": (lambda tgt, memory, verbose=False, dropout=0.1: 0, []),
}


@pytest.mark.parametrize(("function", "want"), FREE.values(), ids=FREE)
def test_what_may_be_a_mask_and_gets_nothing_is_known(function, want):
    described = signature(function)
    assert [name for name, ours in unread(described, call_of(described, DECODE)).items() if not ours] == want
