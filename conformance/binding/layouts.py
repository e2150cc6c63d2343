"""The possible layouts of canonical parameters in an array of a given shape."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import permutations

from conformkit.conformance.binding.axes import axes_of, groups_of
from conformkit.conformance.binding.grouped import grouping
from conformkit.spec.components import Parameter

__all__ = ["Layout", "layouts"]


@dataclass(frozen=True, slots=True)
class Layout:
    """Canonical parameters (several if fused) and the axes in which an array holds them.

    `penalty` ranks layouts of equal names: 0 for the most usual one.
    """

    parts: tuple[str, ...]
    axes: str
    penalty: float

    @property
    def source(self) -> str:
        """The right-hand side of the line in conform.toml that says the same."""
        return f"{', '.join(self.parts)} -> {self.axes}"


_MATRIX_OUT = ("(h d) m", "m (h d)", "h d m", "h m d", "m h d", "(d h) m", "m (d h)")
_SINGLE: Mapping[str, tuple[str, ...]] = {
    "(h d) m": _MATRIX_OUT,
    "m (h d)": ("m (h d)", "(h d) m", "h d m", "m h d", "h m d", "m (d h)", "(d h) m"),
    "(h d)": ("(h d)", "h d", "(d h)"),
    "e f m": ("e f m", "e m f", "(e f) m", "m (e f)"),
    "e m f": ("e m f", "e f m", "(e f) m", "m (e f)"),
    "m c p q": (
        "m c p q", "m (c p q)", "m (p q c)", "(c p q) m", "(p q c) m", "p q c m", "m p q c",
    ),
}  # fmt: skip
_FUSED: Mapping[str, tuple[str, ...]] = {
    "(h d) m": (
        "(s h d) m", "m (s h d)", "s h d m", "s (h d) m", "s m (h d)", "(h s d) m", "m (h s d)", "m s h d", "s m h d",
        "s h m d", "h (s d) m", "h m (s d)",
    ),
    "(h d)": ("(s h d)", "s (h d)", "s h d", "(h s d)", "h (s d)"),
    "d m": ("(s d) m", "m (s d)", "s d m", "s m d"),
    "d": ("(s d)", "s d"),
    "f m": ("(s f) m", "m (s f)", "s f m", "s m f", "(f s) m"),
    "f": ("(s f)", "s f", "(f s)"),
    "e f m": ("e (s f) m", "e m (s f)", "s e f m", "s e m f", "e (f s) m", "e m (f s)"),
    "e f": ("e (s f)", "s e f", "e (f s)"),
}  # fmt: skip
_PER_HEAD: Mapping[str, tuple[str, ...]] = {
    "(h d) m": ("d m", "m d"),
    "m (h d)": ("m d", "d m"),
    "(h d)": ("d",),
}
_PER_EXPERT: Mapping[str, tuple[str, ...]] = {
    "e f m": ("f m", "m f"), "e m f": ("m f", "f m"), "e f": ("f",), "e m": ("m",),
}  # fmt: skip
_PER_EXPERT_FUSED: Mapping[str, tuple[str, ...]] = {
    "e f m": ("(s f) m", "m (s f)", "(f s) m", "m (f s)"), "e f": ("(s f)", "(f s)"),
}  # fmt: skip
_PER_HEAD_FUSED: Mapping[str, tuple[str, ...]] = {"(h d) m": ("(s d) m", "m (s d)", "s d m"), "(h d)": ("(s d)", "s d")}


_FUSED_PARTS = (
    ("q", "k", "v"), ("k", "v"), ("q", "k"), ("gate", "up"), ("q", "output_gate"), ("q", "k", "v", "output_gate"),
    ("q", "q_rotary"), ("kv_latent", "k_rotary"), ("q_latent", "kv_latent", "k_rotary"),
)  # fmt: skip
"""Parameters that one array often holds."""
_ORDER = ("q_latent", "kv_latent", "k_rotary", "q", "q_rotary", "k", "v", "output_gate", "gate", "up")


def layouts(
    shape: tuple[int, ...], canonical: Mapping[str, Parameter], *, heads: int | None, matrices_out_first: bool,
    experts: int | None = None,
) -> Iterator[Layout]:  # fmt: skip
    """Yield every layout of one canonical parameter, or of several fused ones, that has this shape.

    `heads` is the number of such arrays if there is one array per head, `experts` if there is one per expert.
    `matrices_out_first` says which orientation is usual for this kind of array: (out, in) in torch's Linear, (in, out)
    for bare arrays.
    """
    squeezed = tuple(n for n in shape if n != 1)
    item, count = ("h", heads) if heads is not None else ("e", experts) if experts is not None else ("", 1)
    for parts in _groups(canonical):
        parameters = [canonical[part] for part in parts]
        if sum(math.prod(p.shape) for p in parameters) != (count or 1) * math.prod(shape):
            continue
        if item and any(p.sizes.get(item) != count for p in parameters):
            continue
        known = _candidates(parameters, item)
        for rank, axes in enumerate(_by_head(known) if _beside_a_latent(parts, canonical) else known):
            extent = _extent(axes, parameters)
            if extent in {shape, squeezed}:
                swapped = len(squeezed) == 2 and (rank == 0) != matrices_out_first and rank < 2
                penalty = 0.1 * rank + (0.5 if swapped else 0.0) + _order_penalty(parts)
                yield Layout(parts, axes if extent == shape else _with_singletons(axes, shape), penalty)


def _groups(canonical: Mapping[str, Parameter]) -> Iterator[tuple[str, ...]]:
    for name in canonical:
        yield (name,)
    for fused in _FUSED_PARTS:
        for kind in ("weight", "bias"):
            first = f"{fused[0]}.{kind}"
            prefixes = {name.removesuffix(first) for name in canonical if name.endswith(first)}
            for prefix in sorted(prefixes):
                names = [f"{prefix}{part}.{kind}" for part in fused]
                if all(name in canonical for name in names) and _fit_together([canonical[name] for name in names]):
                    yield from permutations(names)


def _fit_together(parameters: list[Parameter]) -> bool:
    """Whether parameters have the same axes: a gate for each head has none for its features."""
    return all(parameter.axes == parameters[0].axes for parameter in parameters)


def _candidates(parameters: list[Parameter], item: str) -> tuple[str, ...]:
    """Return the axes that arrays may have; `item` is what there is one array per, or nothing."""
    axes = parameters[0].axes
    if len(parameters) > 1:
        return {"h": _PER_HEAD_FUSED, "e": _PER_EXPERT_FUSED}.get(item, _FUSED).get(axes, ())
    if item:
        return {"h": _PER_HEAD, "e": _PER_EXPERT}[item].get(axes, ())
    letters = axes.split()
    return _SINGLE.get(axes, (axes, " ".join(reversed(letters))) if len(letters) == 2 else (axes,))


def _beside_a_latent(parts: tuple[str, ...], canonical: Mapping[str, Parameter]) -> bool:
    """Whether parts are those of attention with a latent, of which each head's are stored together."""
    owners = {part.rpartition(".")[0].rpartition(".") for part in parts}
    roles, prefix = {role for _, _, role in owners}, next(iter(owners))
    return roles in ({"q", "q_rotary"}, {"k", "v"}) and f"{''.join(prefix[:2])}kv_latent.weight" in canonical


def _by_head(known: tuple[str, ...]) -> tuple[str, ...]:
    """Return layouts with those first that hold one head after the other."""
    return tuple(sorted(known, key=lambda axes: "(h s" not in axes))


def _extent(axes: str, parameters: list[Parameter]) -> tuple[int, ...] | None:
    """Return the shape that the axes give, None if the parts do not fit together."""
    grouped = grouping(groups_of(axes), parameters)
    if grouped is not None:  # in a single group they are simply concatenated, which is another candidate
        return grouped.shape if min(p.sizes["h"] for p in parameters) > 1 else None
    equal = all(p.sizes == parameters[0].sizes for p in parameters)
    extents: list[int] = []
    for group in groups_of(axes):
        if "s" not in group:
            found = {math.prod(p.sizes[a] for a in group) for p in parameters}
            if len(found) > 1:
                return None
            extents.append(found.pop())
        elif group[0] == "s" and len(group) > 1:
            extents.append(sum(math.prod(p.sizes[a] for a in group[1:]) for p in parameters))
        elif equal:
            extents.append(len(parameters) * math.prod(parameters[0].sizes[a] for a in group if a != "s"))
        else:
            return None
    return tuple(extents)


def _with_singletons(axes: str, shape: tuple[int, ...]) -> str:
    if 1 not in shape:
        return axes
    groups = iter(groups_of(axes))
    return axes_of(() if n == 1 else next(groups) for n in shape)


def _order_penalty(parts: tuple[str, ...]) -> float:
    """Return 0 for the usual order (q, k, v; gate, up), and more for less usual ones."""
    order = [_ORDER.index(p.split(".")[-2]) for p in parts] if len(parts) > 1 else []
    return 0.05 * sum(a > b for i, a in enumerate(order) for b in order[i + 1 :])
