"""Sizes a little larger than asked for: equal ones stay equal, larger ones larger, heads divide widths."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from conformkit.conformance.assertions.draws import Draw
from conformkit.conformance.assertions.size_jitter import AS_ASKED

SEEDS = st.integers(0, 1 << 32)


@given(SEEDS, st.integers(1, 8), st.integers(1, 30))
def test_a_width_stays_a_multiple_of_the_number_of_heads(seed, heads, width) -> None:
    found = Draw(seed, "ANY").size_jitter().sizes({"num_heads": heads, "d_model": heads * width})
    assert found["num_heads"] == heads
    assert found["d_model"] % heads == 0
    assert found["d_model"] >= heads * width


@given(SEEDS, st.integers(1, 60), st.integers(1, 60))
def test_order_is_kept_up_to_forty(seed, one, other) -> None:
    length = Draw(seed, "ANY").size_jitter().length
    if one <= other <= 37:
        assert length(one) <= length(other)
    assert length(one) == length(one)
    assert length(one) >= one


@given(SEEDS)
def test_the_smallest_and_the_large_sizes_are_meant(seed) -> None:
    jitter = Draw(seed, "ANY").size_jitter()
    for meant in (1, 2, 41, 300):
        assert jitter.length(meant) == meant
        assert jitter.sizes({"vocab_size": meant, "d_ff": meant}) == {"vocab_size": meant, "d_ff": meant}


def test_seeds_and_clauses_shift_differently_and_clauses_with_sizes_not_at_all() -> None:
    wanted = {"d_ff": 20, "vocab_size": 11, "block_size": 9}
    found = {
        tuple(Draw(seed, name).size_jitter().sizes(wanted).values()) for seed in range(1, 5) for name in ("A", "B")
    }
    assert len(found) > 4
    assert Draw(1, "A", domain={"tokens": (1, 600)}).size_jitter() == AS_ASKED
    assert Draw(0, "A").size_jitter() == AS_ASKED, "the sizes of seed 0 are those that tests are written with"


def test_a_shift_changes_no_number_that_is_drawn() -> None:
    one, other = Draw(5, "ANY"), Draw(5, "ANY")
    one.size_jitter()
    assert (one.values(4) == other.values(4)).all()
