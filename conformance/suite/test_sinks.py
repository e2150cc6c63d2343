"""Clauses of spec/sinks.md."""

from __future__ import annotations

import numpy as np

from conformkit.conformance.assertions.checks import check_close, check_finite, each_of, under
from conformkit.conformance.assertions.draws import Draw
from conformkit.conformance.evidence.neutral_weights import NOTHING, open_share, zeros
from conformkit.conformance.evidence.rows import drawn, output
from conformkit.conformance.subject.component import Subject
from conformkit.conformance.suite.registry import clause


@clause("SINK-SHARE")
def test_equal_keys_share_what_the_sink_leaves(multi_head: Subject, draw: Draw) -> None:
    instance = multi_head.build(d_model=12, num_heads=3)
    heads, depth = instance.sizes["num_heads"], instance.sizes["head_width"]
    weights = zeros(instance, "")
    weights["v.weight"][:, 0] = 1.0
    if "out.weight" in weights:
        weights["out.weight"] = np.eye(*weights["out.weight"].shape)
    sinks = draw.uniform(heads, low=-2.0, high=3.0)
    length = multi_head.tokens(5)
    x = np.zeros((1, length, instance.sizes["d_model"]))
    x[..., 0] = 1.0
    got = output(instance.write(weights | {"sinks.weight": sinks}), x)[0]  # (T, D)
    seen = np.arange(1, length + 1) if instance.sizes["causal"] else np.full(length, length)
    seen = np.minimum(seen, multi_head.variant.window or length)
    share = seen[:, None] / (seen[:, None] + np.exp(sinks))  # (T, H)
    want = open_share(multi_head.variant) * np.repeat(share, depth, axis=1)
    width = min(got.shape[1], want.shape[1])
    under(f"sinks {', '.join(f'{sink:.3g}' for sink in sinks)}")
    check_close("the share in each head", got[:, :width], want[:, :width], multi_head.tolerance())


@clause("SINK-NOTHING")
def test_large_sinks_take_everything_and_small_ones_nothing(multi_head: Subject, draw: Draw) -> None:
    instance = multi_head.build(d_model=12, num_heads=3).randomize(draw)
    x, own = drawn(instance, draw, 2, 5), instance.weights
    for sink in each_of("sink", [NOTHING, -NOTHING]):
        sinks = np.full_like(own["sinks.weight"], sink)
        got = output(instance.write(own | {"sinks.weight": sinks}), x)
        check_finite("output", got)
        want = instance.expected(x)
        check_close("the last output", got[:, -1], want[:, -1], multi_head.tolerance(), scale=1.0)
        check_close("output", got, want, multi_head.tolerance(), scale=1.0)


@clause("SINK-ORACLE")
def test_the_output_is_the_definitions(multi_head: Subject, draw: Draw) -> None:
    for heads, causal in each_of("heads, causal", [(3, True), (2, False), (1, True)]):
        instance = multi_head.build(d_model=12, num_heads=heads, causal=causal).randomize(draw)
        instance.write({"sinks.weight": draw.uniform(*instance.weights["sinks.weight"].shape, low=-1.0, high=2.0)})
        x = drawn(instance, draw, 2, 6)
        check_close("output", output(instance, x), instance.expected(x), multi_head.tolerance())
