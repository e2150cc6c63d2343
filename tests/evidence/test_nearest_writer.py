"""Sizes of a text to write are the nearest that the limits of an encoder-decoder allow."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from conformkit.conformance.binding.limits import Range, SizeLimits
from conformkit.conformance.binding.sizes import NoSizeError
from conformkit.conformance.evidence.seq2seq_generation import nearest_vocabulary, nearest_writer

WANTED = {"batch": 2, "keys": 9, "tokens": 7, "d_model": 12, "num_heads": 3}


def model(most: int = 100, **limits: Range) -> SimpleNamespace:
    """A model that can be built with any sizes, but for `max_len`."""

    def sizes(**wanted: int) -> dict[str, int]:
        return {**wanted, "max_len": min(wanted["max_len"], most)}

    bound = SimpleNamespace(limits=SizeLimits(limits))
    return SimpleNamespace(bound=bound, variant=SimpleNamespace(shared_embeddings=False), sizes=sizes)


@pytest.mark.parametrize(
    ("limited", "found"),
    [
        (model(), {}),
        (model(most=6), {"keys": 6, "tokens": 5}),  # the begin id takes one of the six
        (model(most=8), {"keys": 8}),
        (model(batch=Range(min=1, max=1)), {"batch": 1}),
        (model(tokens=Range(min=1, max=4)), {"keys": 4, "tokens": 3}),
        (model(tokens=Range(min=5, max=5)), {"keys": 5, "tokens": 4}),
    ],
    ids=["none", "max_len", "max_len-that-fits", "batch", "short", "fixed"],
)
def test_a_target_has_the_begin_id_and_its_new_ones(limited: SimpleNamespace, found: dict[str, int]) -> None:
    """Would break if a text were longer than a model's positions: right code would be asked for what it refuses."""
    assert nearest_writer(limited, WANTED) == {**WANTED, **found}


def test_positions_for_the_begin_id_alone_leave_nothing_to_write() -> None:
    with pytest.raises(NoSizeError):
        nearest_writer(model(most=1), WANTED)
    assert nearest_writer(model(most=2), WANTED)["tokens"] == 1


def test_a_text_longer_than_its_source_sets_the_number_of_positions() -> None:
    assert nearest_writer(model(), {**WANTED, "tokens": 20})["tokens"] == 20


@pytest.mark.parametrize(("top_k", "found"), [(0, 5), (3, 5), (4, 6), (9, 11)])
def test_a_vocabulary_has_room_for_the_pad_and_for_what_top_k_cuts_off(top_k: int, found: int) -> None:
    assert nearest_vocabulary(model(), {"tgt_vocab_size": 5, "top_k": top_k})["tgt_vocab_size"] == found
