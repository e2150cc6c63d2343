"""Weights that make other parts of a block transparent, whatever their activation or heads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from conformkit.conformance.assertions.checks import NotApplicable
from conformkit.conformance.assertions.draws import Draw
from conformkit.conformance.subject.component import Instance, Subject
from conformkit.spec.arrays import Array
from conformkit.spec.block import stream_factor
from conformkit.spec.layers import normalize
from conformkit.spec.variants import Variant

__all__ = [
    "Norm", "NormWindow", "expert_share", "halving", "open_share", "passing",
    "silent_attention", "silent_feed_forward", "zeros",
]  # fmt: skip


NOTHING = 1e4
"""A sink with this number below zero has no weight."""


def open_share(variant: Variant) -> float:
    """Return by what a gate on attention's output multiplies if its weights are 0."""
    return 1.0 if variant.output_gate == "none" else 0.5


BARELY = 1e-13
"""By how much logits of experts that are all alike differ: code may compare them with the k-th largest."""


def zeros(instance: Instance, prefix: str) -> dict[str, Array]:
    """Return zeros for every canonical parameter whose name begins with the prefix; sinks that take nothing.

    The rows of a router differ in the last feature, by less than shows in any result.
    """
    found = {n: np.zeros(p.shape) for n, p in instance.canonical.items() if n.startswith(prefix)}
    for name in (n for n in found if n.endswith("router.weight")):
        found[name][:, -1] = BARELY * np.arange(len(found[name]))
    return {n: array - NOTHING if n.endswith("sinks.weight") else array for n, array in found.items()}


def silent_attention(instance: Instance) -> dict[str, Array]:
    """Return weights of a block with which its attention gives 0."""
    return zeros(instance, "attention.out." if instance.subject.variant.output_projection else "attention.v.")


def silent_feed_forward(instance: Instance) -> dict[str, Array]:
    """Return weights of a block with which its feed-forward network, or each expert, gives 0."""
    found = zeros(instance, "feed_forward.")
    return {name: array for name, array in found.items() if ".down." in name}


def expert_share(variant: Variant) -> float:
    """Return by what experts that are all alike multiply their common output, if the router is 0."""
    return variant.experts_active / variant.experts if variant.experts and variant.expert_weights == "all" else 1.0


def halving(instance: Instance, prefix: str = "") -> dict[str, Array]:
    """Return weights with which a feed-forward network halves its first min(D, F // 2) features and gives 0 for others.

    Each hidden pair reads x and -x: σ(x) - σ(-x) = x, or x |x| for the square of ReLU. Gated, feature i is also
    multiplied by feature i + 1, cyclically, unless 1 is added to that. Experts are all alike, the shared one gives 0.
    """
    found = zeros(instance, prefix)
    width, hidden = found[f"{prefix}down.weight"].shape[-2:]
    pairs = min(width, hidden // 2)
    if not pairs:
        raise NotApplicable.from_sizes("the hidden width is 1, which leaves no pair of units")
    first, eye = "up", np.eye(pairs, width)
    if instance.subject.variant.gated:
        first, other = "gate", np.roll(np.eye(width), 1, axis=1)[:pairs]
        if not instance.subject.variant.gate_offset:
            found[f"{prefix}up.weight"][..., : 2 * pairs, :] = np.concatenate([other, other])
    found[f"{prefix}{first}.weight"][..., : 2 * pairs, :] = np.concatenate([eye, -eye])
    half = np.concatenate([eye, -eye]).T / 2
    found[f"{prefix}down.weight"][..., : 2 * pairs] = half / expert_share(instance.subject.variant)
    return found


def passing(instance: Instance, start: int) -> tuple[dict[str, Array], Array]:
    """Return weights with which attention copies some features of equal tokens, and their new places.

    The features are start … start + n - 1, n what the value heads hold. Query heads that share one: the first gives it.
    """
    if instance.subject.variant.has_latent:
        raise NotApplicable("its attention normalizes a latent, and passes no feature on as it is")
    found = zeros(instance, "attention.")
    heads, own, depth = (instance.sizes[name] for name in ("num_heads", "kv_heads", "head_width"))
    width = instance.sizes["d_model"]
    count = min(own * depth, width - start)
    found["attention.v.weight"][:count] = np.eye(count, width, start)
    read = np.arange(count)
    # of the query heads that a value head serves, the first
    places = read // depth * (heads // own) * depth + read % depth
    if not instance.subject.variant.output_projection:
        return found, places
    found["attention.out.weight"][read, places] = 1.0 / open_share(instance.subject.variant)
    return found, read


@dataclass(frozen=True, slots=True)
class Norm:
    """The input of a norm in the block, (R, D), and its output."""

    read: Array
    given: Array
    scale: float
    """The largest number that rounding acted on."""


class NormWindow:
    """A block whose norm gets chosen rows, and whose output shows the norm's.

    In `pre` attention passes everything on and the feed-forward network is silent: the output minus the input is what
    the first norm gave; so with parallel sublayers. In `post` both are silent: the output is what the second norm gave,
    and the first one's γ and β choose what that reads. Where a norm follows attention, attention chooses that.
    """

    def __init__(
        self, block: Subject, draw: Draw, *, width: int = 12, heads: int = 3, dtype: str | None = None
    ) -> None:
        self.instance = block.build(d_model=width, num_heads=heads, dtype=dtype)
        self.variant = block.variant
        self.post = self.variant.placement in {"post", "deepnorm"}
        inner = "norm1_after" if self.variant.placement == "sandwich" else "norm1"
        self.name = "norm2" if self.post else inner
        self.width: int = self.instance.sizes["d_model"]
        self._start = {**draw.weights(self.instance.canonical), **silent_feed_forward(self.instance)}

    def __call__(
        self, rows: Array, *, spread: float = 1.0, offset: float = 0.0, gamma: Any = 1.0, beta: Any = 0.0
    ) -> Norm:
        """Feed spread · rows + offset to the norm with this γ and β; rows (R, D) should have mean 0 and variance 1."""
        own = {**self._start, **self._parameters(self.name, gamma, beta)}
        if self.post:
            return self._after(own, rows, spread, offset)
        if self.variant.placement in {"sandwich", "output"}:
            return self._behind(own, spread * rows + offset)
        x = self.instance.held(spread * rows + offset)
        return Norm(x, self._before(own, x), max(1.0, float(np.abs(x).max())))

    def expected(self, norm: Norm, kind: str = "") -> Array:
        """Return what the definition gives for what was read, in another kind of norm where one is given."""
        variant = self.variant.but(norm=kind) if kind else self.variant
        return normalize(self.instance.weights, self.name, norm.read, variant)

    def _before(self, own: dict[str, Array], x: Array) -> Array:
        given = np.empty_like(x)
        step = self.instance.sizes["kv_heads"] * self.instance.sizes["head_width"]
        for start in range(0, self.width, step):
            weights, places = passing(self.instance, start)
            self.instance.write({**own, **weights})
            given[:, start : start + len(places)] = (self._output(x) - x)[:, places]
        return given

    def _behind(self, own: dict[str, Array], wanted: Array) -> Norm:
        """Let attention turn the i-th unit vector, or its norm, into the i-th wanted row, as many at once as it can."""
        if not self.variant.output_projection:
            raise NotApplicable("attention has no output projection that could choose what the norm behind it reads")
        passed, _ = passing(self.instance, 0)
        places = np.flatnonzero(passed["attention.out.weight"].any(axis=0))  # where heads have the first features
        other = "norm2" if self.name == "norm1" else "norm2_after"  # it reads zeros, and would give its β
        own = {**own, **self._parameters(other, 1.0, 0.0)}
        own = {**own, **self._parameters("norm1", 1.0, 0.0)} if self.name != "norm1" else own
        step = max(1, min(len(places), self.width - (self.name != "norm1")))
        read, given = np.empty_like(wanted), np.empty_like(wanted)
        for start in range(0, len(wanted), step):
            rows = wanted[start : start + step]
            x = np.eye(len(rows), self.width)
            if self.name != "norm1":
                self.instance.write(own)
                held = normalize(self.instance.weights, "norm1", x, self.variant)[:, : len(places)]
            else:
                held = x[:, : len(places)]
            share = open_share(self.variant)
            passed["attention.out.weight"][:, places] = (np.linalg.pinv(held) @ rows).T / share
            self.instance.write({**own, **passed})
            read[start : start + step] = share * held @ self.instance.weights["attention.out.weight"][:, places].T
            given[start : start + step] = self._output(x) - x
        return Norm(read, given, max(1.0, float(np.abs(read).max())))

    def _after(self, own: dict[str, Array], rows: Array, spread: float, offset: float) -> Norm:
        centers = self.variant.norm == "layernorm"
        if centers and offset and not self.variant.shifts:
            raise NotApplicable("the first norm has no β to choose the second one's input")
        if self.variant.norm_weight == "none" and spread != 1.0:
            raise NotApplicable("the first norm has no γ to choose the second one's input")
        first = self._parameters("norm1", spread, offset if centers else 0.0)
        self.instance.write({**own, **silent_attention(self.instance), **first})
        x = self.instance.held(rows if centers else rows + offset)
        alpha = stream_factor(self.variant, 1)
        read = alpha * normalize(self.instance.weights, "norm1", alpha * x, self.variant)
        return Norm(read, self._output(x), max(1.0, float(np.abs(read).max())))

    def _parameters(self, name: str, gamma: Any, beta: Any) -> dict[str, Array]:
        stored = np.asarray(gamma, np.float64) - (1.0 - self.variant.plain_gamma)
        vectors = {f"{name}.weight": stored, f"{name}.bias": beta}
        vectors = {n: v for n, v in vectors.items() if n in self.instance.canonical}
        return {n: np.broadcast_to(np.asarray(v, np.float64), (self.width,)) for n, v in vectors.items()}

    def _output(self, x: Array) -> Array:
        """Call with one row a sequence, repeated where the implementation wants several positions."""
        length = self.instance.subject.tokens(1)
        return self.instance(np.repeat(x[:, None], length, axis=1))[:, 0]
