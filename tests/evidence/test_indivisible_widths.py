"""Heads that do not divide the width: what is right is refused, or has all numbers of equally wide heads."""

import math
from types import SimpleNamespace

import pytest

from conformkit.conformance.assertions.checks import ClauseFailure
from conformkit.conformance.evidence.indivisible_widths import check_no_feature_is_dropped
from conformkit.spec.components import COMPONENTS
from conformkit.spec.variants import CANONICAL

ATTENTION = COMPONENTS["MultiHeadAttention"]


class Accepting:
    """Attention that accepts sizes, with this many trainable numbers."""

    def __init__(self, numbers: int) -> None:
        self.bound, self.variant = SimpleNamespace(component=ATTENTION), CANONICAL
        self.construct = lambda _: self
        self.count = lambda: numbers

    def __call__(self, _: object) -> None:
        pass


def numbers(sizes: dict[str, int], **changes: int) -> int:
    return sum(math.prod(p.shape) for p in ATTENTION.parameters(sizes | changes, CANONICAL).values())


@pytest.mark.parametrize("heads", [5, 22], ids=["wide", "of-no-width"])
def test_heads_that_are_all_as_narrow_as_they_must_be_drop_nothing(heads):
    """Would break if the number of weights that is wanted were refused: more heads than features are 0 wide."""
    sizes = {"d_model": 12, "num_heads": heads, "kv_heads": heads, "head_width": 12 // heads}
    check_no_feature_is_dropped(Accepting(numbers(sizes)), sizes, None)


def test_heads_cut_from_a_wider_projection_drop_features():
    sizes = {"d_model": 12, "num_heads": 5, "kv_heads": 5, "head_width": 2}
    with pytest.raises(ClauseFailure, match="expected an exception, or the 480 of 5 heads of width 2"):
        check_no_feature_is_dropped(Accepting(4 * 12 * 12), sizes, None)
