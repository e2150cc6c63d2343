"""Clauses of spec/paths_attention.md."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from conformkit.conformance.assertions.checks import NotApplicable, check, check_close, check_repeated, remark, under
from conformkit.conformance.assertions.draws import Draw
from conformkit.conformance.driver.errors import ImplementationFailure
from conformkit.conformance.subject.attention import Attend
from conformkit.conformance.subject.flags import Flagged
from conformkit.conformance.suite.registry import clause
from conformkit.spec.arrays import Array
from conformkit.spec.attention import scaled_dot_product_attention

LENGTHS = ((1, 5), (3, 7), (6, 7), (7, 3))
"""Queries and keys: one cached query, a piece of a text, one key kept, more queries than keys."""
REFUSALS = {"ValueError", "AssertionError", "NotImplementedError"}


@clause("PATH-ATTN-CAUSAL")
def test_the_causal_flag_hides_later_keys(attend: Attend, draw: Draw) -> None:
    call = Flagged(attend, "causal")
    for length in (1, 2, 5):
        q, k, v = draw.qkv(attend.leading(), queries=length, keys=length, scale=1.5)
        want = scaled_dot_product_attention(q, k, v, np.tri(length, dtype=np.bool_))
        under(f"{length} queries and keys, the causal flag on")
        check_close("output", call(q, k, v, causal=True), want, attend.tolerance())
        under(f"{length} queries and keys, the causal flag off")
        check_close("output", call(q, k, v, causal=False), scaled_dot_product_attention(q, k, v), attend.tolerance())


@clause("PATH-ATTN-ALIGNED")
def test_the_causal_flag_is_aligned_in_one_way(attend: Attend, draw: Draw) -> None:
    call = Flagged(attend, "causal")
    declared = call.call_arguments.config.causal_alignment
    every = {lengths: _compared(call, draw, *lengths) for lengths in LENGTHS}
    taken = {lengths: found for lengths, found in every.items() if found}
    if not taken:
        raise NotApplicable("its causal flag takes as many queries as keys only")
    fits = {lengths: {name for name, pair in found.items() if _same(*pair, call)} for lengths, found in taken.items()}
    right = set.intersection(*fits.values())
    if declared is not None:
        check(f"the causal flag is aligned with the other key than the {declared} one", not right or declared in right)
    listing = "; ".join(f"{queries} and {keys}: {_told(held)}" for (queries, keys), held in fits.items())
    nearest = declared or max(("last", "first"), key=lambda name: sum(name in held for held in fits.values()))
    for (queries, keys), found in taken.items():
        under(f"{queries} queries, {keys} keys, aligned with the {nearest} key; what fits where: {listing}")
        check_close("output", *found[nearest], attend.tolerance())
    if declared is None:
        which = "either" if len(right) > 1 else f"the {nearest}"
        remark(f"the causal flag is aligned with {which} key where queries and keys differ in number")


@clause("PATH-ATTN-SCALE")
def test_a_given_scale_takes_the_place_of_the_usual_one(attend: Attend, draw: Draw) -> None:
    call = Flagged(attend, "scale")
    q, k, v = draw.qkv(attend.leading(), queries=5, keys=5)
    earlier = np.tri(5, dtype=np.bool_)
    check_close("output, scale None", call(q, k, v, scale=None), _scaled(q, k, v, None), attend.tolerance())
    for scale in (0.3, 1.0, 1.7):
        under(f"scale {scale}")
        check_close("output", call(q, k, v, scale=scale), _scaled(q, k, v, scale), attend.tolerance())
        if attend.subject.offers("masks"):
            check_close(
                "output with a mask", call(q, k, v, earlier, scale=scale), _scaled(q, k, v, scale, earlier),
                attend.tolerance(),
            )  # fmt: skip
        if call.takes("causal"):
            want = _scaled(q, k, v, scale, earlier)
            check_close(
                "output with the causal flag", call(q, k, v, scale=scale, causal=True), want, attend.tolerance()
            )


@clause("PATH-ATTN-GROUPS")
def test_neighboring_heads_of_queries_share_keys(attend: Attend, draw: Draw) -> None:
    call = Flagged(attend, "grouped")
    if not attend.ranks((2, 6)):
        raise NotApplicable("it takes no inputs (B, H, T, d)")
    for heads, shared in ((6, 2), (6, 3), (4, 1)):
        q, _, _ = draw.qkv((2, heads), queries=3, keys=5, scale=1.5)
        _, k, v = draw.qkv((2, shared), queries=3, keys=5, scale=1.5)
        under(f"{heads} heads of queries, {shared} of keys")
        repeated = (np.repeat(part, heads // shared, axis=1) for part in (k, v))
        check_close(
            "output", call(q, k, v, grouped=True), scaled_dot_product_attention(q, *repeated), attend.tolerance()
        )


@clause("PATH-ATTN-DROPOUT")
def test_a_rate_of_zero_changes_nothing(attend: Attend, draw: Draw) -> None:
    call = Flagged(attend, "dropout")
    q, k, v = draw.qkv(attend.leading(), queries=5, keys=5)
    flags: list[dict[str, Any]] = [{}, {"causal": True}] if call.takes("causal") else [{}]
    for further in flags:
        want = call(q, k, v, seed=1, **further)
        for seed in (1, 2):
            check_repeated("output", call(q, k, v, seed=seed, dropout=0.0, **further), want)


def _compared(call: Flagged, draw: Draw, queries: int, keys: int) -> dict[str, tuple[Array, Array]]:
    """Return output and wanted output for each alignment, where a query sees a key; nothing if the flag refuses."""
    q, k, v = draw.qkv(call.attend.leading(), queries=queries, keys=keys, scale=1.5)
    try:
        out = call(q, k, v, causal=True)
    except ImplementationFailure as failure:
        if failure.base in REFUSALS:
            return {}
        raise
    found = {}
    for alignment, offset in (("first", 0), ("last", keys - queries)):
        seen = np.tri(queries, keys, offset, dtype=np.bool_)
        sees = seen.any(axis=-1)
        found[alignment] = out[..., sees, :], scaled_dot_product_attention(q, k, v, seen)[..., sees, :]
    return found


def _same(got: Array, want: Array, call: Flagged) -> bool:
    return bool(np.allclose(got, want, rtol=0.0, atol=10 * call.attend.tolerance() * np.abs(want).max()))


def _told(held: set[str]) -> str:
    return " or ".join(sorted(held)) or "neither"


def _scaled(q: Array, k: Array, v: Array, scale: float | None, mask: Array | None = None) -> Array:
    factor = 1.0 if scale is None else scale * math.sqrt(q.shape[-1])
    return scaled_dot_product_attention(q * factor, k, v, mask)
