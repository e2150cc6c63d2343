"""Sizes of cases: all over a domain, each case cheap, the same for the same seed."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformkit.conformance.assertions.draws import Draw
from conformkit.conformance.assertions.sizes import THRESHOLDS, Coverage, bands, covering, small
from conformkit.spec.clauses import clauses

SIZED = [clause for clause in clauses().values() if clause.sizes]
HEADS: Mapping[str, tuple[int, int]] = {
    "num_heads": (1, 16), "head_width": (1, 256), "tokens": (1, 600), "batch": (1, 64)
}  # fmt: skip
COVERAGES: tuple[Coverage, ...] = ("every band", "some bands", "marks and last bands", "last bands")


def free(_sizes: Mapping[str, int]) -> float:
    return 0.0


@given(st.integers(0, 1 << 32))
def test_at_any_seed_there_is_a_case_beyond_each_mark(seed: int) -> None:
    cases = list(covering(HEADS, Draw(seed, "ANY"), free, 1.0))
    for name, (_, high) in HEADS.items():
        for mark in (mark for mark in THRESHOLDS[name] if mark < high):
            assert any(case[name] > mark for case in cases), f"no {name} above {mark}"
    assert {32, 64, 128} <= {case["head_width"] for case in cases}


@given(st.integers(0, 1 << 32))
def test_the_last_band_is_reached_near_its_end(seed: int) -> None:
    """Or a mistake from T = 590 on would be found at few seeds only."""
    most = {name: max(case[name] for case in covering(HEADS, Draw(seed, "ANY"), free, 1.0)) for name in HEADS}
    assert most["tokens"] >= 580
    assert most["batch"] >= 56


@given(st.integers(0, 1 << 32))
def test_each_batch_that_many_train_with_is_met(seed: int) -> None:
    """Or a mask that is lost at 16 rows alone would pass: 17 to 64 were drawn, 16 never."""
    for coverage in ("every band", "some bands", "some bands and marks", "marks and last bands"):
        batches = {case["batch"] for case in covering(HEADS, Draw(seed, "ANY"), free, 1.0, coverage)}
        assert {8, 16, 32, 64} <= batches
        assert max(batches - {64}) >= 56


@given(st.integers(0, 1 << 32))
def test_one_case_has_the_usual_inner_width(seed: int) -> None:
    domain = {"d_model": (1, 768), "d_ff": (1, 3072), "tokens": (1, 600)}
    cases = list(covering(domain, Draw(seed, "ANY"), free, 1.0))
    assert any(case["d_ff"] == 4 * case["d_model"] > 400 and case["d_model"] % 64 == 0 for case in cases)


@given(st.integers(0, 1 << 32))
def test_one_case_has_as_many_keys_as_queries(seed: int) -> None:
    """Or attention that takes equal lengths for attention within one sequence would be found by chance only."""
    domain = {"tokens": (1, 600), "keys": (1, 600), "batch": (1, 64)}
    assert any(case["tokens"] == case["keys"] > 64 for case in covering(domain, Draw(seed, "ANY"), free, 1.0))


@given(st.integers(0, 1 << 32))
def test_one_case_of_a_model_is_as_wide_as_the_smallest_of_many_well_known_ones(seed: int) -> None:
    """Or a fast path for a width of 768 alone, which drawn sizes do not reach, would go unseen."""
    domain = {**HEADS, "num_layers": (1, 12), "block_size": (1, 1024)}
    cases = list(covering(domain, Draw(seed, "ANY"), free, 1.0, "some bands"))
    assert any((case["num_heads"], case["head_width"], case["num_layers"]) == (12, 64, 1) for case in cases)


@given(st.integers(0, 1 << 32))
def test_one_case_of_a_block_is_wider_than_640_with_an_odd_number_of_heads(seed: int) -> None:
    cases = list(covering({**HEADS, "d_ff": (1, 3072)}, Draw(seed, "ANY"), free, 1.0, "some bands"))
    assert any(case["num_heads"] == 9 and 640 < 9 * case["head_width"] <= 704 for case in cases)


@given(st.integers(0, 1 << 32))
def test_less_coverage_is_fewer_cases_and_reaches_the_last_bands(seed: int) -> None:
    every, some, marks, last = (list(covering(HEADS, Draw(seed, "ANY"), free, 1.0, coverage)) for coverage in COVERAGES)
    assert len(last) < len(some) < len(every)
    assert len(last) < len(marks) < len(every)
    assert {32, 64, 128} <= {case["head_width"] for case in marks}
    for name, (_, high) in HEADS.items():
        for cases in (some, marks, last):
            assert any(case[name] > max(mark for mark in THRESHOLDS[name] if mark < high) for case in cases)


@given(st.integers(0, 1 << 32), st.floats(1e3, 1e8))
def test_only_one_large_size_may_cost_more_than_the_limit(seed: int, limit: float) -> None:
    def cost(sizes: Mapping[str, int]) -> float:
        return float(sizes["tokens"] * sizes["batch"] * sizes["num_heads"] * sizes["head_width"])

    *cases, usual, wide = covering(HEADS, Draw(seed, "ANY"), cost, limit)
    assert usual["num_heads"] >= 8
    assert usual["tokens"] >= 300  # many heads in a long sequence, whatever that costs
    assert wide["num_heads"] * wide["head_width"] == 768
    assert wide["num_heads"] != 12
    for case in cases:
        large = [name for name, size in case.items() if size > small(name, HEADS)[1]]
        assert cost(case) <= limit or len(large) <= 1


@pytest.mark.parametrize("clause", SIZED, ids=lambda clause: clause.id)
def test_every_domain_is_covered_and_never_left(clause) -> None:
    cases = list(covering(clause.sizes, Draw(3, clause.id), free, 1.0))
    assert cases
    for case in cases:
        for name, size in case.items():
            assert clause.sizes[name][0] <= size <= clause.sizes[name][1]


def test_other_seeds_draw_other_sizes_and_the_same_seed_the_same() -> None:
    one, same, other = (list(covering(HEADS, Draw(seed, "ANY"), free, 1.0)) for seed in (0, 0, 7))
    assert one == same
    assert len([case for case in one if case in other]) < len(one) // 3


@pytest.mark.parametrize(
    ("low", "high", "wanted"),
    [
        (1, 600, [(65, 128), (129, 256), (257, 512), (513, 600)]),
        (1, 128, [(65, 128)]),
        (1, 64, []),
        (100, 300, [(129, 256), (257, 300)]),
    ],
)
def test_bands_lie_between_marks_within_the_domain(low, high, wanted) -> None:
    assert bands("block_size", low, high) == wanted


def test_where_fast_paths_are_written_a_mark_is_a_band_of_its_own() -> None:
    assert bands("head_width", 1, 256) == [
        (33, 63), (65, 127), (129, 255), *((size, size) for size in (32, 64, 128, 48, 80, 96, 256))
    ]  # fmt: skip
