"""Clauses of spec/experts.md."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from conformkit.conformance.assertions.checks import NotApplicable, NotYet, check, check_close, each_of, under
from conformkit.conformance.assertions.draws import Draw
from conformkit.conformance.evidence.neutral_weights import zeros
from conformkit.conformance.evidence.unchosen import with_unchosen
from conformkit.conformance.subject.component import Instance, Subject
from conformkit.conformance.suite.registry import clause
from conformkit.spec.arrays import Array
from conformkit.spec.feed_forward import expert_weights
from conformkit.spec.feed_forward import feed_forward as definition

PREFERRED = 3.0
OTHERS = -0.2
"""The logit of a preferred expert, and by how much those of others fall from 0 on."""
MANY = 400


_NONE = 1e-9
"""A gradient of this size is rounding."""


def inputs(instance: Instance, draw: Draw, batch: int, tokens: int) -> Array:
    """Return drawn positions whose last feature is 1."""
    x = draw.values(batch, instance.subject.tokens(tokens), instance.sizes["d_model"])
    x[..., -1] = 1.0
    return x


def prefer(instance: Instance, *experts: int, by: float = PREFERRED) -> dict[str, Array]:
    """Return a router that gives these experts larger logits than others, where the last feature is 1."""
    router = np.zeros(instance.canonical["router.weight"].shape)
    router[:, -1] = OTHERS * np.arange(len(router))  # all different: code may compare with the k-th largest
    router[list(experts), -1] = by + 0.1 * np.arange(len(experts))
    bias = {name: np.zeros(one.shape) for name, one in instance.canonical.items() if name == "router.bias"}
    return {"router.weight": router, **bias}


def marking(instance: Instance) -> dict[str, Array]:
    """Return weights with which expert e adds its own share to feature e, where the last feature is 1.

    Two hidden units read 1 and -1: σ(1) - σ(-1) = 1 for all activations, and a gate's other branch is 1.
    """
    variant, found = instance.subject.variant, zeros(instance, "")
    found["gate.weight" if variant.gated else "up.weight"][:, :2, -1] = 1.0, -1.0
    if variant.gated:
        found["up.weight"][:, :2, -1] = 1.0 - variant.gate_offset
    each = np.arange(variant.experts)
    found["down.weight"][each, each, 0] = 1.0
    found["down.weight"][each, each, 1] = -1.0
    return found


def marked(feed_forward: Subject, draw: Draw) -> tuple[Array, Array]:
    """Return the share of each expert at each position, (N, E), and the router's logits."""
    experts = feed_forward.variant.experts
    instance = feed_forward.build(d_model=max(12, experts + 1), d_ff=20)
    width = instance.sizes["d_model"]
    if width < experts or instance.sizes["d_ff"] < 2:
        raise NotApplicable.from_sizes(f"{width} features and few units can't show the shares of {experts} experts")
    router = draw.values(*instance.canonical["router.weight"].shape, scale=1.5 / np.sqrt(width))
    x = inputs(instance, draw, 3, 7)
    shares = instance.write({**marking(instance), "router.weight": router})(x)[..., :experts]
    return shares.reshape(-1, experts), (x @ instance.weights["router.weight"].T).reshape(-1, experts)


@clause("MOE-NETWORKS")
def test_each_expert_is_a_network_of_its_own(feed_forward: Subject, draw: Draw) -> None:
    instance = feed_forward.build(d_model=12, d_ff=20).randomize(draw)
    drawn = dict(instance.weights)
    x = inputs(instance, draw, 2, 5)
    for expert in each_of("expert", range(feed_forward.variant.experts)):
        y = instance.write({**_alone(drawn, expert), **prefer(instance, expert)})(x)
        reached = np.abs(y).max(axis=-1) > 1e-9
        count = int((~reached).sum())
        check(
            f"{count} of {reached.size} positions get 0 from expert {expert}, which the router prefers", not count,
            "the other experts give 0",
        )  # fmt: skip
        others = {n: draw.values(*a.shape) for n, a in instance.weights.items() if n.startswith(("gate.", "up."))}
        for name, array in others.items():
            array[expert] = instance.weights[name][expert]
        again = instance.write(others)(x)
        check_close("output after the other experts' first maps changed", again, y, feed_forward.tolerance())


@clause("MOE-CHOICE")
def test_each_position_uses_the_experts_with_the_largest_logits(feed_forward: Subject, draw: Draw) -> None:
    shares, logits = marked(feed_forward, draw)
    wanted = expert_weights(logits, feed_forward.variant) > 0.0
    used = np.abs(shares) > 1e-6
    for position, (one, want, own) in enumerate(zip(used, wanted, logits, strict=True)):
        if own[want].min() - own[~want].max(initial=-np.inf) < feed_forward.no_finer(0.0):
            continue  # in half precision either of the two may be chosen
        listing = ", ".join(f"{logit:.3g}" for logit in own)
        check(
            f"position {position} uses {_listed(one)}, expected {_listed(want)}", bool((one == want).all()),
            f"logits {listing}",
        )  # fmt: skip


@clause("MOE-SHARES")
def test_outputs_are_weighted_by_the_softmax(feed_forward: Subject, draw: Draw) -> None:
    shares, logits = marked(feed_forward, draw)
    wanted = expert_weights(logits, feed_forward.variant)
    under(f"shares add up to {shares[0].sum():.3g}, expected {wanted[0].sum():.3g}, at the first position")
    check_close("share of each expert at each position", shares, wanted, feed_forward.tolerance())
    instance = feed_forward.build(d_model=12, d_ff=20).randomize(draw)
    instance.write(_alone(dict(instance.weights), 0))
    x = inputs(instance, draw, 2, 5)
    once, other = (instance.write(prefer(instance, 0, by=by))(x) for by in (PREFERRED, 1.0))
    one, two = (_share_of_first(feed_forward, by) for by in (PREFERRED, 1.0))
    sentence = (
        f"output of an expert with share {one:.3g}, compared with {one / two:.3g} times that with share {two:.3g},"
    )
    check_close(sentence, once, one / two * other, feed_forward.tolerance(2))


@clause("MOE-BIAS")
def test_biases_choose_experts_and_weigh_them(feed_forward: Subject, draw: Draw) -> None:
    experts = feed_forward.variant.experts
    instance = feed_forward.build(d_model=max(12, experts + 1), d_ff=20)
    width = instance.sizes["d_model"]
    if width < experts or instance.sizes["d_ff"] < 2:
        raise NotApplicable.from_sizes(f"{width} features and few units can't show the shares of {experts} experts")
    drawn = draw.values(experts)
    x = inputs(instance, draw, 2, 5)
    for bias in (drawn, -drawn):  # equal products may choose the right experts by chance, once
        shares = instance.write({**marking(instance), "router.bias": bias})(x)[..., :experts]
        wanted = np.broadcast_to(expert_weights(bias, feed_forward.variant), shares.shape)
        check_close("share of each expert, from biases alone,", shares, wanted, feed_forward.tolerance())


@clause("MOE-SHARED")
def test_the_shared_expert_is_added_as_it_is(feed_forward: Subject, draw: Draw) -> None:
    instance = feed_forward.build(d_model=12, d_ff=20)
    weights = {**zeros(instance, ""), "router.weight": draw.values(*instance.canonical["router.weight"].shape)}
    weights["shared.gate.weight" if "shared.gate.weight" in weights else "shared.up.weight"][:2, -1] = 1.0, -1.0
    if "shared.gate.weight" in weights:
        weights["shared.up.weight"][:2, -1] = 1.0 - feed_forward.variant.gate_offset
    weights["shared.down.weight"][0, :2] = 1.0, -1.0
    y = instance.write(weights)(inputs(instance, draw, 2, 5))
    want = np.zeros_like(y)
    want[..., 0] = 1.0
    check_close("output of a shared expert that gives 1, where the others give 0,", y, want, feed_forward.tolerance())


@clause("MOE-NONE-DROPPED")
def test_an_expert_serves_all_positions_that_choose_it(feed_forward: Subject, draw: Draw) -> None:
    variant = feed_forward.variant
    instance = feed_forward.build(d_model=12, d_ff=20).randomize(draw)
    instance.write(prefer(instance, *range(variant.experts_active)))
    x = inputs(instance, draw, 1, MANY)
    together, length = instance(x), x.shape[1]
    shortest = feed_forward.tokens(1)
    for first in each_of("first", sorted({0, (length - shortest) // 2, length - shortest})):
        part = slice(first, first + shortest)
        under(f"{length} positions choose the same experts")
        check_close("output", together[:, part], instance(x[:, part]), feed_forward.tolerance())


@clause("MOE-ROUTER-LEARNS")
def test_the_router_gets_its_gradient(feed_forward: Subject, draw: Draw) -> None:
    instance = feed_forward.build(d_model=12, d_ff=20).randomize(draw)
    x = inputs(instance, draw, 2, 5)
    cotangent = draw.values(*x.shape)
    gradients = instance.vjp(x, cotangent=cotangent).parameters
    if all(gradient is None for gradient in gradients.values()):
        raise NotYet("FFN-GRAD-ALL")
    reached = with_unchosen(instance, gradients)
    given = {name: gradient for name, gradient in reached.items() if gradient is not None}
    found = instance.subject.bound.to_canonical(given, instance.sizes)["router.weight"]
    wanted = _router_gradient(instance, x, cotangent)
    check("no gradient reaches the router", bool(np.abs(found).max() > _NONE))
    check_close("the gradient of the router", found, wanted, feed_forward.tolerance(4))


def _router_gradient(instance: Instance, x: Array, cotangent: Array) -> Array:
    """Return Σ_t ∂L/∂z_t ⊗ x_t with ∂L/∂z_e = p_e (s_e - Σ_j g_j s_j), s_e what expert e's output adds to L.

    p is the softmax over the chosen experts, or over all; g is p where an expert is chosen, else 0; so is s.
    """
    variant, weights = instance.subject.variant, instance.weights
    logits = x @ weights["router.weight"].T + weights.get("router.bias", 0.0)
    share = expert_weights(logits, variant)
    parts = np.exp(logits - logits.max(axis=-1, keepdims=True))
    entries = share if variant.expert_weights == "selected" else parts / parts.sum(axis=-1, keepdims=True)
    own = [name for name in weights if not name.startswith(("router.", "shared."))]
    outputs = [
        definition({name: weights[name][expert] for name in own}, x, variant=variant.but(experts=0))
        for expert in range(variant.experts)
    ]
    added = np.stack([(cotangent * given).sum(axis=-1) for given in outputs], axis=-1) * (share > 0.0)  # (B, T, E)
    slope = entries * (added - (share * added).sum(axis=-1, keepdims=True))
    return np.asarray(np.einsum("bte,btd->ed", slope, x))


def _alone(drawn: Mapping[str, Array], expert: int) -> dict[str, Array]:
    """Return last maps with which all experts but one give 0, the shared one too."""
    down = {n: np.zeros_like(a) for n, a in drawn.items() if "down." in n}
    for name in (n for n in down if n.startswith("down.")):
        down[name][expert] = drawn[name][expert]
    return down


def _share_of_first(feed_forward: Subject, by: float) -> float:
    """Return the share of an expert whose logit is this, see `prefer`."""
    logits = OTHERS * np.arange(float(feed_forward.variant.experts))
    logits[0] = by
    return float(expert_weights(logits, feed_forward.variant)[0])


def _listed(used: Array) -> str:
    numbers = [str(number) for number in np.flatnonzero(used)]
    return f"experts {', '.join(numbers)}" if numbers else "no expert"
