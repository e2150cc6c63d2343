"""Sizes that an implementation's limits and variant allow, near those that a clause asks for."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from typing import Any

from conformkit.conformance.binding.expressions import evaluate
from conformkit.conformance.binding.language import ExpressionError
from conformkit.conformance.binding.limits import Limits
from conformkit.spec.components import Component
from conformkit.spec.variants import Variant

__all__ = ["STANDARD", "NoSizeError", "complete", "nearest_allowed"]

STANDARD: Mapping[str, int] = {
    "d_model": 12, "num_heads": 3, "d_ff": 20, "vocab_size": 11, "num_layers": 2, "block_size": 9, "max_len": 9,
}  # fmt: skip
"""Drawn where a clause doesn't care; no two are equal by accident."""


class NoSizeError(ValueError):
    """The declared limits leave no sizes near what a clause asks for."""


def complete(wanted: Mapping[str, Any], component: Component, variant: Variant, limits: Limits) -> dict[str, Any]:
    """Return all constructor arguments, kv_heads and head_width worked out, as near to what is wanted as may be."""
    names = [a.name for a in component.arguments]
    sizes = {name: wanted.get(name, STANDARD.get(name)) for name in names}
    for argument in component.arguments:
        if sizes[argument.name] is None:
            sizes[argument.name] = argument.default
    for name in names:
        if name not in {"d_model", "num_heads", "causal", "dropout"} and sizes[name] is not None:
            sizes[name] = next(_allowed(name, sizes[name], limits))
    for heads, width in _heads_and_widths(sizes, limits):
        chosen = sizes | {"num_heads": heads, "d_model": width}
        found = _worked_out(_with_dependent(chosen, limits), component, variant)
        if found is not None:
            return found
    raise NoSizeError(f"no sizes near {dict(wanted)} are within the declared limits of {component.name}")


def nearest_allowed(name: str, wanted: int, limits: Limits) -> int:
    """Return the allowed value of one size that is nearest to the wanted one, larger ones first."""
    return next(_allowed(name, wanted, limits))


def _with_dependent(sizes: dict[str, Any], limits: Limits) -> dict[str, Any]:
    """Work out the sizes that are declared to follow from others."""
    for name, limit in limits.sizes.items():
        if limit.equals is not None and name in sizes:
            sizes[name] = int(evaluate(limit.equals, sizes))
    return sizes


def _heads_and_widths(sizes: Mapping[str, Any], limits: Limits) -> Iterator[tuple[Any, Any]]:
    """Yield pairs near the wanted one, heads first: 24 widths for each of 12 numbers of heads."""
    counts: list[int | None] = [None]
    widths: list[int | None] = [None]
    if "num_heads" in sizes:
        counts = list(itertools.islice(_allowed("num_heads", sizes["num_heads"], limits), 12))
    if "d_model" in sizes:
        widths = list(itertools.islice(_allowed("d_model", sizes["d_model"], limits), 24))
    yield from itertools.product(counts, widths)


def _worked_out(sizes: dict[str, Any], component: Component, variant: Variant) -> dict[str, Any] | None:
    if "d_k" in sizes:
        sizes["d_k"] = sizes["d_k"] or sizes["d_model"]
        sizes["d_v"] = sizes["d_v"] or sizes["d_model"]
    if sizes.get("num_heads") is None:
        return {name: value for name, value in sizes.items() if name in {a.name for a in component.arguments}}
    try:
        kv_heads, width = (_whole(e, sizes) for e in (variant.kv_heads, variant.head_width))
    except (ExpressionError, ZeroDivisionError):
        return None
    if kv_heads < 1 or width < 1 or sizes["num_heads"] % kv_heads:
        return None
    if variant.positions == "rotary" and width % 2:
        return None
    return {**sizes, "kv_heads": kv_heads, "head_width": width}


def _whole(expression: str, sizes: Mapping[str, Any]) -> int:
    """Evaluate where `//` leaves no remainder; 0 where it would."""
    exact = evaluate(expression.replace("//", "/"), sizes)
    return int(exact) if float(exact).is_integer() else 0


def _allowed(name: str, wanted: int, limits: Limits) -> Iterator[int]:
    """Yield values that the limit allows: from the wanted one upwards, then downwards."""
    limit = limits.of(name)
    if limit.equals is not None:
        yield wanted
        return
    low, high = max(limit.min or 1, 1), limit.max if limit.max is not None else max(wanted, limit.min or 1) + 64
    step = limit.multiple_of or 1
    fits = [n for n in range(low, high + 1) if n % step == 0]
    if not fits:
        raise NoSizeError(f"the limits of {name} allow no value: min {limit.min}, max {limit.max}, multiple of {step}")
    yield from [n for n in fits if n >= wanted]
    yield from [n for n in reversed(fits) if n < wanted]
