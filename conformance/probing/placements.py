"""Ways to place all parameters of a component, the most plausible first: guessed from names and shapes."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from conformkit.conformance.binding.rules import Rule, folded, parse_rule
from conformkit.conformance.binding.solve import Theirs, Unassignable, assignments, families
from conformkit.spec.components import Parameter

__all__ = ["placements"]

_TRIES = 1000
"""Enough for four square matrices in any order and any consistent layout, whatever their names say."""
_TRIES_OF_A_WHOLE = 400
"""Components built from other components, whose layouts are known by then."""


def placements(
    theirs: Mapping[str, tuple[int, ...]], canonical: Mapping[str, Parameter], sizes: Mapping[str, Any],
    known: Mapping[str, str], *, bare: bool, limit: int | None = None,
) -> Iterator[tuple[Rule, ...]]:  # fmt: skip
    """Yield rules that place all parameters: first those that read numbers in names as heads, then those that do not.

    If there are none, layers may be counted from a number other than 0.

    `bare` parameters are arrays whose matrices usually are (in, out). Raises Unassignable at the end if there are none
    in any of these ways.
    """
    ours, counts = _folded(canonical)
    heads = {n for n in (sizes.get("num_heads"), sizes.get("kv_heads")) if n}
    limit = limit or (_TRIES_OF_A_WHOLE if any(name.count(".") > 1 for name in ours) else _TRIES)
    layers = set(counts.values()) or {sizes.get("num_layers", 0)} - {0}
    tried: list[list[Theirs]] = []
    problem: Unassignable | None = None
    placed = False
    for shifted, numbered in itertools.product((False, True), (heads, set[int]())):
        counted = families(theirs, layers=layers, heads=numbered, bare=bare, shifted=shifted)
        if counted in tried or (shifted and placed):
            continue
        tried.append(counted)
        try:
            for assignment in assignments(counted, ours, known, limit, counts):
                placed = True
                yield tuple(parse_rule(t.name, layout.source) for t, layout in assignment)
        except Unassignable as nothing:
            problem = problem or nothing
    if problem is not None and not placed:
        raise problem


def _folded(ours: Mapping[str, Parameter]) -> tuple[dict[str, Parameter], dict[str, int]]:
    """Name layers by {i}, since they are alike; also return the number of layers by name."""
    counts = Counter(folded(name) for name in ours)
    alike = {folded(name): parameter for name, parameter in ours.items()}
    return alike, {name: counts[name] for name in alike if "{i}" in name}
