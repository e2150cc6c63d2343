"""Clauses of spec/soft_caps.md."""

from __future__ import annotations

import numpy as np

from conformkit.conformance.assertions.checks import check, check_close, check_finite, check_hidden, each_of, under
from conformkit.conformance.assertions.draws import Draw
from conformkit.conformance.evidence.rows import drawn, output
from conformkit.conformance.subject.component import Instance, Subject
from conformkit.conformance.suite.registry import clause
from conformkit.spec.masks import causal_mask


def with_large_scores(
    multi_head: Subject, draw: Draw, share: float, heads: int = 3, *, causal: bool = True
) -> Instance:
    """Return an instance most of whose scores are about `share` times the cap."""
    instance = multi_head.build(d_model=12, num_heads=heads, causal=causal).randomize(draw)
    x = drawn(instance, draw, 4, 6)
    q, k = (x @ instance.weights[f"{name}.weight"].T for name in "qk")
    depth = instance.sizes["head_width"]
    typical = float(np.sqrt((q**2).mean() * (k**2).mean() * depth))  # of dot products over √depth
    factor = np.sqrt(share * multi_head.variant.score_cap / max(typical, 1e-9))
    return instance.write({f"{name}.weight": factor * instance.weights[f"{name}.weight"] for name in "qk"})


@clause("CAP-SCORES")
def test_scores_are_those_of_the_definition(multi_head: Subject, draw: Draw) -> None:
    for heads, share in each_of("heads, share", [(3, 1.0), (2, 0.2), (1, 3.0)]):
        instance = with_large_scores(multi_head, draw, share, heads)
        x = drawn(instance, draw, 2, 6)
        under(f"scores about {share:g} times the cap")
        allowed = multi_head.tolerance(
            4 + int(multi_head.variant.score_cap)
        )  # an error of a score is one of its weight
        check_close("output", output(instance, x), instance.expected(x), allowed)


@clause("CAP-MASKED")
def test_a_later_position_has_no_weight_behind_a_cap(multi_head: Subject, draw: Draw) -> None:
    instance = with_large_scores(multi_head, draw, 2.0, causal=True)
    x = drawn(instance, draw, 1, 6)
    each = np.arange(x.shape[1])
    changed = np.repeat(x, len(each), axis=0)
    changed[each, each] += 3.0 * draw.values(len(each), x.shape[-1])
    moved = np.abs(output(instance, changed) - output(instance, x)).max(axis=-1)  # (j, t)
    label = "the change of output t when x changes at j > t"
    check_hidden(label, moved.T, causal_mask(len(each)), at_most=10 * multi_head.tolerance())


def with_large_logits(model: Subject, draw: Draw, share: float) -> Instance:
    """Return a model whose head is so large that logits are about `share` times the cap."""
    instance = model.build().randomize(draw)
    if "head.bias" in instance.weights:
        cap = share * model.variant.logit_cap
        instance.write({"head.bias": draw.uniform(*instance.weights["head.bias"].shape, low=-cap, high=cap)})
    name = "norm.weight" if "norm.weight" in instance.weights else "head.weight"
    name = name if name in instance.weights else "embedding.weight"
    factor = share * model.variant.logit_cap / np.sqrt(instance.sizes["d_model"])
    return instance.write({name: factor * instance.weights[name]})


@clause("CAP-LOGITS-BOUND")
def test_no_logit_is_larger_than_the_cap(model: Subject, draw: Draw) -> None:
    cap = model.variant.logit_cap
    instance = with_large_logits(model, draw, 100.0)
    logits = instance(draw.ids(instance.sizes["vocab_size"], 3, 6))
    check_finite("logits", logits)
    largest = float(np.abs(logits).max())
    check(f"the largest logit is {largest:.6g}, expected {cap:g} at most", largest <= cap * (1 + model.tolerance()))
    check(f"the largest logit is {largest:.6g}, expected nearly {cap:g} for large ones", largest >= 0.99 * cap)


@clause("CAP-LOGITS")
def test_logits_are_those_of_the_definition(model: Subject, draw: Draw) -> None:
    for share in each_of("share", [1.0, 0.2]):
        instance = with_large_logits(model, draw, share)
        ids = draw.ids(instance.sizes["vocab_size"], 3, 6)
        under(f"logits about {share:g} times the cap")
        check_close("logits", instance(ids), instance.expected(ids), model.tolerance(5))
