"""Which rows an output depends on is said where that has a usual cause."""

from __future__ import annotations

import numpy as np
import pytest

from conformkit.conformance.assertions.checks import ClauseFailure
from conformkit.conformance.evidence.dependence import check_moves

LATER = np.triu(np.ones((4, 4)))
BEFORE = "each depends on what stands at its own place and before it, as behind a causal mask"


@pytest.mark.parametrize(
    ("by", "said"),
    [
        (LATER, f"output 0 does not depend on id 1: {BEFORE}"),
        (LATER.T, f"output 1 does not depend on id 0: {BEFORE.replace('before', 'after')} that is transposed"),
        (np.eye(4), "output 1 does not depend on id 0: each depends on its own place alone"),
        (1 - np.eye(4), "output 0 does not depend on id 0: each depends on other places alone, not on its own"),
        (np.where(np.arange(16).reshape(4, 4) == 7, 0, 1), "output 3 does not depend on id 1"),
        (LATER[:3], "output 0 does not depend on id 1"),
    ],
    ids=["causal", "transposed", "alone", "not-its-own", "one-pair", "two-sides"],
)
def test_a_pattern_is_said_with_the_first_pair(by: np.ndarray, said: str) -> None:
    """An encoder behind a causal mask was told by one pair of numbers, which any mistake may give."""
    with pytest.raises(ClauseFailure) as failed:
        check_moves("id", by)
    assert failed.value.message == said
    check_moves("id", np.ones((4, 4)))
