"""The public strategies: within bounds, of the right shape, and shrinking towards small sizes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import find, given
from hypothesis import strategies as st

from conformkit.conformance import strategies as cs
from conformkit.spec.clauses import UnknownClauseError

DOMAIN = {"tokens": (1, 600), "d_model": (3, 768)}


@given(cs.sizes(DOMAIN))
def test_sizes_stay_in_their_domain(sizes) -> None:
    assert sizes.keys() == DOMAIN.keys()
    assert all(low <= sizes[name] <= high for name, (low, high) in DOMAIN.items())


def test_sizes_shrink_to_the_threshold_itself() -> None:
    assert find(cs.sizes(DOMAIN), lambda sizes: sizes["tokens"] > 256)["tokens"] == 257


def test_the_domain_of_a_clause_is_the_one_that_it_states() -> None:
    assert cs.domain("MHA-SIZES")["tokens"] == (1, 600)
    assert cs.domain("SDPA-SCALE") == {}
    with pytest.raises(UnknownClauseError):
        cs.domain("MHA-SIZE")


@given(st.data())
def test_arrays_have_the_shape_that_was_asked_for(data) -> None:
    assert data.draw(cs.values(2, 3)).shape == (2, 3)
    ids = data.draw(cs.ids(5, 2, 4))
    assert ids.shape == (2, 4)
    assert set(ids.flat) <= set(range(5))
    mask = data.draw(cs.masks(3, 4))
    assert mask.dtype == np.bool_
    assert mask.any(axis=-1).all()


@given(cs.weights("MultiHeadAttention", {"d_model": 6, "num_heads": 2}))
def test_weights_are_those_of_the_definition(weights) -> None:
    assert {name: array.shape for name, array in weights.items()} == {
        f"{name}.weight": (6, 6) for name in ("q", "k", "v", "out")
    }


def test_what_cannot_be_drawn_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match="tokens: the least size, 5, is above the largest, 4"):
        cs.sizes({"tokens": (5, 4)})
    with pytest.raises(ValueError, match="vocab_size = 0"):
        cs.ids(0, 3)
    with pytest.raises(KeyError):
        cs.weights("Nothing", {})
