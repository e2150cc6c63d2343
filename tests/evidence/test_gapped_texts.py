"""A batch whose mask hides ids in front, in the middle and none."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from conformkit.conformance.assertions.checks import NotApplicable
from conformkit.conformance.assertions.draws import Draw
from conformkit.conformance.evidence.encoder_texts import gapped


def instance(longest: int) -> Any:
    sizes = {"vocab_size": 9, "pad_id": 2, "num_segments": 2, "max_len": longest}
    return SimpleNamespace(sizes=sizes, subject=SimpleNamespace(tokens=lambda count: min(count, longest)))


@pytest.mark.parametrize("length", [3, 4, 7])
def test_gaps_are_where_real_ids_stand_on_both_sides(length: int) -> None:
    """Would break if a gap were at an end: a mask that is read as a length would pass."""
    (ids, segments, mask), real = gapped(instance(length), Draw(0, "gaps"))
    assert ids.shape == segments.shape == real.shape == (3, length)
    assert mask.reshape(3, length).tolist() == real.tolist()
    front, middle, none = real.tolist()
    assert front == [False, False, *[True] * (length - 2)]
    assert middle == [place in {0, length - 1} or place % 2 == 0 for place in range(length)]
    assert all(none)
    assert not (ids == 2).any()  # only the mask tells


def test_texts_of_two_ids_have_no_middle() -> None:
    with pytest.raises(NotApplicable):
        gapped(instance(2), Draw(0, "gaps"))
