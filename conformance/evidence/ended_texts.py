"""Texts that may have ended: what stands up to the end id, and what follows it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from conformkit.conformance.assertions.checks import check, check_equal
from conformkit.spec.decoding import until_end

__all__ = ["check_ended"]


def check_ended(got: Sequence[int], text: Sequence[int], end: int) -> None:
    """Check new ids that may have ended against the whole text: the same up to the end id, then one id at most."""
    own = until_end(list(text), end)
    check_equal(f"the text up to the end id {end}", np.array(got[: len(own)]), np.array(own))
    rest = list(got[len(own) :])
    check(f"after the end id {end} comes {rest}", len(set(rest)) < 2)
