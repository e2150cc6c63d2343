"""Clauses of spec/rotary.md."""

from __future__ import annotations

import numpy as np

from conformkit.conformance.assertions.checks import NotApplicable, check, check_close, check_differs, under
from conformkit.conformance.assertions.draws import Draw
from conformkit.conformance.driver.errors import ImplementationFailure
from conformkit.conformance.evidence.neutral_weights import zeros
from conformkit.conformance.evidence.rotation_angles import score_falls
from conformkit.conformance.subject.component import Instance, Subject
from conformkit.conformance.suite.registry import clause
from conformkit.spec.arrays import Array

OFF = 0.1
"""Rounding to bfloat16 was seen to cost 0.02 at most, angles in bfloat16 0.34 at least."""


def told(instance: Instance) -> str:
    """Return the sizes of attention for a failure to name."""
    return f"d_model = {instance.sizes['d_model']}, num_heads = {instance.sizes['num_heads']}"


def build(multi_head: Subject, width: int, heads: int) -> Instance:
    instance = multi_head.build(d_model=width, num_heads=heads)
    under(told(instance))
    return instance


def relative_scores(multi_head: Subject, query: Array, key: Array) -> Array:
    """Return log w[m, n] - log w[m, m], (T, T), w the first head's weights where all tokens have this query and key."""
    return score_falls(build(multi_head, 16, 2), query, key, 6)


@clause("ROPE-NORM")
def test_no_key_outweighs_the_one_in_place(multi_head: Subject, draw: Draw) -> None:
    vector = draw.uniform(16, low=0.8, high=1.6)
    scores = relative_scores(multi_head.as_asked, vector, vector)
    gain = float(np.nanmax(scores))
    check(f"a key elsewhere scores {gain:.3g} more than the equal one in place", gain < multi_head.tolerance())


@clause("ROPE-RELATIVE")
def test_scores_are_constant_along_diagonals(multi_head: Subject, draw: Draw) -> None:
    scores = relative_scores(multi_head, draw.values(16, scale=1.5), draw.values(16, scale=1.5))
    for distance in range(1, min(len(scores), multi_head.variant.window or len(scores))):
        behind = np.diagonal(scores, -distance)  # keys that lie `distance` positions before their query
        # weights of 1e-2 and less are good to so much less, and so are their logarithms
        allowed = 100 * multi_head.tolerance()
        check_close(f"scores at distance {distance}", behind, np.full_like(behind, behind[0]), allowed, scale=1.0)
    instance = build(multi_head, 16, 2).randomize(draw)
    ends = float(instance(draw.values(1, multi_head.tokens(6), instance.sizes["d_model"])).flat[-1])
    under(f"{told(instance)}; with other rows than these the output ends with {ends:.6g}")  # equal keys hide much
    far = 1
    if multi_head.half:  # one small angle may be lost in rounding
        far = min(multi_head.variant.window or len(scores), len(scores)) - 1
    label = "the score at distance 1, compared with that at distance 0,"
    check_differs(label, scores[1 : far + 1, 0], np.zeros(far), at_least=1e-3)


@clause("ROPE-QK-ONLY")
def test_permuted_tokens_leave_a_uniform_mixture_as_it_is(multi_head: Subject, draw: Draw) -> None:
    instance = build(multi_head, 12, 3).randomize(draw)
    instance.write(
        zeros(instance, "q.")
        | zeros(instance, "q_rotary.")
        | zeros(instance, "q_norm.")
        | zeros(instance, "output_gate.")
    )
    x = draw.values(2, multi_head.tokens(6), instance.sizes["d_model"])
    last = instance(x)[:, -1]
    other = -x if multi_head.variant.has_latent else 2 * x  # a latent's norm takes the size away
    check_differs("the last output for another input", instance(other)[:, -1], last, at_least=1e-3)
    length = x.shape[1]
    seen = min(multi_head.variant.window or length, length)  # by the last query
    order = np.r_[: length - seen, length - seen + draw.permutation(seen)]
    permuted = instance(x[:, order])[:, -1]
    check_close("the last output, tokens permuted,", permuted, last, multi_head.tolerance())


@clause("ROPE-PAIRING")
def test_the_output_is_that_of_the_declared_layout(multi_head: Subject, draw: Draw) -> None:
    for width, heads in ((12, 3), (16, 2), (8, 1)):  # with two heads, exponents of D/2 and of a head coincide
        instance = build(multi_head, width, heads).randomize(draw)
        x = draw.values(2, multi_head.tokens(7), instance.sizes["d_model"])
        check_close("output", instance(x), instance.expected(x), multi_head.tolerance())


@clause("ROPE-PRECISION")
def test_late_positions_are_turned_by_their_own_angles_in_bfloat16(multi_head: Subject, draw: Draw) -> None:
    tokens = multi_head.tokens(400)
    if tokens < 300:
        raise NotApplicable.from_sizes("sequences are too short for positions that bfloat16 does not hold")
    try:
        instance = multi_head.build(dtype="bfloat16", d_model=16, num_heads=2).randomize(draw)
        x = draw.values(1, tokens, instance.sizes["d_model"])
        late = instance(x)[:, -100:]
    except ImplementationFailure:
        raise NotApplicable.from_formats("bfloat16, or this many positions, is not accepted") from None
    want = instance.expected(x)[:, -100:]
    share = float(np.sqrt(np.mean((late - want) ** 2) / np.mean(want**2)))
    check(f"the last of {tokens} outputs are off by {share:.2g} of their size, expected {OFF} at most", share <= OFF)
