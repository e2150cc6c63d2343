"""Which of their parameters is which of ours: assignments, the most plausible first."""

from __future__ import annotations

import heapq
import itertools
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

from conformkit.conformance.binding.axes import groups_of
from conformkit.conformance.binding.layouts import Layout, layouts
from conformkit.conformance.binding.names import fit, template
from conformkit.spec.components import Parameter

__all__ = ["Theirs", "Unassignable", "assignments", "clearest", "families"]


_LAYERED = re.compile(r"\{(\d+\*)?i")
_LEAST_POPS = 8000
"""Maximum number of partial assignments to try before a first complete one, for uninformative names."""
_ASUNDER = 6.0
"""What it costs an assignment that weight and bias of one module belong to different modules of ours."""
_RIVALS = 40
"""How many assignments are compared: four numbered parameters have 24 orders."""
_OF_A_MAP = 2
"""The axes of a linear map."""
_ROWS = frozenset("vtn")
"""Axes that count rows of a table: ids, positions, segments."""
_IN_TURN = 1e-6
"""What it counts that the later of two parameters is the later one of ours: less than anything that a name says."""
_MARGIN = 3.0
"""By how much names must speak for the best assignment: half of what a name says that fits its role."""


@dataclass(frozen=True, slots=True)
class Theirs:
    """Parameters of an implementation whose names differ only in the number of a layer or a head.

    `name` has {i} for the layer ({i+1}: counted from 1), {h} for the head, {e} for the expert; `heads` is the number of
    heads.
    """

    name: str
    shape: tuple[int, ...]
    heads: int | None
    layered: bool
    bare: bool
    """Not a torch parameter called `weight`: an array whose matrices usually are (in, out)."""
    layers: int = 0
    """The number of layers it covers."""
    experts: int | None = None
    """The number of experts, {e} in the name."""


class Unassignable(ValueError):
    """No assignment uses all their parameters and all of ours; names what is left over on both sides."""

    def __init__(self, theirs: Sequence[str], ours: Sequence[str]) -> None:
        super().__init__(f"left over: {', '.join(theirs) or 'nothing'}; wanted: {', '.join(ours) or 'nothing'}")
        self.theirs, self.ours = tuple(theirs), tuple(ours)


def families(
    shapes: Mapping[str, tuple[int, ...]], *, layers: set[int], heads: set[int], bare: bool, shifted: bool = False,
    experts: int = 0,
) -> list[Theirs]:  # fmt: skip
    """Fold names that count layers (0 … n-1, n one of these), experts or heads into one entry each.

    Items after the layers in the same list are named relative to their number {n}. `shifted`: the layers may be
    counted from a number other than 0.
    """
    folded: list[Theirs] = []
    plain, depths = _fold_layers(shapes, layers, shifted=shifted) if layers else (dict(shapes), {})
    mixed = _fold(plain, "{e}", {experts}) if experts else {}
    single = {name: shape for name, shape in plain.items() if not experts or name in mixed}
    several = {name: found for name, found in mixed.items() if name not in plain}
    for name, (shape, count) in (_fold(single, "{h}", heads) | several).items():
        is_bare = bare or not name.endswith("weight")
        layers_below = depths.get(name.replace("{h}", "0").replace("{e}", "0"), 0)
        layered, of_experts = bool(_LAYERED.search(name)), name in several
        numbers = (None, count) if of_experts else (count, None)
        folded.append(Theirs(name, shape, numbers[0], layered, is_bare, layers_below, numbers[1]))
    return folded


def _fold_layers(
    shapes: Mapping[str, tuple[int, ...]], layers: set[int], *, shifted: bool
) -> tuple[dict[str, tuple[int, ...]], dict[str, int]]:
    """Replace a layer's number by {i} or {i+1}, and the number of what follows the layers by {n} or {n+1}.

    Also return the number of layers by name.
    """
    groups = _numbers(shapes)
    found: dict[str, tuple[int, ...]] = {}
    ends: dict[str, tuple[int, int]] = {}
    depths: dict[str, int] = {}
    lists = _lists(groups)
    for name, shape in shapes.items():
        folded = name
        for match in re.finditer(r"\d+", name):
            before, after = name[: match.start()], name[match.end() :]
            numbers = groups[before, after, shape]
            start = min(numbers)
            count = len(numbers)
            if count in layers and numbers == set(range(start, start + count)) and (shifted or start == 0):
                folded = f"{before}{_mark('i', start)}{after}"
                ends[before] = start + count, count
                depths[folded] = count
                break
            if shifted and (turn := _turn(lists[before], int(match[0]), layers)):
                folded, depths[folded] = f"{before}{turn[0]}{after}", turn[1]
                break
        found[folded] = shape
    return {_after_layers(name, ends): shape for name, shape in found.items()}, depths


def _lists(groups: Mapping[tuple[str, str, tuple[int, ...]], set[int]]) -> Mapping[str, set[int]]:
    """Return the numbers of the entries of each list, whatever the entries are, by what its names begin with."""
    found: dict[str, set[int]] = defaultdict(set)
    for (before, _, _), numbers in groups.items():
        found[before] |= numbers
    return found


def _turn(entries: set[int], number: int, layers: set[int]) -> tuple[str, int] | None:
    """Return the mark of an entry in a list in which the parts of a layer take turns, and the number of layers.

    None if its entries are not a whole number of turns. Attention and feed-forward in turn: {2*i} and {2*i+1}.
    """
    start = min(entries)
    for count in layers:
        step = len(entries) // count
        if step > 1 and entries == set(range(start, start + step * count)):
            first = start + (number - start) % step
            return f"{{{step}*i{f'+{first}' if first else ''}}}", count
    return None


def _after_layers(name: str, ends: Mapping[str, tuple[int, int]]) -> str:
    for before, (end, layers) in ends.items():
        match = re.match(r"\d+(?=\.|$)", name[len(before) :]) if name.startswith(before) else None
        if match and int(match[0]) >= end:
            return f"{before}{_mark('n', int(match[0]) - layers)}{name[len(before) + match.end() :]}"
    return name


def _mark(letter: str, further: int) -> str:
    return f"{{{letter}+{further}}}" if further else f"{{{letter}}}"


def _numbers(shapes: Mapping[str, tuple[int, ...]]) -> Mapping[tuple[str, str, tuple[int, ...]], set[int]]:
    """Return which numbers occur in names that are otherwise equal and have equal shapes."""
    groups: dict[tuple[str, str, tuple[int, ...]], set[int]] = defaultdict(set)
    for name, shape in shapes.items():
        for match in re.finditer(r"\d+", name):
            groups[name[: match.start()], name[match.end() :], shape].add(int(match[0]))
    return groups


def _fold(
    shapes: Mapping[str, tuple[int, ...]], mark: str, counts: set[int]
) -> dict[str, tuple[tuple[int, ...], int | None]]:
    """Replace a number that takes all values 0 … n-1, n in counts, with otherwise equal names and shapes."""
    groups = _numbers(shapes)
    found: dict[str, tuple[tuple[int, ...], int | None]] = {}
    for name, shape in shapes.items():
        for match in re.finditer(r"\d+", name):
            before, after = name[: match.start()], name[match.end() :]
            numbers = groups[before, after, shape]
            if len(numbers) in counts and numbers == set(range(len(numbers))):
                found[f"{before}{mark}{after}"] = (shape, len(numbers))
                break
        else:
            found[name] = (shape, None)
    return found


@dataclass(frozen=True, slots=True)
class _Option:
    layout: Layout
    score: float
    turned: bool | None
    """Whether the width of a head is slower than the heads, (d h); None if the two are not merged in one dimension."""


def assignments(
    theirs: Sequence[Theirs],
    ours: Mapping[str, Parameter],
    known: Mapping[str, str] | None = None,
    limit: int = 400,
    counts: Mapping[str, int] | None = None,
    *,
    usual: bool = False,
    keep: Callable[[Theirs, Layout], bool] | None = None,
) -> Iterator[list[tuple[Theirs, Layout]]]:
    """Yield up to `limit` assignments that use every parameter once, the most plausible first.

    `ours` has {i} in names that count layers. `known` maps endings of their names to sources found for a part of this
    component ("attn.c_attn.weight" → "q.weight, k.weight, v.weight -> m (s h d)"): these are preferred. `counts` says
    how many layers there are of each. With `usual`, every parameter has the layout that is most plausible for what it
    is, so that assignments differ only in which parameter is which. `keep` says which layouts are possible, if not all.
    Raises Unassignable when there is none.
    """
    options = _all_options(theirs, ours, known or {}, counts or {})
    if keep is not None:
        options = {t: [option for option in found if keep(t, option.layout)] for t, found in options.items()}
    for _, found in _ranked(theirs, ours, _usual(options) if usual else options, limit):
        yield found


def clearest(
    theirs: Sequence[Theirs], ours: Mapping[str, Parameter], known: Mapping[str, str], counts: Mapping[str, int], *,
    in_order: bool = False,
) -> tuple[float, list[tuple[Theirs, Layout]], bool]:  # fmt: skip
    """Return the most plausible assignment, its score, and whether names and shapes make it clear.

    It is clear if no other one is nearly as plausible. How a parameter lies in its array, and the order of fused or
    numbered ones, is left to custom. `in_order`: modules beside each other come in the order in which they were made,
    which is that of their use. Raises Unassignable.
    """
    options = _all_options(theirs, ours, known, counts)
    (score, first), *others = _ranked(theirs, ours, _usual(options), _RIVALS)
    rivals = [found for other, found in others if score - other < _MARGIN]
    order = tuple(t.name for t in theirs), tuple(ours)
    sure = len(rivals) < _RIVALS - 1 and all(
        _renumbered(first, rival) or (in_order and _out_of_order(first, rival, order)) for rival in rivals
    )
    return score, first, sure


def _out_of_order(
    first: list[tuple[Theirs, Layout]], rival: list[tuple[Theirs, Layout]], order: tuple[Sequence[str], Sequence[str]]
) -> bool:
    """Whether a rival only exchanges modules of a layer, or beside each other, which the first assignment has in order.

    What is numbered may be exchanged, too. Queries, keys and values come in any order.
    """
    before, after = ({t.name: layout.parts for t, layout in found} for found in (first, rival))
    moved = [name for name in order[0] if before[name] != after[name]]
    numbered = _numbered(moved, before, after)
    moved = [name for name in moved if name not in numbered]
    if len({part.split(".")[-2] for name in moved for part in before[name]} & {"q", "k", "v"}) > 1:
        return False
    places: dict[tuple[str, str], list[int]] = {}
    for name in moved:
        module, _, kind = name.rpartition(".")
        places.setdefault((_around(module), kind), []).append(order[1].index(before[name][0]))
    return all(len(own) > 1 and own == sorted(own) for own in places.values())


def _around(module: str) -> str:
    """Return the layer that a module is in, or else what is around it."""
    layer, mark, _ = module.rpartition("{i}")
    return layer if mark else module.rpartition(".")[0]


def _numbered(
    moved: Sequence[str], before: Mapping[str, tuple[str, ...]], after: Mapping[str, tuple[str, ...]]
) -> set[str]:
    """Return which names differ from others in their number alone, and exchange meanings with those."""
    groups: dict[str, list[str]] = {}
    for name in moved:
        groups.setdefault(re.sub(r"\d+", "#", name), []).append(name)
    return {
        name
        for own in groups.values()
        if len(own) > 1 and _same([before[name] for name in own], [after[name] for name in own])
        for name in own
    }


def _renumbered(first: list[tuple[Theirs, Layout]], other: list[tuple[Theirs, Layout]]) -> bool:
    """Whether two assignments differ only in which of several numbered weights, or biases, is which: `linears.0`."""
    before: dict[str, list[tuple[str, ...]]] = {}
    after: dict[str, list[tuple[str, ...]]] = {}
    for found, assignment in ((before, first), (after, other)):
        for theirs, layout in assignment:
            found.setdefault(re.sub(r"\d+", "#", theirs.name), []).append(layout.parts)
    return all(_same(parts, after[name]) for name, parts in before.items())


def _same(before: list[tuple[str, ...]], after: list[tuple[str, ...]]) -> bool:
    """Whether they are the same at each place, or the same kind of parameters in another order."""
    kinds = {part.rpartition(".")[2] for parts in before for part in parts}
    return before == after or (len(kinds) == 1 and sorted(before) == sorted(after))


def _usual(options: Mapping[Theirs, list[_Option]]) -> dict[Theirs, list[_Option]]:
    """Keep the most plausible layout, and order of fused parts, of each meaning."""
    return {t: list({frozenset(o.layout.parts): o for o in reversed(found)}.values()) for t, found in options.items()}


def _ranked(
    theirs: Sequence[Theirs], ours: Mapping[str, Parameter], options: Mapping[Theirs, list[_Option]], limit: int
) -> Iterator[tuple[float, list[tuple[Theirs, Layout]]]]:
    """Yield complete assignments with their scores, the highest first. Raises Unassignable when there is none.

    Heads are merged into rows and columns in the same order everywhere: code that splits in one order and merges in
    another shuffles the features, although some order of the weights would compensate for it. conform.toml can say so.
    """
    order = sorted(theirs, key=lambda t: len(options[t]))
    together = _together(order)
    best_after = list(itertools.accumulate((_best(options[t]) for t in reversed(order)), initial=0.0))[::-1]
    ticket = itertools.count()
    heap: list[tuple[float, int, float, frozenset[str], bool | None, tuple[_Option, ...]]] = [
        (-best_after[0], next(ticket), 0.0, frozenset(), None, ())
    ]
    yielded, pops = 0, 0
    while heap and yielded < limit and pops < max(40 * limit, _LEAST_POPS):
        pops += 1
        _, _, score, used, turned, chosen = heapq.heappop(heap)
        depth = len(chosen)
        if depth == len(order):
            if len(used) == len(ours):
                yielded += 1
                yield score, [(t, o.layout) for t, o in zip(order, chosen, strict=True)]
            continue
        modules = [_modules(chosen[place].layout.parts) for place in together[depth]]
        for option in options[order[depth]]:
            if turned is not None and option.turned not in {None, turned}:
                continue  # heads are merged in one order here, and in another one there: hardly intended
            if used.isdisjoint(option.layout.parts):
                torn = len(modules) - modules.count(_modules(option.layout.parts)) if modules else 0
                total = score + option.score - _ASUNDER * torn
                own = used.union(option.layout.parts), option.turned if turned is None else turned, (*chosen, option)
                heapq.heappush(heap, (-total - best_after[depth + 1], next(ticket), total, *own))
    if not yielded:
        raise _left_over(order, options, ours)


def _together(order: Sequence[Theirs]) -> list[list[int]]:
    """Return for each of them the places of earlier ones of the same module, which belong to the same one of ours."""
    owners = [_owner(t.name) for t in order]
    return [[n for n in range(place) if owner and owners[n] == owner] for place, owner in enumerate(owners)]


@cache
def _modules(parts: tuple[str, ...]) -> tuple[str, ...]:
    """Return the modules of ours that these parameters belong to."""
    return tuple(part.rpartition(".")[0] for part in parts)


def _owner(name: str) -> str:
    """Return the module of a parameter called `weight`, `kernel` or `bias`; nothing for others."""
    owner, _, last = name.rpartition(".")
    return owner if last in {"weight", "kernel", "bias"} else ""


def _best(options: list[_Option]) -> float:
    return max((o.score for o in options), default=-100.0)


def _all_options(
    theirs: Sequence[Theirs], ours: Mapping[str, Parameter], known: Mapping[str, str], counts: Mapping[str, int]
) -> dict[Theirs, list[_Option]]:
    """Return the options of each, of which those that keep the order are a trifle better: it decides between equals."""
    place = {name: number for number, name in enumerate(ours)}
    found = {t: _options(t, ours, known, counts, out_first=not t.bare) for t in theirs}
    if _bare_ones_are_out_first(found, ours):
        found = {t: _options(t, ours, known, counts, out_first=True) for t in theirs}
    return {
        t: sorted(
            (replace(o, score=o.score + _IN_TURN * number * place[o.layout.parts[0]]) for o in options),
            key=lambda o: -o.score,
        )
        for number, (t, options) in enumerate(found.items())
    }


def _bare_ones_are_out_first(options: Mapping[Theirs, Sequence[_Option]], ours: Mapping[str, Parameter]) -> bool:
    """Whether all maps that are bare arrays and not square are stored (out, in), the more usual way for modules.

    A square one, such as a pooler's, then is too. Tables of ids, positions and segments are no maps.
    """
    seen = set()
    for theirs, found in options.items():
        if theirs.bare and found and len(theirs.shape) == _OF_A_MAP and len(set(theirs.shape)) == _OF_A_MAP:
            layout = found[0].layout
            axes = ours[layout.parts[0]].axes
            if len(layout.parts) == 1 and axes[0] not in _ROWS:
                seen.add(axes == layout.axes)
    return seen == {True}


def _options(
    theirs: Theirs, ours: Mapping[str, Parameter], known: Mapping[str, str], counts: Mapping[str, int], *,
    out_first: bool,
) -> list[_Option]:  # fmt: skip
    eligible = {
        name: p for name, p in ours.items()
        if ("{i}" in name) == theirs.layered and counts.get(name, theirs.layers) == theirs.layers
    }  # fmt: skip
    found = []
    three = any(name.endswith("norm3.weight") for name in ours)
    for layout in layouts(
        theirs.shape, eligible, heads=theirs.heads, matrices_out_first=out_first, experts=theirs.experts
    ):
        score = fit(theirs.name, layout.parts, three=three) - layout.penalty
        score += 10.0 * _is_known(theirs.name, layout, known, ours)
        found.append(_Option(layout, score, _turned(layout.axes)))
    return sorted(found, key=lambda o: -o.score)


def _turned(axes: str) -> bool | None:
    for group in groups_of(axes):
        if {"h", "d"} <= set(group):
            return group.index("d") < group.index("h")
    return None


def _is_known(name: str, layout: Layout, known: Mapping[str, str], ours: Mapping[str, Parameter]) -> bool:
    """Whether a part has this source below such a name; one without axes has the canonical ones."""
    for ending, source in known.items():
        if template(name).endswith(template(ending)):
            parts, _, axes = source.partition(" -> ")
            tails = parts.split(", ")
            if (axes or ours[layout.parts[0]].axes) == layout.axes and len(tails) == len(layout.parts):
                ends = zip(layout.parts, tails, strict=True)
                return all(part == tail or part.endswith(f".{tail}") for part, tail in ends)
    return False


def _left_over(
    order: Sequence[Theirs], options: Mapping[Theirs, list[_Option]], ours: Mapping[str, Parameter]
) -> Unassignable:
    """Assign greedily by name, and name what remains."""
    free = set(ours)
    unused = []
    ranked = sorted(((o.score, t.name, t, o) for t in order for o in options[t]), key=lambda r: (-r[0], r[1]))
    taken: set[Theirs] = set()
    for _, _, owner, option in ranked:
        if owner not in taken and free.issuperset(option.layout.parts):
            taken.add(owner)
            free.difference_update(option.layout.parts)
    unused = [f"{t.name} {list(t.shape)}" for t in order if t not in taken]
    return Unassignable(unused, [f"{name} {list(ours[name].shape)}" for name in ours if name in free])
