"""Weights by patterns: how canonical parameters lie in an implementation's own.

A rule is one line of `conform.toml`, target = source:

    "c_attn.weight" = "q.weight, k.weight, v.weight -> m (s h d)"

The source names canonical parts and the axes in which the target holds them, in the manner of einops: the letters are
those of the canonical axes (spec/components.py), `s` counts the listed parts, `1` is an axis of one entry, and without
an arrow the axes are the canonical ones. Where `s` comes first in a group the parts are concatenated, and may differ
in size. {h} in the target: one array a head. {i} on both sides: one a layer; in the source only: the layers are stacked
on the axis `i`. A part may be an affine function of itself (`norm1.weight - 1`). `*` at both ends: everything below.
"""

from __future__ import annotations

import itertools
import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from einops import rearrange

from conformkit.conformance.binding.expressions import Affine, ExpressionError, affine, names, nearest, shown
from conformkit.spec.components import Parameter
from conformkit.spec.layers import Array

__all__ = [
    "Part", "PatternError", "Rule", "check_rule", "component_at", "covered", "describe", "expand", "parse_rule",
    "shapes", "to_canonical", "to_implementation",
]  # fmt: skip

WEIGHT = "_"
"""Stands for the part itself in its expression."""
Groups = tuple[tuple[str, ...], ...]
_NAME = re.compile(r"(?<![\w.])[A-Za-z_]\w*(?:\.(?:\w+|\{i\}))+")
_AXES = re.compile(r"(?:[A-Za-z]\b|1\b|\((?: *[A-Za-z]\b)+ *\)| )+")


class PatternError(ValueError):
    """A rule for weights that cannot be read, or does not fit."""

    def __init__(self, target: str, source: str, problem: str, advice: str = "") -> None:
        super().__init__(f"{_quoted(target)} = {_quoted(source)}: {problem}{'; ' if advice else ''}{advice}")
        self.target, self.source, self.problem, self.advice = target, source, problem, advice


@dataclass(frozen=True, slots=True)
class Part:
    """A canonical name and the expression of it that is stored, `_ - 1`."""

    name: str
    expression: str = WEIGHT

    @property
    def text(self) -> str:
        """The part as one writes it."""
        return re.sub(rf"\b{WEIGHT}\b", lambda _: self.name, self.expression)


@dataclass(frozen=True, slots=True)
class Rule:
    """Where canonical parts are; `axes` None: as they are canonically."""

    target: str
    parts: tuple[Part, ...]
    axes: str | None = None

    @property
    def source(self) -> str:
        """The right-hand side."""
        arrow = "" if self.axes is None else f" -> {self.axes}"
        return ", ".join(part.text for part in self.parts) + arrow

    @property
    def subtree(self) -> bool:
        """Whether it stands for everything below."""
        return self.target.endswith("*")

    def error(self, problem: str, advice: str = "") -> PatternError:
        """Return the error that says what is wrong with this rule."""
        return PatternError(self.target, self.source, problem, advice)


def describe(rule: Rule) -> str:
    """Return the line of conform.toml that says the same."""
    return f"{json.dumps(rule.target, ensure_ascii=False)} = {json.dumps(rule.source, ensure_ascii=False)}"


# --- reading ---------------------------------------------------------------------------------------------------------


def parse_rule(target: str, source: str) -> Rule:
    """Read one line; raise PatternError when it is none."""
    left, arrow, right = source.partition("->")
    problem = _target_problem(target)
    axes = " ".join(right.split()) if arrow else None
    if axes is not None and (not axes or not _AXES.fullmatch(axes)):
        problem = problem or f"{shown(axes)} are no axes; write letters, 1 and groups: (h d) m"
    if problem:
        raise PatternError(target, source, problem)
    if "*" in target or left.strip() == "*" or left.strip().endswith(".*"):
        return _parse_subtree(target, source, left.strip())
    try:
        rule = Rule(target, tuple(_parse_part(text) for text in _split(left)), axes)
    except ExpressionError as error:
        raise PatternError(target, source, error.problem, _hint(error.nearest)) from None
    if axes is not None and len(set(letters := re.findall("[A-Za-z]", axes))) < len(letters):
        raise rule.error(f"an axis occurs twice in {shown(axes)}")
    if len(rule.parts) > 1 and "s" not in (axes or ""):
        raise rule.error("several parts need axes with an s, the position in the list", 'for example "-> (s h d) m"')
    if "{i}" in target and not all("{i}" in part.name for part in rule.parts):
        raise rule.error("{i} is in the target but not in every part")
    return rule


def _target_problem(target: str) -> str:
    if not 0 < len(target) <= 300 or not target.isprintable():
        return "a target is the name of a parameter, 1 to 300 printable characters"
    if unknown := [mark for mark in re.findall(r"\{[^}]*\}?|\}", target) if mark not in {"{h}", "{i}"}]:
        return f"{shown(unknown[0])} in the target is neither {{h}} (a head) nor {{i}} (a layer)"
    if target.count("{h}") > 1 or target.count("{i}") > 1:
        return "{h} and {i} may occur once each in the target"
    return ""


def _parse_subtree(target: str, source: str, left: str) -> Rule:
    ends = [re.fullmatch(r"(?:[^*]+\.)?\*", text) for text in (target, source.strip())]
    if not all(ends) or ("{i}" in target) != ("{i}" in left):
        raise PatternError(target, source, 'both sides end in ".*", with {i} on both or on none')
    if "{h}" in target or not re.fullmatch(r"(?:[A-Za-z_]\w*\.)?(?:(?:\w+|\{i\})\.)*\*", left):
        raise PatternError(target, source, "only a canonical name may stand before the *, and {h} nowhere")
    return Rule(target, (Part(left),))


def _split(text: str) -> Iterator[str]:
    """Split at the commas outside parentheses."""
    depth, start = 0, 0
    for at, sign in enumerate(text):
        depth += (sign == "(") - (sign == ")")
        if sign == "," and depth == 0:
            yield text[start:at]
            start = at + 1
    yield text[start:]


def _parse_part(text: str) -> Part:
    found = sorted(set(_NAME.findall(text)))
    if len(found) != 1:
        said = f"it names {' and '.join(found)}" if found else "it names none"
        raise ExpressionError(text, f"a part is one canonical name, such as q.weight, or a function of it: {said}")
    expression = _NAME.sub(WEIGHT, text).strip()
    if WEIGHT not in names(expression):
        raise ExpressionError(text, f"{found[0]} is not used as a value")
    return Part(found[0], expression)


def check_rule(rule: Rule, axes: Mapping[str, str], sizes: Iterable[str]) -> None:
    """Raise PatternError when a rule cannot fit canonical parameters with these axes (names with {i} for a layer).

    `sizes` are the names that its expressions may use.
    """
    for part in rule.parts:
        general = re.sub(r"(?<=\.)\d+(?=\.)", "{i}", part.name)
        if rule.subtree:
            if not any(name.startswith(general[:-1]) for name in axes):
                hint = _hint(nearest(part.name, _prefixes(axes)))
                raise rule.error(f"nothing canonical lies below {part.name[:-2]}", hint)
            continue
        if general not in axes:
            raise rule.error(f"there is no canonical part {part.name}", _hint(nearest(general, axes)))
        _check_axes(rule, part, axes[general])
        _check_expression(rule, part, sizes)


def _prefixes(known: Iterable[str]) -> set[str]:
    paths = [name.split(".")[:-1] for name in known]
    return {".".join(path[:end]) + ".*" for path in paths for end in range(1, len(path) + 1)}


def _check_axes(rule: Rule, part: Part, canonical: str) -> None:
    own = _letters(_groups(canonical)) + (("i",) if _stacked(rule, part) else ())
    if "{h}" in rule.target and "h" not in own:
        raise rule.error(f"{part.name} has the axes {canonical}: no h to count heads by {{h}}")
    if rule.axes is None:
        return
    wanted = {*own, *("s" if len(rule.parts) > 1 else "")} - ({"h"} if "{h}" in rule.target else set())
    given = set(_letters(_groups(rule.axes)))
    if missing := sorted(wanted - given):
        raise rule.error(f"the axis {missing[0]} of {part.name} ({canonical}) is missing")
    if extra := sorted(given - wanted):
        raise rule.error(f"{part.name} ({canonical}) has no axis {extra[0]} to place here")


def _check_expression(rule: Rule, part: Part, sizes: Iterable[str]) -> None:
    known = set(sizes)
    for name in sorted(names(part.expression) - known - {WEIGHT}):
        raise rule.error(f"unknown name {name} in {shown(part.text)}", _hint(nearest(name, known)))


def component_at(name: str) -> str | None:
    """Return the component whose parameters lie below a canonical name: `blocks.{i}` is a TransformerBlock."""
    for pattern, component in _NESTED.items():
        if re.fullmatch(rf"(?:.*\.)?{pattern}", name):
            return component
    return None


_NESTED = {
    r"blocks\.(?:\d+|\{i\})": "TransformerBlock",
    "attention": "MultiHeadAttention",
    "feed_forward": "FeedForward",
}


def expand(rules: Iterable[Rule], nested: Mapping[str, Sequence[Rule]]) -> tuple[Rule, ...]:
    """Replace the rules that end in * by those of the component that is there, where `nested` has any.

    What it has none for stays, and renames only the beginning.
    """
    found: list[Rule] = []
    for rule in rules:
        component = component_at(rule.parts[0].name[:-2]) if rule.subtree else None
        if component is None or not nested.get(component):
            found.append(rule)
            continue
        others = {name: inner for name, inner in nested.items() if name != component}
        for inner in expand(nested[component], others):
            parts = tuple(replace(p, name=rule.parts[0].name[:-1] + p.name) for p in inner.parts)
            found.append(Rule(rule.target[:-1] + inner.target, parts, inner.axes))
    return tuple(found)


# --- from and to ------------------------------------------------------------------------------------------------------


def to_implementation(
    rules: Iterable[Rule], canonical: Mapping[str, Array], parameters: Mapping[str, Parameter], sizes: Mapping[str, Any]
) -> dict[str, Array]:
    """Return the implementation's arrays by its own names.

    `parameters` are the canonical ones of this instance, `sizes` the values that expressions may use.
    """
    found: dict[str, Array] = {}
    for place in _places(rules, parameters):
        arrays = []
        for piece in place.pieces:
            layers = [_fitting(place.rule, name, canonical, parameters[name].shape) for name in piece.names]
            stored = [_apply(_function(place.rule, piece.part, sizes), layer) for layer in layers]
            arrays.append(np.stack(stored) if piece.stacked else stored[0])
        whole = _fuse(arrays, place)
        for target, array in zip(place.targets, whole if place.per_head else [whole], strict=True):
            if target in found:
                raise place.rule.error(f"{target} is already set by another rule")
            found[target] = array.copy(order="C")
    return found


def to_canonical(
    rules: Iterable[Rule], theirs: Mapping[str, Array], parameters: Mapping[str, Parameter], sizes: Mapping[str, Any]
) -> dict[str, Array]:
    """Return canonical parameters from the implementation's arrays: the inverse of to_implementation.

    A part that several rules place is read by the first.
    """
    found: dict[str, Array] = {}
    for place in _places(rules, parameters):
        if all(name in found for piece in place.pieces for name in piece.names):
            continue
        arrays = [_fitting(place.rule, target, theirs, place.shape) for target in place.targets]
        whole = np.stack(arrays) if place.per_head else arrays[0]
        for piece, array in zip(place.pieces, _unfuse(whole, place), strict=True):
            function = _function(place.rule, piece.part, sizes)
            for name, layer in zip(piece.names, array if piece.stacked else [array], strict=True):
                found.setdefault(name, _undo(function, layer).copy(order="C"))
    return found


def shapes(rules: Iterable[Rule], parameters: Mapping[str, Parameter]) -> dict[str, tuple[int, ...]]:
    """Return the shape that the rules want of each of the implementation's parameters."""
    return {target: place.shape for place in _places(rules, parameters) for target in place.targets}


def covered(rules: Iterable[Rule], parameters: Mapping[str, Parameter]) -> frozenset[str]:
    """Return the canonical parameters that the rules place somewhere."""
    return frozenset(name for place in _places(rules, parameters) for piece in place.pieces for name in piece.names)


@dataclass(frozen=True, slots=True)
class _Piece:
    """A part of one place; stacked: `names` has one name a layer, and the axes begin with i."""

    part: Part
    names: tuple[str, ...]
    parameter: Parameter
    stacked: bool


@dataclass(frozen=True, slots=True)
class _Place:
    """A rule for one layer. Of one array a head, the heads are an axis h in front."""

    rule: Rule
    targets: tuple[str, ...]
    pieces: tuple[_Piece, ...]
    groups: Groups

    @property
    def per_head(self) -> bool:
        return "{h}" in self.rule.target

    @property
    def joint(self) -> int | None:
        """The dimension along which parts are concatenated, None where they are stacked."""
        return next((n for n, group in enumerate(self.groups) if group[:1] == ("s",) and len(group) > 1), None)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of each target."""
        extents = []
        for n, group in enumerate(self.groups):
            own = [math.prod(p.parameter.sizes[a] for a in group if a != "s") for p in self.pieces]
            if n != self.joint and len(set(own)) > 1:
                said = ", ".join(f"{x} in {p.part.name}" for x, p in zip(own, self.pieces, strict=True))
                where = " ".join(a for a in group if a != "s")
                advice = "put s first in a group to concatenate them"
                raise self.rule.error(f"the parts differ: {where} is {said}", advice)
            extents.append(sum(own) if n == self.joint else own[0] * (len(own) if "s" in group else 1))
        return tuple(extents[self.per_head :])


def _places(rules: Iterable[Rule], parameters: Mapping[str, Parameter]) -> Iterator[_Place]:
    for rule in itertools.chain.from_iterable(_renamings(rule, parameters) for rule in rules):
        for layer in _layers(rule, parameters) if "{i}" in rule.target else (None,):
            pieces = tuple(_piece(rule, part, layer, parameters) for part in rule.parts)
            target = rule.target if layer is None else rule.target.replace("{i}", layer)
            heads = range(pieces[0].parameter.sizes["h"]) if "{h}" in target else ()
            targets = tuple(target.replace("{h}", str(h)) for h in heads) or (target,)
            yield _Place(rule, targets, pieces, _wanted(rule, pieces))


def _renamings(rule: Rule, parameters: Mapping[str, Parameter]) -> Iterator[Rule]:
    """Replace a rule that ends in * by one for every name below, a rule for each."""
    if not rule.subtree:
        yield rule
        return
    below = re.compile(re.escape(rule.parts[0].name[:-1]).replace(r"\{i\}", r"(\d+)") + r"(.+)")
    for match in filter(None, map(below.fullmatch, parameters)):
        target = rule.target[:-1] + match.groups()[-1]
        if "{i}" in target:
            target = target.replace("{i}", match[1])
        yield Rule(target, (Part(match[0]),))


def _layers(rule: Rule, parameters: Mapping[str, Parameter]) -> list[str]:
    pattern = re.compile(re.escape(rule.parts[0].name).replace(r"\{i\}", r"(\d+)"))
    found = [match[1] for match in map(pattern.fullmatch, parameters) if match]
    if not found:
        raise _absent(rule, rule.parts[0].name, parameters)
    return sorted(found, key=int)


def _piece(rule: Rule, part: Part, layer: str | None, parameters: Mapping[str, Parameter]) -> _Piece:
    stacked = _stacked(rule, part)
    layers = _layers(Rule(rule.target, (part,)), parameters) if stacked else [layer or ""]
    found = tuple(part.name.replace("{i}", number) for number in layers)
    for name in found:
        if name not in parameters:
            raise _absent(rule, name, parameters)
    own = parameters[found[0]]
    if stacked:
        own = Parameter(f"i {own.axes}", {**own.sizes, "i": len(found)})
    _check_axes(rule, part, parameters[found[0]].axes)
    return _Piece(part, found, own, stacked)


def _stacked(rule: Rule, part: Part) -> bool:
    return "{i}" in part.name and "{i}" not in rule.target


def _absent(rule: Rule, name: str, parameters: Mapping[str, Parameter]) -> PatternError:
    general = {re.sub(r"(?<=\.)\d+(?=\.)", "{i}", known) for known in parameters}
    return rule.error(f"this variant has no {name}", _hint(nearest(name, general)))


def _wanted(rule: Rule, pieces: tuple[_Piece, ...]) -> Groups:
    groups = _groups(rule.axes or pieces[0].parameter.axes)
    if "{h}" in rule.target:
        rest = tuple(tuple(a for a in group if a != "h") for group in groups)
        groups = (("h",), *(r for r, group in zip(rest, groups, strict=True) if r or not group))
    return groups


def _fuse(arrays: list[Array], place: _Place) -> Array:
    """Bring parts into the wanted axes and join them."""
    parts = [piece.parameter for piece in place.pieces]
    place.shape  # noqa: B018  (raises where parts do not fit together)
    if len(parts) == 1:
        return _rearrange(arrays[0], parts[0].axes, _text(place.groups), parts[0].sizes)
    if place.joint is not None:
        plain = _text(_without_s(place.groups))
        moved = [_rearrange(a, p.axes, plain, p.sizes) for a, p in zip(arrays, parts, strict=True)]
        return np.concatenate(moved, axis=place.joint)
    order = _letters(place.groups)
    each = " ".join(a for a in order if a != "s")
    moved = [_rearrange(a, p.axes, each, p.sizes) for a, p in zip(arrays, parts, strict=True)]
    stacked = np.stack(moved, axis=order.index("s"))
    return _rearrange(stacked, " ".join(order), _text(place.groups), {})


def _unfuse(whole: Array, place: _Place) -> list[Array]:
    """Undo _fuse."""
    parts = [piece.parameter for piece in place.pieces]
    if len(parts) == 1:
        return [_rearrange(whole, _text(place.groups), parts[0].axes, parts[0].sizes)]
    if place.joint is not None:
        plain = _without_s(place.groups)
        extents = [math.prod(p.sizes[a] for a in plain[place.joint]) for p in parts]
        slices = np.split(whole, np.cumsum(extents)[:-1], axis=place.joint)
        return [_rearrange(a, _text(plain), p.axes, p.sizes) for a, p in zip(slices, parts, strict=True)]
    order = _letters(place.groups)
    each = " ".join(a for a in order if a != "s")
    apart = _rearrange(whole, _text(place.groups), "s " + each, {**parts[0].sizes, "s": len(parts)})
    return [_rearrange(a, each, p.axes, p.sizes) for a, p in zip(apart, parts, strict=True)]


def _rearrange(array: Array, before: str, after: str, sizes: Mapping[str, int]) -> Array:
    if before == after:
        return array
    known = {a: sizes[a] for a in _letters(_groups(before)) if a in sizes}
    return np.asarray(rearrange(array, f"{before} -> {after}", **known))


def _fitting(rule: Rule, name: str, arrays: Mapping[str, Array], shape: tuple[int, ...]) -> Array:
    if name not in arrays:
        raise rule.error(f"there is no parameter {name}", _hint(nearest(name, arrays)))
    if arrays[name].shape != shape:
        raise rule.error(f"{name} has the shape {arrays[name].shape}, want {shape}")
    return arrays[name]


def _function(rule: Rule, part: Part, sizes: Mapping[str, Any]) -> Affine | None:
    if part.expression == WEIGHT:
        return None
    try:
        return affine(part.expression, WEIGHT, sizes)
    except ExpressionError as error:
        raise rule.error(error.problem, _hint(error.nearest)) from None


def _apply(function: Affine | None, array: Array) -> Array:
    return array if function is None else (array * function.scale + function.offset).astype(array.dtype)


def _undo(function: Affine | None, array: Array) -> Array:
    return array if function is None else ((array - function.offset) / function.scale).astype(array.dtype)


def _groups(axes: str) -> Groups:
    """Return the axes of each dimension: `1 (h d) m` → ((), (h, d), (m,))."""
    return tuple(tuple(re.findall("[A-Za-z]", group)) for group in re.findall(r"\([^)]*\)|\w", axes))


def _letters(groups: Groups) -> tuple[str, ...]:
    return tuple(itertools.chain.from_iterable(groups))


def _without_s(groups: Groups) -> Groups:
    return tuple(tuple(a for a in group if a != "s") for group in groups)


def _text(groups: Groups) -> str:
    return " ".join(f"({' '.join(group)})" if len(group) > 1 else (group or ("1",))[0] for group in groups)


def _hint(words: Sequence[str]) -> str:
    return f"nearest: {', '.join(words)}" if words else ""


def _quoted(text: str) -> str:
    return shown(text, 200)
