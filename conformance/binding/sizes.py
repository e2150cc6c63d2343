"""Sizes that an implementation's limits and variant allow, near those that a clause requests."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from typing import Any

from conformkit.conformance.binding.expressions import evaluate
from conformkit.conformance.binding.language import ExpressionError
from conformkit.conformance.binding.limits import SizeLimits
from conformkit.spec.components import Component
from conformkit.spec.rotary import turning_width, turns_whole_pairs
from conformkit.spec.variants import LATENTS, Variant

__all__ = [
    "DERIVED", "STANDARD", "LimitWithoutValue", "NoSizeError", "complete", "completed", "derived", "derived_names",
    "nearest_allowed", "within",
]  # fmt: skip

STANDARD: Mapping[str, int] = {
    "d_model": 12, "num_heads": 3, "d_ff": 20, "vocab_size": 11, "num_layers": 2, "block_size": 9, "max_len": 9,
    "src_vocab_size": 13, "tgt_vocab_size": 11, "num_encoder_layers": 2, "num_decoder_layers": 3,
    "num_segments": 4, "image_size": 8, "patch_size": 2, "channels": 3, "num_classes": 7,
}  # fmt: skip
"""Used where a clause sets no size; all different, so that no equality is accidental."""
DERIVED = frozenset({"kv_heads", "head_width", *LATENTS})
"""Sizes that a variant gives: those of heads, and beside a latent those that it brings."""

_FREE = {"d_model", "num_heads", "causal", "dropout", "pad_id"}
"""Arguments that are not sizes, or are chosen together."""
_LARGEST: Mapping[str, int] = {
    "tokens": 2048, "batch": 512, "num_layers": 256, "num_encoder_layers": 128, "num_decoder_layers": 128,
}  # fmt: skip
"""For sizes that drive the cost of a call: up to here, declared limits may raise what a clause requests."""
_MOST_NUMBERS = 1 << 25
_STEPS = 24
"""How many allowed values of a size are tried in each direction."""


class NoSizeError(ValueError):
    """The declared limits allow no sizes near what a clause requests."""


class LimitWithoutValue(ValueError):
    """An expression that is declared for a size has no value: what depends on it cannot be judged."""


def complete(wanted: Mapping[str, Any], component: Component, variant: Variant, limits: SizeLimits) -> dict[str, Any]:
    """Return all constructor arguments, kv_heads and head_width derived, as near as possible to what is wanted."""
    names = [a.name for a in component.arguments]
    sizes = completed(wanted, component)
    for name in names:
        if name not in _FREE and sizes[name] is not None:
            sizes[name] = nearest_allowed(name, sizes[name], limits)
    if variant.shared_embeddings and "tgt_vocab_size" in sizes:
        sizes["tgt_vocab_size"] = sizes["src_vocab_size"]
    if "patch_size" in sizes:
        sizes["image_size"] = _whole_patches(sizes, limits)
    unsaid: list[ExpressionError] = []
    for heads_and_width in _heads_and_widths(sizes, limits):
        found = _worked_out(_with_dependent(sizes | heads_and_width, limits), variant, limits, unsaid)
        if found is not None:
            _check_affordable(found)
            return found
    if unsaid:
        raise LimitWithoutValue(f"the variant gives kv_heads or head_width no value: {unsaid[0]}")
    raise NoSizeError(f"no sizes near {dict(wanted)} are within the declared limits of {component.name}")


def _whole_patches(sizes: Mapping[str, Any], limits: SizeLimits) -> int:
    """Return the size of an image of whole patches, near the wanted one. Raises NoSizeError."""
    wanted, patch, allowed = sizes["image_size"], sizes["patch_size"], limits.of("image_size")
    near = sorted(range(patch, wanted + _STEPS * patch, patch), key=lambda size: (abs(size - wanted), -size))
    found = next((size for size in near if allowed.allows(size)), None)
    if found is None:
        raise NoSizeError(f"the limits allow no image_size that is a multiple of patch_size = {patch}")
    return found


def completed(wanted: Mapping[str, Any], component: Component) -> dict[str, Any]:
    """Return all constructor arguments: those that are wanted, else standard sizes, else the contract's defaults."""
    names = {argument.name: argument.default for argument in component.arguments}
    sizes = {name: wanted.get(name, STANDARD.get(name)) for name in names}
    return {name: names[name] if size is None else size for name, size in sizes.items()}


def nearest_allowed(name: str, wanted: int, limits: SizeLimits) -> int:
    """Return the allowed value of one size that is nearest to the wanted one, larger ones first."""
    if wanted >= 1 and name not in limits.sizes:
        return wanted
    upwards, downwards = _allowed(name, wanted, limits)
    nearest = next(itertools.chain(upwards, downwards))
    if nearest > max(wanted, _LARGEST.get(name, nearest)):
        raise NoSizeError(f"the limits make {name} {nearest}, more than the {_LARGEST[name]} that are tried")
    return nearest


def within(sizes: Mapping[str, int], limits: SizeLimits) -> dict[str, int]:
    """Return the allowed sizes that are nearest to these, each by itself; keys are limited as positions are."""
    return {name: nearest_allowed({"keys": "tokens"}.get(name, name), size, limits) for name, size in sizes.items()}


def _check_affordable(sizes: Mapping[str, Any]) -> None:
    """Raise NoSizeError if the parameters would have more numbers than the harness should hold."""
    width, inner = (int(sizes.get(name) or 1) for name in ("d_model", "d_ff"))
    depths = ("num_layers", "num_encoder_layers", "num_decoder_layers", "num_decoder_layers")  # two attentions each
    layers = sum(int(sizes.get(name) or 0) for name in depths) or 1
    tables = ("vocab_size", "src_vocab_size", "tgt_vocab_size", "block_size", "max_len", "d_k", "d_v", "num_classes")
    rows = sum(int(sizes.get(name) or 0) for name in tables)
    numbers = width * (rows + layers * (4 * width + 3 * inner))
    if numbers > _MOST_NUMBERS:
        raise NoSizeError(f"the limits make it a component of {numbers:.2g} numbers, more than are tried")


def _with_dependent(sizes: dict[str, Any], limits: SizeLimits) -> dict[str, Any]:
    """Compute the sizes that follow from others by an expression."""
    for name, limit in limits.sizes.items():
        text = limit.equals or limit.least
        if text is not None and name in sizes:
            known = {
                **sizes,
                **{open_: sizes[open_] or sizes.get("d_model") for open_ in {"d_k", "d_v"} & sizes.keys()},
            }
            try:
                value = int(evaluate(text, known))
                sizes[name] = value if limit.equals else nearest_allowed(name, max(sizes[name], value), limits)
            except (ExpressionError, TypeError, ValueError) as error:
                raise LimitWithoutValue(f"the limits give {name} no value: {error}") from None
    return sizes


def _heads_and_widths(sizes: Mapping[str, Any], limits: SizeLimits) -> Iterator[dict[str, int]]:
    """Yield numbers of heads and widths, if the component has them, the nearest to the wanted ones first."""
    wide = _STEPS * (limits.of("head_width").multiple_of or 1)
    counts = {"num_heads": _STEPS, "d_model": wide}
    near = {name: _near(name, sizes[name], limits, count) for name, count in counts.items() if name in sizes}
    for chosen in itertools.product(*near.values()):
        yield dict(zip(near, chosen, strict=True))


def _near(name: str, wanted: int, limits: SizeLimits, count: int) -> list[int]:
    """Return so many allowed values from the wanted one upwards, then as many downwards."""
    upwards, downwards = _allowed(name, wanted, limits)
    return [*upwards[:count], *downwards[:count]]


def _worked_out(
    sizes: dict[str, Any], variant: Variant, limits: SizeLimits, unsaid: list[ExpressionError]
) -> dict[str, Any] | None:
    """Add the sizes that the variant gives; None if the variant or the limits do not allow these sizes.

    Expressions of the variant that have no value are added to `unsaid`.
    """
    for name in {"d_k", "d_v"} & sizes.keys():
        sizes[name] = sizes[name] or nearest_allowed(name, sizes["d_model"], limits)
    if sizes.get("num_heads") is None:
        return sizes
    try:
        found = derived(sizes, variant)
    except (ExpressionError, TypeError, ValueError) as error:
        unsaid += [error] if isinstance(error, ExpressionError) else []
        return None
    if found is None or not all(limits.of(name).allows(found[name]) for name in ("kv_heads", "head_width")):
        return None
    return {**sizes, **found}


def derived_names(variant: Variant) -> frozenset[str]:
    """Return the names of the sizes that a variant gives."""
    return DERIVED if variant.has_latent else DERIVED - {*LATENTS}


def derived(sizes: Mapping[str, Any], variant: Variant) -> dict[str, int] | None:
    """Return the sizes that a variant gives beside these; None if it allows no such heads. Raises ExpressionError."""
    kv_heads, width = (_whole(e, sizes) for e in (variant.kv_heads, variant.head_width))
    if kv_heads < 1 or width < 1 or sizes["num_heads"] % kv_heads:
        return None
    found = {"kv_heads": kv_heads, "head_width": width}
    if variant.has_latent:
        found |= {name: _whole(getattr(variant, name), {**sizes, **found}) for name in LATENTS}
        if any(found[name] < 1 for name in LATENTS if getattr(variant, name) != "0"):
            return None
    return found if turns_whole_pairs(turning_width(found, variant), variant) else None


def _whole(expression: str, sizes: Mapping[str, Any]) -> int:
    """Evaluate; 0 if a `//` would leave a remainder."""
    exact = evaluate(expression.replace("//", "/"), sizes)
    return int(exact) if float(exact).is_integer() else 0


def _allowed(name: str, wanted: int, limits: SizeLimits) -> tuple[range, range]:
    """Return the values that the limit allows: from the wanted one upwards, and those below it downwards."""
    limit = limits.of(name)
    step, lowest = limit.multiple_of or 1, limit.min or 1
    highest = limit.max if limit.max is not None else max(wanted, lowest) + 64 * step
    first, last = -(-lowest // step) * step, highest // step * step
    if first > last:
        raise NoSizeError(f"the limits of {name} allow no value: min {limit.min}, max {limit.max}, multiple of {step}")
    middle = max(first, -(-wanted // step) * step)
    return range(middle, last + 1, step), range(min(middle - step, last), first - 1, -step)
