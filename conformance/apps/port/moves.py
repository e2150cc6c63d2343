"""From the canonical weights of one variant to those of another that computes the same: what moves where, and how."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from einops import rearrange, repeat

from conformkit.conformance.binding.axes import groups_of, letters_of
from conformkit.conformance.binding.rules import folded
from conformkit.spec.arrays import Array
from conformkit.spec.components import COMPONENTS, Parameter
from conformkit.spec.positional_encoding import first_position
from conformkit.spec.rotary import frequencies, magnitude, rotated_width, turning_width
from conformkit.spec.variants import LATENTS, Variant, described

__all__ = ["Added", "Front", "Move", "MovePlan", "MoveStep", "Rearranged", "Rows", "Scaled", "numbered", "planned"]

Read = Callable[[str], Array]


@dataclass(frozen=True, slots=True)
class Rearranged:
    """An einops pattern; `repeats`: an axis is new."""

    pattern: str
    sizes: Mapping[str, int]
    repeats: bool = False

    def __call__(self, array: Array) -> Array:
        """Apply it to an array."""
        return np.asarray((repeat if self.repeats else rearrange)(array, self.pattern, **self.sizes))


@dataclass(frozen=True, slots=True)
class Front:
    """A rearrangement of the first `count` entries along an axis alone: the features of a head that rotate."""

    step: Rearranged
    axis: int
    count: int

    def __call__(self, array: Array) -> Array:
        """Apply it to an array."""
        front, rest = np.split(array, [self.count], axis=self.axis)
        return np.concatenate([self.step(front), rest], axis=self.axis)


@dataclass(frozen=True, slots=True)
class Scaled:
    """A factor, in float64: the stored format would round a second time."""

    factor: float

    def __call__(self, array: Array) -> Array:
        """Apply it to an array."""
        return np.asarray(array, np.float64) * self.factor


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows from `skip` on, behind `zeros` rows of zeros."""

    skip: int
    zeros: int

    def __call__(self, array: Array) -> Array:
        """Apply it to an array."""
        return np.concatenate([np.zeros((self.zeros, *array.shape[1:]), array.dtype), array[self.skip :]])


@dataclass(frozen=True, slots=True)
class Added:
    """A number that is added to each entry, in float64: what is subtracted again must leave the entry as it was."""

    number: float

    def __call__(self, array: Array) -> Array:
        """Apply it to an array."""
        return np.asarray(array, np.float64) + self.number


MoveStep = Rearranged | Front | Scaled | Rows | Added


@dataclass(frozen=True, slots=True)
class Move:
    """One canonical parameter of ours: the one of theirs that it is made from, None for zeros, and the steps."""

    target: str
    source: str | None
    steps: tuple[MoveStep, ...] = ()

    @property
    def exact(self) -> bool:
        """Whether it only moves numbers."""
        return not any(isinstance(step, Scaled | Added) for step in self.steps)


@dataclass(frozen=True, slots=True)
class MovePlan:
    """How canonical weights of theirs become canonical weights of ours; names have {i} for a layer.

    `obstacles` are choices in which the two compute differently, as pairs of words: theirs, ours; `missing` are
    parameters of theirs that ours has no place for.
    """

    moves: Mapping[str, Move]
    parameters: Mapping[str, Parameter]
    obstacles: Mapping[str, tuple[str, str]]
    missing: tuple[str, ...]

    def sources(self, name: str) -> str | None:
        """Return the name of theirs from which one of ours is made."""
        source = self.moves[folded(name)].source
        return None if source is None else numbered(source, name)

    def array(self, name: str, read: Read) -> Array:
        """Return one canonical parameter of ours from those of theirs."""
        source = self.sources(name)
        if source is None:
            return np.zeros(self.parameters[name].shape, np.float32)
        return self.moved(name, read(source))

    def moved(self, name: str, array: Array) -> Array:
        """Return one canonical parameter of ours from the one of theirs."""
        for step in self.moves[folded(name)].steps:
            array = step(array)
        return array

    @property
    def moves_numbers(self) -> bool:
        """Whether anything is done to some parameter on its way."""
        return any(move.steps for move in self.moves.values())


def numbered(general: str, name: str) -> str:
    """Return a name with the number of the layer of another one."""
    layer = next((part for part in name.split(".") if part.isdecimal()), "")
    return general.replace("{i}", layer)


def planned(theirs: Variant, ours: Variant, sizes: Mapping[str, Any], own: Mapping[str, Any]) -> MovePlan:
    """Return the plan for these sizes: of theirs, and of ours, which may have more heads of keys and values."""
    model = COMPONENTS["TinyTransformerLM"]
    there, here = model.parameters(sizes, theirs), model.parameters(own, ours)
    given, wanted = _general(there), _general(here)
    moves = {name: _move(name, given, theirs, ours, sizes, own) for name in wanted}
    used = {move.source for move in moves.values()}
    missing = tuple(name for name in given if name not in used and not _shows_nowhere(name, theirs))
    return MovePlan(moves, here, dict(_obstacles(theirs, ours, sizes, own)), missing)


def _general(parameters: Mapping[str, Parameter]) -> dict[str, Parameter]:
    return {folded(name): parameter for name, parameter in parameters.items()}


def _shows_nowhere(name: str, variant: Variant) -> bool:
    """Whether a parameter changes no output: a bias of keys moves all scores of a query alike, unless it is rotated."""
    return name.endswith("attention.k.bias") and variant.positions != "rotary"


def _move(
    name: str, given: Mapping[str, Parameter], theirs: Variant, ours: Variant, sizes: Mapping[str, Any],
    own: Mapping[str, Any],
) -> Move:  # fmt: skip
    if name == "head.weight" and theirs.tied:
        return Move(name, "embedding.weight")
    if name not in given:
        return Move(name, None)
    steps: list[MoveStep] = []
    if name == "embedding.weight" and theirs.embedding_scale != ours.embedding_scale and not ours.tied:
        root = math.sqrt(sizes["d_model"])
        steps.append(Scaled(root if theirs.embedding_scale else 1 / root))
    if theirs.norm_weight != ours.norm_weight and re.search(r"norm\w*\.weight$", name):
        steps.append(Added(1.0 if theirs.norm_weight == "offset" else -1.0))
    if name == "positions.weight":
        skip, zeros = first_position(theirs, sizes), first_position(ours, own)
        steps += [Rows(skip, zeros)] if skip != zeros else []
    _, _, part = name.rpartition("attention.")
    axes = given[name].axes
    rotating = ("q_rotary.", "k_rotary.") if theirs.has_latent else ("q.", "k.", "q_norm.", "k_norm.")
    turned = part.startswith(rotating) and theirs.positions == "rotary"
    if turned and theirs.rotary_layout != ours.rotary_layout:
        heads, width = sizes["num_heads" if part[0] == "q" else "kv_heads"], turning_width(sizes, theirs)
        steps += _turned(axes, heads, width, theirs)
    if part.startswith(("k.", "v.")) and own["kv_heads"] > sizes["kv_heads"]:
        groups = own["kv_heads"] // sizes["kv_heads"]
        pattern = f"{axes} -> {axes.replace('h', 'h g')}"
        steps.append(Rearranged(pattern, {"h": sizes["kv_heads"], "g": groups}, repeats=True))
    return Move(name, name, tuple(steps))


def _turned(axes: str, heads: int, width: int, theirs: Variant) -> Iterator[MoveStep]:
    """Yield the steps from rotary pairs to halves, or back, of the features of each head that rotate."""
    count, extents = rotated_width(width, theirs), {"h": heads} if "h" in axes else {}
    before, after = ("p e", "e p") if theirs.rotary_layout == "halves" else ("e p", "p e")
    if count == width:
        whole = axes if "(" in axes else axes.replace("d", "(d)")
        yield Rearranged(f"{whole.replace('d', before)} -> {whole.replace('d', after)}", {**extents, "p": 2})
        return
    opened = axes.replace("(h d)", "h d")
    if opened != axes:
        yield Rearranged(f"{axes} -> {opened}", extents)
    pattern = f"{opened.replace('d', f'({before})')} -> {opened.replace('d', f'({after})')}"
    yield Front(Rearranged(pattern, {"p": 2}), opened.split().index("d"), count)
    if opened != axes:
        yield Rearranged(f"{opened} -> {axes}", {})


_POSITIONS = 24
"""Positions that are compared: wider windows do not show."""
_ALIKE = (
    "norm", "norm_eps", "norm_deviation", "norm_weight", "placement", "activation", "gated",
    "gate_limit", "gate_offset", "output_projection", "positions", "embedding_norm", "final_norm", "head_width",
    *LATENTS, "qk_norm", "score_cap", "score_scale", "logit_cap", "tied_scale", "sinks",
    "output_gate", "experts", "experts_active", "expert_weights", "shared_expert",
)  # fmt: skip
"""Choices that no change of weights makes up for."""
_WINDOWS = ("window", "window_layers", "window_rotary_base")
_ONLY_WITH = {
    "rotary_base": "rotary", "sinusoid_layout": "sinusoidal",
    "sinusoid_frequencies": "sinusoidal",
    "position_offset": "sinusoidal", "rotary_fraction": "rotary", "rotary_scaling": "rotary", "alibi_slopes": "alibi",
    "relative_buckets": "relative", "relative_distance": "relative",
}  # fmt: skip
_OF_SCALING = ("rotary_factor", "rotary_length", "rotary_low", "rotary_high", "rotary_whole_pairs", "rotary_magnitude")


def _obstacles(  # noqa: C901 - a list of cases
    theirs: Variant, ours: Variant, sizes: Mapping[str, Any], own: Mapping[str, Any]
) -> Iterator[tuple[str, tuple[str, str]]]:
    choices = [*_ALIKE, *(c for c, kind in _ONLY_WITH.items() if kind == theirs.positions == ours.positions)]
    if theirs.positions == "rotary" and "none" != theirs.rotary_scaling == ours.rotary_scaling:
        choices += [] if _turn_alike(theirs, ours, turning_width(sizes, theirs)) else _OF_SCALING
    for choice in choices:
        one, other = getattr(theirs, choice), getattr(ours, choice)
        if choice == "norm_deviation" and theirs.norm == "rmsnorm":
            continue
        if choice == "norm_weight" and "none" not in (theirs.norm_weight, ours.norm_weight):
            continue
        if choice == "head_width":
            one, other = sizes["head_width"], own["head_width"]
        if one != other:
            yield choice, (described(choice, one), described(choice, other))
    for choice in () if _layers_alike(theirs, ours, sizes["num_layers"]) else _WINDOWS:
        one, other = getattr(theirs, choice), getattr(ours, choice)
        if one != other:
            yield choice, (described(choice, one), described(choice, other))
    if ours.tied and not theirs.tied:
        yield "tied", (described("tied", False), described("tied", True))
    if ours.tied and ours.embedding_scale != theirs.embedding_scale:
        yield "embedding_scale", tuple(described("embedding_scale", v.embedding_scale) for v in (theirs, ours))  # type: ignore[misc]
    if own["kv_heads"] % sizes["kv_heads"]:
        yield "kv_heads", tuple(f"{n} heads of keys and values" for n in (sizes["kv_heads"], own["kv_heads"]))  # type: ignore[misc]


def _turn_alike(theirs: Variant, ours: Variant, width: int) -> bool:
    """Whether heads of this width turn by the same angles: a value that is not declared has a default."""
    here, there = (frequencies(rotated_width(width, variant), variant) for variant in (theirs, ours))
    return np.array_equal(here, there) and magnitude(theirs) == magnitude(ours)


def _layers_alike(theirs: Variant, ours: Variant, layers: int) -> bool:
    """Whether each layer has the same window on the positions that are compared, and turns as often."""
    same_base = ours.but(rotary_base=theirs.rotary_base)
    return all(_layer(theirs, n) == _layer(same_base, n) for n in range(layers))


def _layer(variant: Variant, number: int) -> tuple[float, float]:
    """Return the window of a layer, if it shows, and the base of its rotary positions."""
    own = variant.of_layer(number)
    shown = own.window if 0 < own.window < _POSITIONS else math.inf
    return shown, own.turning.rotary_base if own.positions == "rotary" else 0.0


def letters(parameter: Parameter) -> tuple[str, ...]:
    """Return the axes of a parameter, one by one."""
    return letters_of(groups_of(parameter.axes))
