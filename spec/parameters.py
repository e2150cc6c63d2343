"""Canonical parameters: their axes and sizes, and those of the parts that components are made of."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from conformkit.spec.positional_encoding import first_position
from conformkit.spec.variants import Variant

__all__ = [
    "Parameter", "Sizes", "block_norms", "feed_forward_parameters", "has_bias", "linear_parameters", "matrix",
    "multi_head_parameters", "norm_parameters", "position_parameters", "within",
]  # fmt: skip

Sizes = Mapping[str, Any]
"""Constructor arguments by name (`d_model`, `num_heads`, `causal`, …), and what a variant gives, such as kv_heads."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """A canonical parameter: named axes as in einops, and their sizes in one instance."""

    axes: str
    sizes: Mapping[str, int]

    @property
    def shape(self) -> tuple[int, ...]:
        """The extents: those of a parenthesized group are multiplied."""
        sizes = self.sizes
        return tuple([math.prod([sizes[axis] for axis in group]) for group in _groups(self.axes)])


@lru_cache(maxsize=256)
def _groups(axes: str) -> tuple[tuple[str, ...], ...]:
    return tuple(tuple((group or single).split()) for group, single in re.findall(r"\(([^)]*)\)|(\w+)", axes))


def matrix(out: str, into: str, **sizes: int) -> Parameter:
    """Return a matrix with these axes."""
    return Parameter(f"{out} {into}", sizes)


def linear_parameters(name: str, weight: Parameter, *, bias: bool) -> dict[str, Parameter]:
    """Return the weight, and the bias if there is one, of a linear map."""
    out = re.match(r"\([^)]*\)|\w+", weight.axes)
    assert out
    return {f"{name}.weight": weight} | ({f"{name}.bias": Parameter(out[0], weight.sizes)} if bias else {})


def has_bias(projection: str, variant: Variant) -> bool:
    """Whether the projection of queries (q), keys (k) or values (v) has a bias."""
    return variant.qkv_bias and (projection != "k" or variant.key_bias)


def multi_head_parameters(sizes: Sizes, variant: Variant) -> dict[str, Parameter]:
    """Return the projections of queries, keys, values and of the heads' outputs, and the norms of queries and keys."""
    if variant.has_latent:
        return _latent_parameters(sizes, variant)
    m, width, heads, kv_heads = (sizes[n] for n in ("d_model", "head_width", "num_heads", "kv_heads"))
    found: dict[str, Parameter] = {}
    for name, own in zip("qkv", (heads, kv_heads, kv_heads), strict=True):
        found |= linear_parameters(name, matrix("(h d)", "m", h=own, d=width, m=m), bias=has_bias(name, variant))
    if variant.output_projection:
        found |= linear_parameters("out", matrix("m", "(h d)", h=heads, d=width, m=m), bias=variant.output_bias)
    if variant.output_gate != "none":
        rows = matrix("(h d)", "m", h=heads, d=width, m=m)
        rows = rows if variant.output_gate == "features" else matrix("h", "m", h=heads, m=m)
        found |= linear_parameters("output_gate", rows, bias=variant.qkv_bias)
    if variant.positions == "relative":
        found["relative.weight"] = matrix("p", "h", p=variant.relative_buckets, h=heads)
    if variant.sinks:
        found["sinks.weight"] = Parameter("h", {"h": heads})
    if variant.qk_norm != "none":
        for name, own in (("q_norm", heads), ("k_norm", kv_heads)):
            vector = Parameter("d" if variant.qk_norm == "heads" else "(h d)", {"h": own, "d": width})
            found |= _norm(name, vector, variant)
    return found


def _latent_parameters(sizes: Sizes, variant: Variant) -> dict[str, Parameter]:
    """Return the projections to latents and their norms, those to heads, and that of what the heads give."""
    m, heads, width, latent = (sizes[n] for n in ("d_model", "num_heads", "head_width", "latent"))
    turned, given = (sizes["rotary_width"] if variant.positions == "rotary" else 0), sizes["value_width"]
    found: dict[str, Parameter] = {}
    read = m
    if variant.query_latent != "0":
        read = sizes["query_latent"]
        found |= _to_latent("q_latent", read, m, variant)
    found |= _to_latent("kv_latent", latent, m, variant)
    for name, own, into in (("q", width, read), ("q_rotary", turned, read), ("k", width, latent), ("v", given, latent)):
        if own:
            found[f"{name}.weight"] = matrix("(h d)", "m", h=heads, d=own, m=into)
    if turned:
        found["k_rotary.weight"] = matrix("d", "m", d=turned, m=m)
    return found | linear_parameters("out", matrix("m", "(h d)", h=heads, d=given, m=m), bias=variant.output_bias)


def _to_latent(name: str, width: int, m: int, variant: Variant) -> dict[str, Parameter]:
    """Return the map to a latent, and the latent's norm."""
    norm = _norm(f"{name}_norm", Parameter("d", {"d": width}), variant)
    return {f"{name}.weight": matrix("d", "m", d=width, m=m)} | norm


def feed_forward_parameters(sizes: Sizes, variant: Variant) -> dict[str, Parameter]:
    """Return the linear maps of a feed-forward network, or of all experts, their router and the shared one."""
    if not variant.experts:
        return _network(sizes, variant)
    number = {"e": variant.experts}
    each = {
        name: Parameter(f"e {parameter.axes}", {**number, **parameter.sizes})
        for name, parameter in _network(sizes, variant).items()
    }
    router = linear_parameters("router", matrix("e", "m", m=sizes["d_model"], **number), bias=variant.router_bias)
    return router | each | (within("shared", _network(sizes, variant)) if variant.shared_expert else {})


def _network(sizes: Sizes, variant: Variant) -> dict[str, Parameter]:
    m, f = sizes["d_model"], sizes["d_ff"]
    found: dict[str, Parameter] = {}
    for name in ("gate", "up") if variant.gated else ("up",):
        found |= linear_parameters(name, matrix("f", "m", f=f, m=m), bias=variant.ffn_bias)
    return found | linear_parameters("down", matrix("m", "f", f=f, m=m), bias=variant.ffn_bias)


def norm_parameters(name: str, width: int, variant: Variant) -> dict[str, Parameter]:
    """Return the scale, and the shift if there is one, of a norm."""
    return _norm(name, Parameter("m", {"m": width}), variant)


def block_norms(variant: Variant) -> tuple[str, ...]:
    """Return the names of a block's norms, in the order in which they act."""
    if variant.placement == "sandwich":
        return "norm1", "norm1_after", "norm2", "norm2_after"
    return ("norm1",) if variant.placement == "parallel" else ("norm1", "norm2")


def _norm(name: str, vector: Parameter, variant: Variant) -> dict[str, Parameter]:
    if variant.norm_weight == "none":
        return {}
    return {f"{name}.weight": vector} | ({f"{name}.bias": vector} if variant.shifts else {})


def position_parameters(length: str) -> Callable[[Sizes, Variant], dict[str, Parameter]]:
    """Return the learned table for this number of positions; nothing if positions are not learned."""

    def parameters(sizes: Sizes, variant: Variant) -> dict[str, Parameter]:
        if variant.positions != "learned":
            return {}
        rows = sizes[length] + first_position(variant, sizes)
        return {"positions.weight": matrix("t", "m", t=rows, m=sizes["d_model"])}

    return parameters


def within(prefix: str, parameters: Mapping[str, Parameter]) -> dict[str, Parameter]:
    """Return parameters with their part's name as prefix."""
    return {f"{prefix}.{name}": parameter for name, parameter in parameters.items()}
