"""Rules for weights: one line of `conform.toml` that says where canonical parameters lie, target = source.

    "c_attn.weight" = "q.weight, k.weight, v.weight -> m (s h d)"

The source names canonical parts and the axes in which the target holds them, in einops notation: the letters are
those of the canonical axes (spec/components.py), `s` counts the listed parts, `1` is an axis of one entry, and without
an arrow the axes are the canonical ones. If `s` comes first in a group, the parts are concatenated, and may differ
in size. {h} in the target: one array per head; {t}: one per row, {f}: one per hidden unit,
{e}: one per expert. {i} on both sides: one per
layer; in the source only: layers are stacked on the axis `i`. {2*i+1} in the target counts every second entry of a
list, and {n} is the number of layers (marks.py). A part may be an affine function of itself (`norm1.weight - 1`).
`*` at both ends: everything below.

    PatternError       a rule is invalid, or does not fit; names both sides, the problem and advice
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from conformkit.conformance.binding.axes import groups_of, letters_of
from conformkit.conformance.binding.factors import FACTORS, factor_of, written_out
from conformkit.conformance.binding.language import ExpressionError, names
from conformkit.conformance.binding.marks import ITEMS, MarkError, counted, counters, unmarked
from conformkit.conformance.binding.messages import hint, nearest, shown
from conformkit.conformance.binding.toml_text import line

__all__ = [
    "WEIGHT",
    "PatternError",
    "Rule",
    "StoredPart",
    "as_stacked",
    "check_axes",
    "check_rule",
    "components_at",
    "describe",
    "expand",
    "folded",
    "parse_rule",
]  # fmt: skip

WEIGHT = "_"
"""Stands for the part itself in its expression."""
_NAME = re.compile(r"(?<![\w.])[A-Za-z_]\w*(?:\.(?:\w+|\{i\}))+")
_AXES = re.compile(r"(?:[A-Za-z]\b|1\b|\((?: *[A-Za-z]\b)+ *\)| )+")


class PatternError(ValueError):
    """A rule for weights that is invalid, or does not fit."""

    def __init__(self, target: str, source: str, problem: str, advice: str = "") -> None:
        super().__init__(f"{shown(target, 200)} = {shown(source, 200)}: {problem}{'; ' if advice else ''}{advice}")
        self.target, self.source, self.problem, self.advice = target, source, problem, advice


@dataclass(frozen=True, slots=True)
class StoredPart:
    """A canonical name and the expression of it that is stored, `_ - 1`."""

    name: str
    expression: str = WEIGHT

    @property
    def factor(self) -> str:
        """The name of the known factor with which it is stored; nothing if there is none, or an unknown one."""
        return factor_of(self.name, self.expression)

    @property
    def text(self) -> str:
        """The part in conform.toml notation."""
        if self.factor and names(self.expression) != {WEIGHT}:
            return f"{self.factor}({self.name})"
        return re.sub(rf"\b{WEIGHT}\b", lambda _: self.name, self.expression)


@dataclass(frozen=True, slots=True)
class Rule:
    """Where canonical parts are; `axes` None: the canonical axes."""

    target: str
    parts: tuple[StoredPart, ...]
    axes: str | None = None

    @property
    def source(self) -> str:
        """The right-hand side."""
        arrow = "" if self.axes is None else f" -> {self.axes}"
        return ", ".join(part.text for part in self.parts) + arrow

    @property
    def subtree(self) -> bool:
        """Whether it stands for everything below a name."""
        return self.target.endswith("*")

    def stacks(self, part: StoredPart) -> bool:
        """Whether all layers of a part are in one array."""
        return "{i}" in part.name and not self.layered

    @property
    def layered(self) -> bool:
        """Whether there is one array per layer."""
        return "i" in counters(self.target)

    @property
    def item(self) -> str:
        """What there is one array per: h (a head), t (a row), f (a hidden unit), e (an expert), or nothing."""
        return _item_of(self.target)

    def axis(self, canonical: str) -> str:
        """Return the axis that the items of a part count: the rows of a table are t, or v where it is a vocabulary."""
        return "v" if self.item == "t" and "t" not in letters_of(groups_of(canonical)) else self.item

    def at(self, **values: int) -> Rule:
        """Return this rule with values for counters in its target. Raises PatternError."""
        try:
            return replace(self, target=counted(self.target, values)) if "{" in self.target else self
        except MarkError as error:
            raise self.error(str(error)) from None

    def error(self, problem: str, advice: str = "") -> PatternError:
        """Return an error about this rule."""
        return PatternError(self.target, self.source, problem, advice)


@lru_cache(maxsize=4096)
def _item_of(target: str) -> str:
    """Return what a target counts besides layers: it is asked for every array that is written."""
    return next((letter for letter in ITEMS if letter in counters(target)), "")


def describe(rule: Rule) -> str:
    """Return the line of conform.toml that says the same."""
    return line(rule.target, rule.source)


# --- reading ---------------------------------------------------------------------------------------------------------


def parse_rule(target: str, source: str) -> Rule:
    """Read one line; raise PatternError if it is invalid."""
    left, arrow, right = source.partition("->")
    problem = _target_problem(target)
    axes = " ".join(right.split()) if arrow else None
    if axes is not None and (not axes or not _AXES.fullmatch(axes)):
        problem = problem or f"{shown(axes)} are not axes; write letters, 1 and groups: (h d) m"
    if problem:
        raise PatternError(target, source, problem)
    if "*" in unmarked(target) or left.strip() == "*" or left.strip().endswith(".*"):
        return _parse_subtree(target, source, left.strip())
    try:
        rule = Rule(target, tuple(_parse_part(text) for text in _split(left)), axes)
    except ExpressionError as error:
        raise PatternError(target, source, error.problem, hint(error.nearest)) from None
    if axes is not None and len(set(letters := re.findall("[A-Za-z]", axes))) < len(letters):
        raise rule.error(f"an axis occurs twice in {shown(axes)}")
    if len(rule.parts) > 1 and "s" not in (axes or ""):
        raise rule.error("several parts need axes with an s, the position in the list", 'for example "-> (s h d) m"')
    if rule.layered and not all("{i}" in part.name for part in rule.parts):
        raise rule.error("{i} is in the target but not in every part")
    return rule


def _target_problem(target: str) -> str:
    if not 0 < len(target) <= 300 or not target.isprintable():
        return "a target is the name of a parameter, 1 to 300 printable characters"
    try:
        items = counters(target) & set(ITEMS)
    except MarkError as error:
        return str(error)
    return f"{{{'} and {'.join(sorted(items))}}} may not both be in a target" if len(items) > 1 else ""


def _parse_subtree(target: str, source: str, left: str) -> Rule:
    ends = [re.fullmatch(r"(?:[^*]+\.)?\*", text) for text in (unmarked(target), source.strip())]
    marks = counters(target)
    if not all(ends) or ("i" in marks) != ("{i}" in left):
        raise PatternError(target, source, 'both sides end in ".*", with {i} on both or on none')
    if marks & set(ITEMS) or not re.fullmatch(r"(?:[A-Za-z_]\w*\.)?(?:(?:\w+|\{i\})\.)*\*", left):
        raise PatternError(target, source, "only a canonical name may precede the *; {h}, {t} and {f} are not allowed")
    return Rule(target, (StoredPart(left),))


def _split(text: str) -> Iterator[str]:
    """Split at the commas outside parentheses."""
    depth, start = 0, 0
    for at, sign in enumerate(text):
        depth += (sign == "(") - (sign == ")")
        if sign == "," and depth == 0:
            yield text[start:at]
            start = at + 1
    yield text[start:]


def _parse_part(text: str) -> StoredPart:
    text = written_out(text)
    found = sorted(set(_NAME.findall(text)))
    if len(found) != 1:
        said = f"it names {' and '.join(found)}" if found else "it names no part"
        raise ExpressionError(text, f"a part is one canonical name, such as q.weight, or a function of it: {said}")
    expression = _NAME.sub(WEIGHT, text).strip()
    if WEIGHT not in names(expression):
        raise ExpressionError(text, f"{found[0]} is not used as a value")
    return StoredPart(found[0], expression)


def check_rule(rule: Rule, axes: Mapping[str, str], sizes: Iterable[str]) -> None:
    """Raise PatternError if a rule cannot fit canonical parameters with these axes (names with {i} for a layer).

    `sizes` are the names that its expressions may use.
    """
    for part in rule.parts:
        general = re.sub(r"(?<=\.)\d+(?=\.)", "{i}", part.name)
        if rule.subtree:
            if not any(name.startswith(general[:-1]) for name in axes):
                advice = hint(nearest(part.name, _prefixes(axes)))
                raise rule.error(f"there are no canonical parts below {part.name[:-2]}", advice)
            continue
        if general not in axes:
            raise rule.error(f"there is no canonical part {part.name}", hint(nearest(general, axes)))
        check_axes(rule, part, axes[general])
        _check_expression(rule, part, sizes)


def _prefixes(known: Iterable[str]) -> set[str]:
    paths = [name.split(".")[:-1] for name in known]
    return {".".join(path[:end]) + ".*" for path in paths for end in range(1, len(path) + 1)}


def check_axes(rule: Rule, part: StoredPart, canonical: str) -> None:
    """Raise PatternError if a rule cannot place a part that has these axes."""
    own = letters_of(groups_of(canonical)) + (("i",) if rule.stacks(part) else ())
    item = rule.axis(canonical)
    if item and item not in own:
        counts = f"count {ITEMS[rule.item]} by {{{rule.item}}}"
        raise rule.error(f"{part.name} has the axes {canonical}: no {item} to {counts}")
    if rule.axes is None:
        return
    own = letters_of(groups_of(as_stacked(rule, " ".join(own))))
    wanted = {*own, *("s" if len(rule.parts) > 1 else "")} - {item}
    given = set(letters_of(groups_of(rule.axes)))
    if missing := sorted(wanted - given):
        raise rule.error(f"the axis {missing[0]} of {part.name} ({canonical}) is missing")
    if extra := sorted(given - wanted):
        raise rule.error(f"{part.name} ({canonical}) has no axis {extra[0]} to place here")


def as_stacked(rule: Rule, canonical: str) -> str:
    """Return a part's axes by the letters of a rule: rows of two tables, one under the other, count different things.

    `embedding.weight, positions.weight -> (s v) m` holds positions (t m) below ids (v m): their t stands where v does.
    """
    joint = next((group for group in groups_of(rule.axes or "") if group[:1] == ("s",)), ())
    own = letters_of(groups_of(canonical))
    theirs = [a for a in own if a not in letters_of(groups_of(rule.axes or ""))]
    if len(joint) != _WITH_ROWS or joint[1] in own or len(theirs) != 1:
        return canonical
    return re.sub(rf"\b{theirs[0]}\b", joint[1], canonical)


_WITH_ROWS = 2
"""A group `(s v)`: the parts, one under the other, and the rows of each."""


def _check_expression(rule: Rule, part: StoredPart, sizes: Iterable[str]) -> None:
    known = set(sizes)
    for name in sorted(names(part.expression) - known - {WEIGHT}):
        raise rule.error(f"unknown name {name} in {shown(part.text)}", hint(nearest(name, known)))
    if names(part.expression) != {WEIGHT} and not part.factor:
        problem = f"{shown(part.text)} depends on sizes, and could hide a factor that is missing in the code"
        raise rule.error(problem, f"known ones have a name: {', '.join(f'{name}(…)' for name in FACTORS)}")


def folded(name: str) -> str:
    """Return a canonical name with {i} for the number of a layer."""
    return re.sub(r"((?:^|\.)(?:blocks|layers))\.\d+\.", r"\1.{i}.", name)


def components_at(name: str, within: str = "") -> tuple[str, ...]:
    """Return the components whose parameters are below a canonical name of a component, the most likely first.

    `blocks.{i}` is a TransformerBlock; `layers.{i}` depends on `within`. One attention may be bound for all.
    """
    full = f"{within.lower()}.{name}" if within in {"Encoder", "Decoder"} else name
    for pattern, components in _NESTED.items():
        if re.fullmatch(rf"(?:.*\.)?{pattern}", full):
            return components
    return ()


_NESTED = {
    r"blocks\.(?:\d+|\{i\})": ("TransformerBlock",),
    r"encoder\.layers\.(?:\d+|\{i\})": ("EncoderLayer",),
    r"decoder\.layers\.(?:\d+|\{i\})": ("DecoderLayer",),
    "encoder": ("Encoder",),
    "decoder": ("Decoder",),
    "cross_attention": ("CrossAttention", "MultiHeadAttention"),
    "(?:self_)?attention": ("MultiHeadAttention", "CrossAttention"),
    "feed_forward": ("FeedForward",),
}


def expand(rules: Iterable[Rule], nested: Mapping[str, Sequence[Rule]], within: str = "") -> tuple[Rule, ...]:
    """Replace the rules that end in * by those of the component found there, if `nested` has any.

    Other rules stay, and rename only the prefix. The rules are those of `within`, a component.
    """
    found: list[Rule] = []
    for rule in rules:
        below = components_at(rule.parts[0].name[:-2], within) if rule.subtree else ()
        component = next((name for name in below if nested.get(name)), None)
        if component is None:
            found.append(rule)
            continue
        others = {name: inner for name, inner in nested.items() if name != component}
        for inner in expand(nested[component], others, component):
            parts = tuple(replace(p, name=rule.parts[0].name[:-1] + p.name) for p in inner.parts)
            found.append(Rule(rule.target[:-1] + inner.target, parts, inner.axes))
    return tuple(found)
