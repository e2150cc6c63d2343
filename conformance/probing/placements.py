"""Ways to place all parameters of a component, the most plausible first: guessed from names and shapes."""

from __future__ import annotations

import contextlib
import itertools
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from conformkit.conformance.binding.layouts import Layout
from conformkit.conformance.binding.rules import Rule, folded, parse_rule
from conformkit.conformance.binding.solve import Theirs, Unassignable, assignments, clearest, families
from conformkit.spec.components import Parameter

__all__ = ["named_clearly", "placements"]

_TRIES = 1000
"""Enough for four square matrices in any order and any consistent layout, whatever their names say."""
_Assignment = list[tuple[Theirs, Layout]]
_SHARE = 3
"""One of so many tries keeps to the usual layouts."""
_TRIES_OF_A_WHOLE = 400
"""Components built from other components, whose layouts are known by then."""


def placements(
    theirs: Mapping[str, tuple[int, ...]], canonical: Mapping[str, Parameter], sizes: Mapping[str, Any],
    known: Mapping[str, str], *, bare: bool, limit: int | None = None,
    keep: Callable[[Rule], bool] | None = None,
) -> Iterator[tuple[Rule, ...]]:  # fmt: skip
    """Yield rules that place all parameters: first those that read numbers in names as heads, then those that do not.

    If there are none, layers may be counted from a number other than 0.

    `bare` parameters are arrays whose matrices usually are (in, out); `keep` says of one rule whether it is possible.
    Raises Unassignable at the end if there are none in any of these ways.
    """
    ours, counts = _folded(canonical)
    limit = limit or (_TRIES_OF_A_WHOLE if any(name.count(".") > 1 for name in ours) else _TRIES)
    problem: Unassignable | None = None
    placed = False
    for counted, shifted in _readings(theirs, sizes, counts, _experts(canonical), bare=bare):
        if shifted and placed:
            continue
        try:
            for assignment in _mixed(counted, ours, known, limit, counts, keep):
                placed = True
                yield tuple(parse_rule(t.name, layout.source) for t, layout in assignment)
        except Unassignable as nothing:
            problem = problem or nothing
    if problem is not None and not placed:
        raise problem


def named_clearly(
    theirs: Mapping[str, tuple[int, ...]], canonical: Mapping[str, Parameter], sizes: Mapping[str, Any],
    known: Mapping[str, str], *, bare: bool,
) -> tuple[Rule, ...] | None:  # fmt: skip
    """Return where names and shapes alone put the parameters, so that code that fits nowhere is still bound.

    None where they do not say it clearly, in that way to read the numbers in them which makes most sense.
    """
    ours, counts = _folded(canonical)
    best: tuple[float, _Assignment, bool] | None = None
    for counted, _ in _readings(theirs, sizes, counts, _experts(canonical), bare=bare):
        with contextlib.suppress(Unassignable):
            found = clearest(counted, ours, known, counts, in_order=not bare)
            best = found if best is None or found[0] > best[0] else best
    if best is None or not best[2]:
        return None
    return tuple(parse_rule(t.name, layout.source) for t, layout in best[1])


def _experts(canonical: Mapping[str, Parameter]) -> int:
    """Return the number of experts; 0 if there are none."""
    return max((parameter.sizes.get("e", 0) for parameter in canonical.values()), default=0)


def _readings(
    theirs: Mapping[str, tuple[int, ...]], sizes: Mapping[str, Any], counts: Mapping[str, int], experts: int, *,
    bare: bool,
) -> Iterator[tuple[list[Theirs], bool]]:  # fmt: skip
    """Yield the ways to read the numbers in their names, and whether layers are then counted from elsewhere than 0."""
    heads = {n for n in (sizes.get("num_heads"), sizes.get("kv_heads")) if n}
    layers = set(counts.values()) or {sizes.get("num_layers", 0)} - {0}
    read: list[list[Theirs]] = []
    for shifted, numbered in itertools.product((False, True), (heads, set[int]())):
        counted = families(theirs, layers=layers, heads=numbered, bare=bare, shifted=shifted, experts=experts)
        if counted not in read:
            read.append(counted)
            yield counted, shifted


def _mixed(
    counted: list[Theirs], ours: Mapping[str, Parameter], known: Mapping[str, str], limit: int,
    counts: Mapping[str, int], keep: Callable[[Rule], bool] | None,
) -> Iterator[_Assignment]:  # fmt: skip
    """Yield each plausible assignment once: after two of any layout one in which only the meaning of names differs.

    There are so many layouts of square matrices that two exchanged norms would come after all of them.
    """
    seen: set[frozenset[tuple[str, str]]] = set()
    possible = None if keep is None else lambda theirs, layout: keep(parse_rule(theirs.name, layout.source))
    anyhow = assignments(counted, ours, known, limit, counts, keep=possible)
    usual = assignments(counted, ours, known, limit // _SHARE, counts, usual=True, keep=possible)
    for assignment in _interleaved(anyhow, usual):
        key = frozenset((t.name, layout.source) for t, layout in assignment)
        if key not in seen:
            seen.add(key)
            yield assignment
        if len(seen) >= limit:
            return


def _interleaved(many: Iterator[_Assignment], few: Iterator[_Assignment]) -> Iterator[_Assignment]:
    """Yield one of the second after each `_SHARE - 1` of the first, until both have ended."""
    ended = False
    while not ended:
        ended = True
        for assignment in itertools.islice(many, _SHARE - 1):
            ended = False
            yield assignment
        with contextlib.suppress(Unassignable):
            for assignment in itertools.islice(few, 1):
                ended = False
                yield assignment


def _folded(ours: Mapping[str, Parameter]) -> tuple[dict[str, Parameter], dict[str, int]]:
    """Name layers by {i}, since they are alike; also return the number of layers by name."""
    counts = Counter(folded(name) for name in ours)
    alike = {folded(name): parameter for name, parameter in ours.items()}
    return alike, {name: counts[name] for name in alike if "{i}" in name}
