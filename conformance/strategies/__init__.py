"""Hypothesis strategies for sizes, numbers, ids, masks and weights, as the suite draws them.

For tests of your own, and behind `conform run --thorough`. Sizes shrink; numbers come from a seed, so that a large
array costs hypothesis no more than a small one:

    from hypothesis import given
    from conformkit.conformance import strategies as cs

    @given(cs.sizes({"tokens": (1, 600), "d_model": (1, 768)}).flatmap(lambda s: cs.values(s["tokens"], s["d_model"])))
    def test_my_norm_keeps_shapes(x): ...
"""

from conformkit.conformance.strategies.arrays import ids, masks, values, weights
from conformkit.conformance.strategies.sizes import domain, sizes

__all__ = ["domain", "ids", "masks", "sizes", "values", "weights"]
