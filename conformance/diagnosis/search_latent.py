"""Attention with a latent: searched for where no usual choices give a component's numbers.

The widths follow from its arrays: those of latents from their norms, that of values from the output projection, that
of what rotates from what is beside a latent, and that of a head from the number of parameters.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from conformkit.conformance.binding.sizes import derived
from conformkit.spec.latent_attention import BESIDE_A_LATENT
from conformkit.spec.variants import CANONICAL, LATENTS, Variant, alternatives

__all__ = ["OTHER_SIZES", "generalized", "latents", "norms_of"]

OTHER_SIZES = {"d_model": 160, "num_heads": 10, "d_ff": 20}
"""Other sizes than those of the first trial, in each of their quotients."""
_WIDTHS = ("head_width", *LATENTS)
_PLAIN: Mapping[str, Any] = {**BESIDE_A_LATENT, "window": 0, "rotary_scaling": "none"}
"""What no such attention has, or what is searched for behind it."""
Shapes = Mapping[str, tuple[int, ...]]
Lacking = Callable[[Variant], int | None]


def latents(base: Variant, shapes: Shapes, sizes: Mapping[str, Any], lacking: Lacking) -> Iterator[Variant]:
    """Yield variants with a latent that have a component's number of parameters, their widths as numbers."""
    plain = base.but(**_PLAIN)
    for shape in _possible(shapes, sizes):
        for kind in (*norms_of(plain), *norms_of(plain.but(output_bias=not plain.output_bias))):
            found = _with_head_width(kind.but(**shape), sizes, lacking)
            if found is not None:
                yield from _read(found)


def norms_of(base: Variant) -> Iterator[Variant]:
    """Yield the same with each kind of norm."""
    for kind in ("rmsnorm", "layernorm"):
        yield base.but(norm=kind)
    yield base.but(norm="layernorm", norm_bias=not base.norm_bias)


def generalized(one: Variant, other: Variant, ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> Variant | None:
    """Return a variant whose widths are those of both at their sizes, as expressions; None if there is none."""
    found = one
    for name in (name for name in _WIDTHS if getattr(one, name) != getattr(CANONICAL, name)):
        pair = int(getattr(one, name)), int(getattr(other, name))
        within = tuple(_all(sizes, variant) for sizes, variant in ((ours, one), (theirs, other)))
        text = next((text for text in _texts(name, pair[0]) if _values(text, within) == pair), None)
        if text is None:
            return None
        found = found.but(**{name: text})
    return found


def _all(sizes: Mapping[str, Any], variant: Variant) -> dict[str, int]:
    return {"d_model": sizes["d_model"], "num_heads": sizes["num_heads"], "head_width": int(variant.head_width)}


def _values(text: str, within: tuple[dict[str, int], ...]) -> tuple[int, ...]:
    """Return what an expression of two operands at most, or a sum of the latter's, is worth in each of these sizes."""
    return tuple(_value(text, sizes) for sizes in within)


def _value(text: str, sizes: Mapping[str, int]) -> int:
    words = text.replace("//", " // ").replace("*", " * ").split()
    numbers = [int(word) if word.isdigit() else sizes[word] for word in words[::2]]
    value = numbers[0]
    for operator, number in zip(words[1::2], numbers[1:], strict=True):
        if operator == "//" and value % number:
            return 0
        value = value // number if operator == "//" else value * number
    return value


def _texts(name: str, value: int) -> Iterator[str]:
    """Yield expressions that a width may be, the usual ones first."""
    yield getattr(CANONICAL, name)
    yield str(value)
    wide = ("d_model",) if name in {"latent", "query_latent", "head_width"} else ("head_width", "d_model")
    for size in wide:
        yield size
        yield from (f"{size} // {number}" for number in (2, 3, 4, 6, 8, 12, 16))
        yield from (f"{number} * {size}" for number in (2, 3, 4))
        yield from (f"{top} * {size} // {below}" for top in (2, 3) for below in (3, 4, 8) if top < below)
    yield from (f"{number} * d_model // num_heads" for number in (2, 3, 4))
    yield from (f"d_model // num_heads // {number}" for number in (2, 4))
    yield from (f"{number} * num_heads" for number in (1, 2, 4))


def _possible(shapes: Shapes, sizes: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield widths of latents, of what rotates and of values that the arrays may have."""
    vectors = sorted({shape[0] for shape in shapes.values() if len(shape) == 1})
    matrices = [shape for shape in shapes.values() if len(shape) > 1]
    beside = {math.prod(s) // sizes["d_model"] for s in matrices if sizes["d_model"] in s}
    given = sorted(e // sizes["num_heads"] for e in beside if e % sizes["num_heads"] == 0)
    for latent in vectors:
        for query in (0, *vectors):
            turned = {0} | {e - gone for e in beside for gone in (0, latent, latent + query)}
            for width in sorted(w for w in turned if _fit(latent, query, w, beside)):
                for value in given:
                    widths = {"latent": str(latent), "query_latent": str(query), "value_width": str(value)}
                    if width:
                        yield {**widths, "rotary_width": str(width), "positions": "rotary"}
                    else:
                        yield {**widths, "rotary_width": "2", "positions": "none"}


def _fit(latent: int, query: int, width: int, beside: set[int]) -> bool:
    """Whether the maps of the input to these widths are among the arrays, each on its own or stored together."""
    if width < 0 or width % 2:
        return False
    if latent + query + width in beside:
        return True
    return query in {0, *beside} and (latent + width in beside or (latent in beside and width in {0, *beside}))


def _with_head_width(variant: Variant, sizes: Mapping[str, Any], lacking: Lacking) -> Variant | None:
    """Return it with the width of a head at which nothing is lacking; None if there is none."""
    one, two = (lacking(variant.but(head_width=str(width))) for width in (1, 2))
    if one is None or two is None or one < 0 or one <= two or one % (one - two):
        return None
    found = variant.but(head_width=str(1 + one // (one - two)))
    return found if derived(sizes, found) else None


def _read(variant: Variant) -> Iterator[Variant]:
    """Yield the same with other numbers and another layout."""
    for eps in dict.fromkeys((variant.norm_eps, 1e-6, 1e-5, *alternatives("norm_eps", variant.norm_eps))):
        yield variant.but(norm_eps=eps)
        if variant.positions == "rotary":
            others = alternatives("rotary_layout", variant.rotary_layout)
            yield from (variant.but(norm_eps=eps, rotary_layout=layout) for layout in others)
