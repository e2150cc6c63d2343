"""What is added to scores by distance, read from the weights of heads whose queries are zero."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from conformkit.conformance.assertions.checks import check, check_close, under
from conformkit.conformance.subject.component import Instance
from conformkit.spec.arrays import Array
from conformkit.spec.relative_positions import relative_bias
from conformkit.spec.scores import within

__all__ = ["MARGIN", "check_bias"]

MARGIN = 24
"""Positions beyond the distance from which the last bucket holds."""


def check_bias(
    instance: Instance, table: Array, shown: Callable[[Array, int], Array], tokens: int, least: int, *, one_sided: bool
) -> None:
    """Check that weights differ as the table's entries do, for keys at least so far from their query.

    `shown` returns a head's weights (T, T) with this table, up to one factor; `one_sided`: later keys are hidden.
    """
    variant = instance.subject.variant
    want = relative_bias(table, tokens, variant, causal=one_sided)  # (H, T, T)
    seen = within(tokens, variant.window) if one_sided else np.ones((tokens, tokens), np.bool_)
    far = np.abs(np.arange(tokens)[:, None] - np.arange(tokens)) >= least
    for head in range(instance.sizes["num_heads"]):
        under(f"head {head} of {instance.sizes['num_heads']}")
        got = shown(table, head)
        check("a visible key has no weight", bool((got[seen] > 0).all()))
        fall = np.log(np.where(seen, got, 1.0)) - np.log(np.diagonal(got))[:, None]
        right = want[head] - np.diagonal(want[head])[:, None]
        judged = seen & far
        label = f"scores of {judged.sum()} pairs of positions, above that of the query's own key,"
        check_close(label, fall[judged], right[judged], 100 * instance.subject.tolerance(), scale=1.0)
