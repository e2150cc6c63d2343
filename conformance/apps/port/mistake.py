"""Known mistakes of conversions: what each makes of the right weights.

A file `mistakes/<id>.toml` holds a title, how the sentence "exactly your numbers with …" goes on, which may name
sizes and choices in braces; `when`, what must be so for it to be possible; `behind`, mistakes that are said in its
place where they give the same numbers; and what it does, in one of these ways.
`parts` are canonical names, with {i} for a layer and * for weight and bias.

    [[taken]]      to, of       each part filled with another one
    [[read]]       parts, stored, taken     parts fused in some axes, as in conform.toml, and read in others;
                   order, read_as    the numbers of the parts in the order in which they are stored, or read
                   heads    how many heads of queries they are read with, others in proportion: an expression
    [[permuted]]   parts, pattern, heads, of      an einops pattern of its rows; `of` ours (right) or theirs (unmoved);
                   reversed    its heads in reverse order before that
    [[folded]]     parts, norm     columns multiplied by the weights of a norm before it
    [[centered]]   parts, axis     the mean over an axis, or over the residual path (m), subtracted
    [[value]]      parts, expression       an expression over _ and the sizes
    [[rows]]       parts, shift or reversed
    [layers]       of           the layer that a block holds: an expression over i and n; text: sorted as text
    [rounded]      format
    [variant]                   choices of the code, as in conform.toml: no weights are wrong
    [[definition]] at, find, becomes    a text in a function of the law, `module:function` or
                   `module:Class.method`: the code computes so
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np
from einops import EinopsError, rearrange

from conformkit.conformance.apps.port.moves import MovePlan, Read, numbered, planned
from conformkit.conformance.apps.port.patched import FormulaPatch
from conformkit.conformance.assertions.formats import rounded
from conformkit.conformance.binding.affine import Affine
from conformkit.conformance.binding.axes import groups_of, letters_of
from conformkit.conformance.binding.expressions import evaluate
from conformkit.conformance.binding.patterns import to_canonical, to_implementation
from conformkit.conformance.binding.rules import PatternError, Rule, StoredPart, folded
from conformkit.spec.arrays import Array
from conformkit.spec.components import Parameter
from conformkit.spec.rotary import turns_whole_pairs
from conformkit.spec.variants import Variant, choices, described

__all__ = ["Mistake", "Right", "foremost", "mistakes"]


@dataclass(frozen=True, slots=True)
class Right:
    """Right weights of ours, and what they were made from."""

    plan: MovePlan
    theirs: Read
    """Canonical weights of theirs."""
    ours: Read
    variants: tuple[Variant, Variant]
    """Those of theirs and of ours."""
    sizes: Mapping[str, Any]
    own: Mapping[str, Any]

    @property
    def parameters(self) -> Mapping[str, Parameter]:
        """The canonical parameters of ours."""
        return self.plan.parameters

    def before(self) -> Right:
        """Return theirs as a conversion to themselves, in which nothing is moved."""
        theirs = self.variants[0]
        plan = planned(theirs, theirs, self.sizes, self.sizes)
        return Right(plan, self.theirs, self.theirs, (theirs, theirs), self.sizes, self.sizes)

    def names(self, pattern: str) -> list[str]:
        """Return the names of ours that a pattern of a file means."""
        return [name for name in self.parameters if fnmatchcase(folded(name), pattern)]


@dataclass(frozen=True, slots=True)
class Mistake:
    """A known mistake, as its file says."""

    id: str
    title: str
    when: Mapping[str, Any]
    behind: tuple[str, ...]
    body: Mapping[str, Any]

    @property
    def choices(self) -> Mapping[str, Any]:
        """The choices of the code that it changes."""
        return dict(self.body.get("variant", {}))

    @property
    def patches(self) -> tuple[FormulaPatch, ...]:
        """The lines of the definition that it changes."""
        return tuple(FormulaPatch(**table) for table in self.body.get("definition", ()))

    @property
    def of_code(self) -> bool:
        """Whether it is one of the code, not of its weights."""
        return bool(self.choices or self.patches)

    @property
    def of_layout(self) -> bool:
        """Whether it only has numbers of a projection in other places, as a wrong guess about its layout has."""
        return bool({"read", "permuted"} & set(self.body))

    def said(self, right: Right) -> str:
        """Return how a sentence about your numbers goes on, with the sizes and choices of this conversion."""
        known = {n: _written(n, getattr(right.variants[0], n)) for n in choices()}
        words = self.title.format_map({**known, **right.sizes})
        return f"if {words}" if words.startswith("your code") else f"with {words}"

    def possible(self, right: Right) -> bool:
        """Whether it can be made here."""
        stands = all(_FACTS[name](right) == value for name, value in self.when.items() if name in _FACTS)
        fits = stands and self.fits(right.variants[1])
        turned = right.variants[1].but(**self.choices)
        fits = fits and turns_whole_pairs(int(right.own["head_width"]), turned)
        return fits and all(self._divides(table, right) for table in self.body.get("permuted", ()))

    def fits(self, variant: Variant) -> bool:
        """Whether code of this variant can make it."""
        return all(getattr(variant, name) == value for name, value in self.when.items() if name not in _FACTS)

    def _divides(self, table: Mapping[str, Any], right: Right) -> bool:
        """Whether the rows of all its parts can be counted as its pattern does."""
        first = [n for part in table["parts"] for n in right.names(part) if ".0." in n]
        return all(_permuted(name, table, right) is not None for name in first)

    def altered(self, name: str, right: Right) -> Array | None:
        """Return what it makes of one canonical parameter of ours; None if nothing. NaN stands for any number.

        Only the first table that is about the parameter counts.
        """
        for kind, alter in _ALTER.items():
            tables = self.body.get(kind, ())
            for table in (tables,) if isinstance(tables, dict) else tables:
                if _is_about(kind, table, name):
                    return alter(name, table, right)
        return None

    def taken_from(self, name: str, right: Right) -> str | None:
        """Return the parameter with whose numbers it fills another one; None if it does not fill it."""
        tables = self.body.get("taken", ())
        for table in (tables,) if isinstance(tables, dict) else tables:
            if _is_about("taken", table, name):
                return _source_of(name, table, right)
        return None

    def weights(self, right: Right) -> Iterator[tuple[str, Array]]:
        """Yield the canonical parameters that it changes, with what it makes of them."""
        for name in right.parameters:
            array = self.altered(name, right)
            if array is not None:
                yield name, array


_FACTS: Mapping[str, Callable[[Right], Any]] = {
    "grouped": lambda right: right.own["kv_heads"] < right.own["num_heads"],
    "expanded": lambda right: right.own["kv_heads"] > right.sizes["kv_heads"],
    "theirs_layout": lambda right: right.variants[0].rotary_layout,
    "partial": lambda right: right.variants[0].rotary_fraction < 1,
    "moved": lambda right: right.variants[0].rotary_layout != right.variants[1].rotary_layout,
    "limited": lambda right: right.variants[1].gate_limit > 0,
    "offset_moved": lambda right: right.variants[0].norm_weight != right.variants[1].norm_weight,
}
"""What `when` may name besides choices: what is so in a conversion."""


def _written(choice: str, value: Any) -> str:
    """Return a number as it is, and a word as what it stands for."""
    return (
        f"{value:g}" if isinstance(value, float) else described(choice, value) if choice == "activation" else str(value)
    )


def _is_about(kind: str, table: Mapping[str, Any], name: str) -> bool:
    """Whether a table of a file changes a canonical parameter."""
    if kind == "layers":
        return folded(name) != name
    parts = table["to"] if kind == "taken" else table.get("parts", ["*"])
    return any(fnmatchcase(folded(name), part) for part in parts)


def _source_of(name: str, table: Mapping[str, Any], right: Right) -> str | None:
    pairs = zip(table["to"], table["of"], strict=True)
    to, of = next(pair for pair in pairs if fnmatchcase(folded(name), pair[0]))
    kind = name.rpartition(".")[2]
    source = numbered(of.replace("*", kind) if to.endswith("*") else of, name)
    return source if source in right.parameters else None


def _taken(name: str, table: Mapping[str, Any], right: Right) -> Array | None:
    source = _source_of(name, table, right)
    if source is None:
        return None
    array = right.ours(source)
    if array.size != math.prod(right.parameters[name].shape):
        return None
    return array.reshape(right.parameters[name].shape)


def _read(name: str, table: Mapping[str, Any], right: Right) -> Array | None:
    names = [numbered(part, name) for part in table["parts"]]
    if any(n not in right.parameters for n in names):
        return None
    known = {n: right.parameters[n] for n in names}
    parts = tuple(StoredPart(n) for n in names)
    each = "e " if right.parameters[name].axes.startswith("e ") else ""  # experts: one after the other
    stored = Rule("x", tuple(parts[n] for n in table.get("order", range(len(parts)))), each + table["stored"])
    taken = Rule("x", tuple(parts[n] for n in table.get("read_as", range(len(parts)))), each + table["taken"])
    try:
        whole = to_implementation([stored], {n: right.ours(n) for n in names}, known, right.own)["x"]
        other = to_implementation([taken], {n: right.ours(n) for n in names}, known, right.own)["x"]
        if table.get("heads"):
            known = {n: _in_heads(p, evaluate(table["heads"], {**right.own}), right) for n, p in known.items()}
        return to_canonical([taken], {"x": whole.reshape(other.shape)}, known, right.own)[name]
    except (PatternError, EinopsError, ValueError):
        return None


def _in_heads(parameter: Parameter, heads: Any, right: Right) -> Parameter:
    """Return a projection as one of another number of heads, keys and values in proportion."""
    h, d = parameter.sizes["h"], parameter.sizes["d"]
    count, rest = divmod(h * int(heads), right.own["num_heads"])
    if rest or not count or h * d % count:
        raise ValueError(f"{h} heads of {d} features are no {heads}")
    return Parameter(parameter.axes, {**parameter.sizes, "h": count, "d": h * d // count})


def _permuted(name: str, table: Mapping[str, Any], right: Right) -> Array | None:
    pattern, part = str(table["pattern"]), name.rpartition("attention.")[2]
    source = name if table.get("of") != "theirs" else right.plan.sources(name)
    if source is None:
        return None
    array = (right.theirs if table.get("of") == "theirs" else right.ours)(source)
    if table.get("reversed"):
        heads = right.own["kv_heads" if part[0] in "kv" else "num_heads"]
        array = array.reshape(heads, -1, *array.shape[1:])[::-1].reshape(array.shape)
    if array.ndim == 1:
        pattern = pattern.replace(" m", "")
    sizes = right.own if table.get("of") != "theirs" else right.sizes
    heads = sizes["kv_heads" if part[0] in "kv" else "num_heads"]
    if table.get("heads"):
        heads = int(evaluate(table["heads"], {**right.own}))
    letters = letters_of(groups_of(pattern.partition("->")[0]))
    groups, few = right.own["num_heads"] // right.own["kv_heads"], right.sizes["kv_heads"]
    extents = {"h": heads, "p": 2, "g": right.own["kv_heads"], "r": groups, "c": few}
    if {"c", "g"} <= set(letters):
        extents |= {"g": right.own["kv_heads"] // few}
    try:
        found = np.asarray(rearrange(array, pattern, **{n: e for n, e in extents.items() if n in letters}))
    except EinopsError:
        return None
    return found if found.shape == right.parameters[name].shape else None


def _valued(name: str, table: Mapping[str, Any], right: Right) -> Array:
    function = evaluate(table["expression"], {**right.own, "_": Affine(1.0, 0.0)})
    return np.asarray(right.ours(name) * function.scale + function.offset)


def _rows(name: str, table: Mapping[str, Any], right: Right) -> Array:
    array = right.ours(name)
    if table.get("reversed"):
        return array[::-1]
    shift, found = int(table["shift"]), np.full(array.shape, np.nan)
    if shift > 0:
        found[:-shift] = array[shift:]
    else:
        found[-shift:] = array[:shift]
    return found


def _of_layer(name: str, table: Mapping[str, Any], right: Right) -> Array:
    expression, layers = table["of"], right.own["num_layers"]
    at = int(next(part for part in name.split(".") if part.isdecimal()))
    if expression == "text":
        source = sorted(range(layers), key=str)[at]
    else:
        source = int(evaluate(expression, {"i": at, "n": layers}))
    if not 0 <= source < layers:
        return np.full(right.parameters[name].shape, np.nan)
    return right.ours(folded(name).replace("{i}", str(source)))


def _folded(name: str, table: Mapping[str, Any], right: Right) -> Array | None:
    norm = numbered(f"{table['norm']}.weight", name)
    return right.ours(name) * right.ours(norm) if norm in right.parameters else None


def _centered(name: str, table: Mapping[str, Any], right: Right) -> Array:
    array, axis = right.ours(name), table["axis"]
    if axis == "m":
        axis = right.parameters[name].axes.split().index("m")
    return np.asarray(array - array.mean(axis=axis, keepdims=True))


_FLOAT8 = {"float8": (4, -5), "float8, e5m2": (3, -13)}
"""Significant bits, and the exponent below which numbers are subnormal, as np.frexp counts."""


def _rounded(name: str, table: Mapping[str, Any], right: Right) -> Array:
    array, form = right.ours(name), table["format"]
    if form == "int8":
        step = float(np.abs(array).max(initial=0.0)) / 127 or 1.0
        return np.asarray(np.round(array / step) * step)
    if form in _FLOAT8:
        kept, least = _FLOAT8[form]
        step = np.exp2(np.maximum(np.frexp(array)[1], least) - kept)
        return np.asarray(np.round(array / step) * step)
    if form == "bfloat16, cut off":
        bits = np.atleast_1d(array.astype(np.float32)).view(np.uint32) & np.uint32(0xFFFF0000)
        return bits.view(np.float32).reshape(array.shape).astype(np.float64)
    return rounded(np.asarray(array, np.float64), form)


_ALTER: Mapping[str, Callable[[str, Mapping[str, Any], Right], Array | None]] = {
    "taken": _taken, "read": _read, "permuted": _permuted, "value": _valued, "rows": _rows, "layers": _of_layer,
    "folded": _folded, "centered": _centered, "rounded": _rounded,
}  # fmt: skip


@cache
def mistakes() -> dict[str, Mistake]:
    """Return all known mistakes by id."""
    folder = files(__package__) / "mistakes"
    found: dict[str, Mistake] = {}
    for entry in sorted(folder.iterdir(), key=lambda entry: entry.name):
        if entry.name.endswith(".toml"):
            own = tomllib.loads(entry.read_text(encoding="utf-8"))
            name = entry.name.removesuffix(".toml")
            found[name] = Mistake(name, own.pop("title"), own.pop("when", {}), tuple(own.pop("behind", ())), own)
    return found


def foremost(alike: Iterable[Mistake]) -> list[Mistake]:
    """Return which of the mistakes that give the same numbers are said."""
    found = list(alike)
    there = {mistake.id for mistake in found}
    return [mistake for mistake in found if not there & set(mistake.behind)]
