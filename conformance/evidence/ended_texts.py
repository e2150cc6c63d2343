"""Texts that may have ended: what stands up to the end id, and what follows it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from conformkit.conformance.assertions.checks import check, check_equal
from conformkit.spec.decoding import until_end

__all__ = ["check_ended", "leaves_end_out"]


def check_ended(got: Sequence[int], text: Sequence[int], end: int, *, without: bool = False) -> None:
    """Check new ids that may have ended against the whole text: the same up to the end id, then one id at most.

    `without`: the end id itself is left out.
    """
    own = until_end(list(text), end)
    own = own[:-1] if without and own[-1] == end else own
    check_equal(f"the text up to the end id {end}", np.array(got[: len(own)]), np.array(own))
    rest = list(got[len(own) :])
    check(f"after the end id {end} comes {rest}", len(set(rest)) < 2)


def leaves_end_out(got: Sequence[int], text: Sequence[int], end: int) -> bool:
    """Whether new ids are those of the whole text before its end id, and nothing else."""
    own = until_end(list(text), end)
    return own[-1] == end and list(got) == own[:-1]
