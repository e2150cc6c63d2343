"""Clauses of spec/qk_norm.md."""

from __future__ import annotations

from conformkit.conformance.assertions.checks import NotApplicable, check_close, check_differs, each_of, under
from conformkit.conformance.assertions.draws import Draw
from conformkit.conformance.evidence.rows import drawn, output
from conformkit.conformance.subject.component import Instance, Subject
from conformkit.conformance.suite.registry import clause

LONG = 2.0
"""Longer queries, in which ε changes the output by 1e-5; without a norm, several keys still have some weight."""
EPS = 1e-3


def prepared(multi_head: Subject, draw: Draw, heads: int = 3) -> Instance:
    """Return an instance whose queries and keys are long, and have no biases."""
    instance = multi_head.build(d_model=12, num_heads=heads).randomize(draw)
    long = {name: LONG * instance.weights[name] for name in ("q.weight", "k.weight")}
    none = {name: 0.0 * instance.weights[name] for name in ("q.bias", "k.bias") if name in instance.weights}
    return instance.write(long | none)


def allowed(multi_head: Subject) -> float:
    return max(EPS, multi_head.tolerance())


@clause("QKN-LENGTH")
def test_longer_queries_and_keys_give_the_same_output(multi_head: Subject, draw: Draw) -> None:
    instance = prepared(multi_head, draw)
    x = drawn(instance, draw, 2, 5)
    own, before = instance.weights, output(instance, x)
    for name in each_of("name", ["q.weight", "k.weight"]):
        after = output(instance.write(own | {name: 8.0 * own[name]}), x)
        check_close(f"output for {name} times 8", after, before, allowed(multi_head))


@clause("QKN-PER-HEAD")
def test_one_heads_length_matters_only_where_all_are_normalized_together(multi_head: Subject, draw: Draw) -> None:
    instance = prepared(multi_head, draw)
    if instance.sizes["num_heads"] < 2:
        raise NotApplicable.from_sizes("it has a single head")
    x = drawn(instance, draw, 2, 5)
    before, longer = output(instance, x), instance.weights["q.weight"].copy()
    longer[: instance.sizes["head_width"]] *= 8.0
    after = output(instance.write({"q.weight": longer}), x)
    under("the rows of head 0 of q.weight times 8")
    if multi_head.variant.qk_norm == "heads":
        check_close("output", after, before, allowed(multi_head))
    else:
        check_differs("output", after, before, at_least=1e-3)


@clause("QKN-OWN-WEIGHTS")
def test_queries_and_keys_have_norms_of_their_own_and_values_none(multi_head: Subject, draw: Draw) -> None:
    instance = multi_head.build(d_model=12, num_heads=3).randomize(draw)
    instance.write({n: 0.0 * a for n, a in instance.weights.items() if n in {"v.bias", "out.bias"}})
    x = drawn(instance, draw, 2, 5)
    own, before = instance.weights, output(instance, x)
    for name in each_of("name", [name for name in ("q_norm.weight", "k_norm.weight") if name in own]):
        changed = own | {name: draw.uniform(*own[name].shape, low=1.5, high=3.0)}
        check_differs(f"output for another {name}", output(instance.write(changed), x), before, at_least=1e-4)
    doubled = output(instance.write(own | {"v.weight": 2.0 * own["v.weight"]}), x)
    check_close("output for 2 Wv", doubled, 2.0 * before, multi_head.tolerance())


@clause("QKN-ORACLE")
def test_the_output_is_the_definitions(multi_head: Subject, draw: Draw) -> None:
    for heads in each_of("heads", [3, 2, 1]):
        instance = multi_head.build(d_model=12, num_heads=heads).randomize(draw)
        gammas = {n: a.shape for n, a in instance.weights.items() if "_norm." in n}
        instance.write({name: draw.uniform(*shape, low=0.5, high=2.0) for name, shape in gammas.items()})
        x = drawn(instance, draw, 2, 6)
        check_close("output", output(instance, x), instance.expected(x), multi_head.tolerance())
        instance.write({name: 1e-3 * instance.weights[name] for name in ("q.weight", "k.weight")})
        under("short queries and keys, which show ε")
        check_close("output", output(instance, x), instance.expected(x), multi_head.tolerance(4))
