"""Weights by rules: from canonical arrays to an implementation's own, and back.

A rule is applied once for each layer that it is about (a place), and there to one target, or to one target per head.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from einops import rearrange

from conformkit.conformance.binding.affine import Affine, affine
from conformkit.conformance.binding.axes import Groups, axes_of, groups_of, letters_of
from conformkit.conformance.binding.grouped import Grouping, grouping
from conformkit.conformance.binding.language import ExpressionError
from conformkit.conformance.binding.messages import hint, nearest
from conformkit.conformance.binding.rules import WEIGHT, PatternError, Rule, StoredPart, as_stacked, check_axes
from conformkit.spec.arrays import Array
from conformkit.spec.components import Parameter

__all__ = ["shapes", "single_rules", "to_canonical", "to_implementation"]


def to_implementation(
    rules: Iterable[Rule], canonical: Mapping[str, Array], parameters: Mapping[str, Parameter], sizes: Mapping[str, Any]
) -> dict[str, Array]:
    """Return the implementation's arrays by its own names; what is stored as it is, is the canonical array itself.

    `parameters` are the canonical ones of this instance, `sizes` the values that expressions may use.
    """
    found: dict[str, Array] = {}
    for place in _places_at(rules, parameters):
        whole = _stored(place, canonical, sizes)
        for target, array in zip(place.targets, whole if place.per_item else [whole], strict=True):
            if target in found:
                raise place.rule.error(f"{target} is already set by another rule")
            found[target] = np.asarray(array, order="C")
    return found


def to_canonical(
    rules: Iterable[Rule], theirs: Mapping[str, Array], parameters: Mapping[str, Parameter], sizes: Mapping[str, Any]
) -> dict[str, Array]:
    """Return canonical parameters from the implementation's arrays: the inverse of to_implementation.

    A part that several rules place is read by the first one.
    """
    found: dict[str, Array] = {}
    for place in _places_at(rules, parameters):
        if all(name in found for piece in place.pieces for name in piece.names):
            continue
        arrays = [_fitting(place.rule, target, theirs, place.shape) for target in place.targets]
        whole = np.stack(arrays) if place.per_item else arrays[0]
        for piece, array in zip(place.pieces, _unfuse(whole, place), strict=True):
            function = _function(place.rule, piece.part, sizes)
            for name, layer in zip(piece.names, array if piece.stacked else [array], strict=True):
                found.setdefault(name, _undo(function, layer).copy(order="C"))
    return found


def shapes(rules: Iterable[Rule], parameters: Mapping[str, Parameter]) -> dict[str, tuple[int, ...]]:
    """Return the shape that the rules want of each of the implementation's parameters."""
    return {target: place.shape for place in _places_at(rules, parameters) for target in place.targets}


def single_rules(rules: Iterable[Rule], parameters: Mapping[str, Parameter]) -> Iterator[Rule]:
    """Yield rules that say the same, each about one layer, and about one parameter where it was about all below a name.

    A rule that stacks all layers in one array stays as it is.
    """
    counted = (rule.at(n=_depth(rule, parameters)) for rule in rules)
    for rule in itertools.chain.from_iterable(_renamings(rule, parameters) for rule in counted):
        for layer in _layers(rule, parameters) if rule.layered else ():
            parts = tuple(replace(part, name=part.name.replace("{i}", layer)) for part in rule.parts)
            yield replace(rule.at(i=int(layer)), parts=parts)
        if not rule.layered:
            yield rule


@dataclass(frozen=True, slots=True)
class _Piece:
    """A part of one place; if stacked, `names` has one name per layer, and the axes begin with i.

    `shape` is that of the canonical parameter, of each layer by itself.
    """

    part: StoredPart
    names: tuple[str, ...]
    parameter: Parameter
    stacked: bool
    shape: tuple[int, ...]


@dataclass(frozen=True)
class _Place:
    """A rule for one layer. With one array per head (or per row, …), these are a leading axis."""

    rule: Rule
    targets: tuple[str, ...]
    pieces: tuple[_Piece, ...]
    groups: Groups

    @property
    def per_item(self) -> bool:
        return bool(self.rule.item)

    @cached_property
    def axes(self) -> str:
        """The axes of the whole, in the order in which it is stored."""
        return axes_of(self.groups)

    @cached_property
    def plain(self) -> bool:
        """Whether it is one canonical parameter as it is."""
        one, *others = self.pieces
        changed = bool(others) or self.per_item or one.stacked or one.part.expression != WEIGHT
        return not changed and self.axes == one.parameter.axes

    @property
    def joint(self) -> int | None:
        """The dimension along which parts are concatenated, None if they are stacked."""
        return next((n for n, group in enumerate(self.groups) if group[:1] == ("s",) and len(group) > 1), None)

    @cached_property
    def grouping(self) -> Grouping | None:
        """How parts are laid out in groups, if they differ in the number of heads."""
        return None if self.per_item else grouping(self.groups, [piece.parameter for piece in self.pieces])

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """The shape of each target."""
        if self.grouping:
            return self.grouping.shape
        if self.rule.axes is None and len(self.pieces) == 1 and not self.per_item:
            return self.pieces[0].parameter.shape
        extents = []
        for n, group in enumerate(self.groups):
            own = [math.prod(p.parameter.sizes[a] for a in group if a != "s") for p in self.pieces]
            if n != self.joint and len(set(own)) > 1:
                said = ", ".join(f"{x} in {p.part.name}" for x, p in zip(own, self.pieces, strict=True))
                where = " ".join(a for a in group if a != "s")
                advice = "put s first in a group to concatenate them"
                raise self.rule.error(f"the parts differ: {where} is {said}", advice)
            extents.append(sum(own) if n == self.joint else own[0] * (len(own) if "s" in group else 1))
        return tuple(extents[self.per_item :])


def _places_at(rules: Iterable[Rule], parameters: Mapping[str, Parameter]) -> tuple[_Place, ...]:
    """Return where rules put parameters of these sizes: it is asked again for every object that is built."""
    return _remembered(tuple(rules), tuple((name, p.axes, *p.sizes.items()) for name, p in parameters.items()))


@lru_cache(maxsize=256)
def _remembered(rules: tuple[Rule, ...], parameters: tuple[tuple[Any, ...], ...]) -> tuple[_Place, ...]:
    return tuple(_places(rules, {name: Parameter(axes, dict(sizes)) for name, axes, *sizes in parameters}))


def _places(rules: tuple[Rule, ...], parameters: Mapping[str, Parameter]) -> Iterator[_Place]:
    for layout in _laid_out(rules, tuple((name, parameter.axes) for name, parameter in parameters.items())):
        pieces = tuple(_piece(part, parameters) for part in layout.parts)
        items = range(pieces[0].parameter.sizes[layout.axis]) if layout.axis else ()
        targets = tuple(layout.own.at(**{layout.rule.item: item}).target for item in items) or (layout.own.target,)
        yield _Place(layout.rule, targets, pieces, layout.groups)


@dataclass(frozen=True, slots=True)
class _LaidPart:
    """What is known of a piece without sizes: `axes` of the whole, and by which letter others of them are called."""

    part: StoredPart
    names: tuple[str, ...]
    stacked: bool
    axes: str
    renamed: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class _Layout:
    """What is known of a place without sizes: `own` has the layer's number in its target, `axis` counts its arrays."""

    rule: Rule
    own: Rule
    parts: tuple[_LaidPart, ...]
    axis: str
    groups: Groups


@lru_cache(maxsize=256)
def _laid_out(rules: tuple[Rule, ...], axes: tuple[tuple[str, str], ...]) -> tuple[_Layout, ...]:
    """Return each rule for each layer that it is about.

    Names and axes alone decide it: sizes change with every object that is built, these hardly ever do.
    """
    known = dict(axes)
    found: list[_Layout] = []
    counted = (rule.at(n=_depth(rule, known)) for rule in rules)
    for rule in itertools.chain.from_iterable(_renamings(rule, known) for rule in counted):
        for layer in _layers(rule, known) if rule.layered else (None,):
            parts = tuple(_laid_part(rule, part, layer, known) for part in rule.parts)
            own_axes = _axes_of_all(known[parts[0].names[0]], stacked=parts[0].stacked)
            own = rule if layer is None else rule.at(i=int(layer))
            found.append(_Layout(rule, own, parts, rule.axis(own_axes), _wanted(rule, own_axes)))
    return tuple(found)


def _depth(rule: Rule, parameters: Collection[str]) -> int:
    """Return the number of layers: of the whole, or of the encoder or decoder that a rule is about."""
    side = re.escape(rule.parts[0].name.partition(".")[0])
    layers = re.compile(rf"(?:{side}\.)?(?:blocks|layers)\.(\d+)\..+")
    return len({found[1] for found in map(layers.fullmatch, parameters) if found})


def _renamings(rule: Rule, parameters: Collection[str]) -> Iterator[Rule]:
    """Replace a rule that ends in * by one rule for every name below it."""
    if not rule.subtree:
        yield rule
        return
    below = re.compile(re.escape(rule.parts[0].name[:-1]).replace(r"\{i\}", r"(\d+)") + r"(.+)")
    for match in filter(None, map(below.fullmatch, parameters)):
        one = replace(rule, target=rule.target[:-1] + match.groups()[-1])
        yield Rule(one.at(i=int(match[1])).target if rule.layered else one.target, (StoredPart(match[0]),))


def _layers(rule: Rule, parameters: Collection[str]) -> list[str]:
    pattern = re.compile(re.escape(rule.parts[0].name).replace(r"\{i\}", r"(\d+)"))
    found = [match[1] for match in map(pattern.fullmatch, parameters) if match]
    if not found:
        raise _absent(rule, rule.parts[0].name, parameters)
    return sorted(found, key=int)


def _axes_of_all(axes: str, *, stacked: bool) -> str:
    return f"i {axes}" if stacked else axes


def _laid_part(rule: Rule, part: StoredPart, layer: str | None, axes: Mapping[str, str]) -> _LaidPart:
    """Return a part with its name in each layer, all of these where one array holds them."""
    stacked = rule.stacks(part)
    layers = _layers(Rule(rule.target, (part,)), axes) if stacked else [layer or ""]
    found = tuple(part.name.replace("{i}", number) for number in layers)
    for name in found:
        if name not in axes:
            raise _absent(rule, name, axes)
    check_axes(rule, part, axes[found[0]])
    own = _axes_of_all(axes[found[0]], stacked=stacked)
    stored = as_stacked(rule, own)
    renamed = dict(zip(letters_of(groups_of(own)), letters_of(groups_of(stored)), strict=True)) if stored != own else {}
    return _LaidPart(part, found, stacked, stored, renamed)


def _piece(laid: _LaidPart, parameters: Mapping[str, Parameter]) -> _Piece:
    own = parameters[laid.names[0]]
    shape = own.shape
    if laid.stacked:
        own = Parameter(laid.axes, {**own.sizes, "i": len(laid.names)})
    if laid.renamed:
        own = Parameter(laid.axes, {laid.renamed.get(axis, axis): size for axis, size in own.sizes.items()})
    return _Piece(laid.part, laid.names, own, laid.stacked, shape)


def _absent(rule: Rule, name: str, parameters: Collection[str]) -> PatternError:
    general = {re.sub(r"(?<=\.)\d+(?=\.)", "{i}", known) for known in parameters}
    return rule.error(f"this variant has no {name}", hint(nearest(name, general)))


def _wanted(rule: Rule, axes: str) -> Groups:
    """Return how the axes of the first part are grouped, those that count arrays first."""
    groups = groups_of(rule.axes or axes)
    if item := rule.axis(axes):
        rest = tuple(tuple(a for a in group if a != item) for group in groups)
        groups = ((item,), *(r for r, group in zip(rest, groups, strict=True) if r or not group))
    return groups


def _stored(place: _Place, canonical: Mapping[str, Array], sizes: Mapping[str, Any]) -> Array:
    """Return the array at a place, or one with a leading axis for several."""
    if place.plain:
        return _fitting(place.rule, place.pieces[0].names[0], canonical, place.pieces[0].shape)
    arrays = []
    for piece in place.pieces:
        layers = [_fitting(place.rule, name, canonical, piece.shape) for name in piece.names]
        stored = [_apply(_function(place.rule, piece.part, sizes), layer) for layer in layers]
        arrays.append(np.stack(stored) if piece.stacked else stored[0])
    return _fuse(arrays, place)


def _fuse(arrays: list[Array], place: _Place) -> Array:
    """Rearrange parts to the wanted axes and join them."""
    parts = [piece.parameter for piece in place.pieces]
    place.shape  # noqa: B018  (raises where parts do not fit together)
    if len(parts) == 1:
        return _rearrange(arrays[0], parts[0].axes, place.axes, parts[0].sizes)
    if place.grouping:
        return place.grouping.fuse(arrays)
    if place.joint is not None:
        plain = axes_of(_without_s(place.groups))
        moved = [_rearrange(a, p.axes, plain, p.sizes) for a, p in zip(arrays, parts, strict=True)]
        return np.concatenate(moved, axis=place.joint)
    order = letters_of(place.groups)
    each = " ".join(a for a in order if a != "s")
    moved = [_rearrange(a, p.axes, each, p.sizes) for a, p in zip(arrays, parts, strict=True)]
    stacked = np.stack(moved, axis=order.index("s"))
    return _rearrange(stacked, " ".join(order), place.axes, {})


def _unfuse(whole: Array, place: _Place) -> list[Array]:
    """Undo _fuse."""
    parts = [piece.parameter for piece in place.pieces]
    if len(parts) == 1:
        return [_rearrange(whole, place.axes, parts[0].axes, parts[0].sizes)]
    if place.grouping:
        return place.grouping.unfuse(whole)
    if place.joint is not None:
        plain = _without_s(place.groups)
        extents = [math.prod(p.sizes[a] for a in plain[place.joint]) for p in parts]
        slices = np.split(whole, np.cumsum(extents)[:-1], axis=place.joint)
        return [_rearrange(a, axes_of(plain), p.axes, p.sizes) for a, p in zip(slices, parts, strict=True)]
    order = letters_of(place.groups)
    each = " ".join(a for a in order if a != "s")
    apart = _rearrange(whole, place.axes, "s " + each, {**parts[0].sizes, "s": len(parts)})
    return [_rearrange(a, each, p.axes, p.sizes) for a, p in zip(apart, parts, strict=True)]


def _rearrange(array: Array, before: str, after: str, sizes: Mapping[str, int]) -> Array:
    if before == after:
        return array
    known = {a: sizes[a] for a in letters_of(groups_of(before)) if a in sizes}
    return np.asarray(rearrange(array, f"{before} -> {after}", **known))


def _fitting(rule: Rule, name: str, arrays: Mapping[str, Array], shape: tuple[int, ...]) -> Array:
    if name not in arrays:
        raise rule.error(f"there is no parameter {name}", hint(nearest(name, arrays)))
    if arrays[name].shape != shape:
        raise rule.error(f"{name} has the shape {arrays[name].shape}, expected {shape}")
    return arrays[name]


def _function(rule: Rule, part: StoredPart, sizes: Mapping[str, Any]) -> Affine | None:
    if part.expression == WEIGHT:
        return None
    try:
        return affine(part.expression, WEIGHT, sizes)
    except ExpressionError as error:
        raise rule.error(error.problem, hint(error.nearest)) from None


def _apply(function: Affine | None, array: Array) -> Array:
    return array if function is None else (array * function.scale + function.offset).astype(array.dtype)


def _undo(function: Affine | None, array: Array) -> Array:
    return array if function is None else ((array - function.offset) / function.scale).astype(array.dtype)


def _without_s(groups: Groups) -> Groups:
    return tuple(tuple(a for a in group if a != "s") for group in groups)
