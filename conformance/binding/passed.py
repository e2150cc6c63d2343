"""What an argument in conform.toml passes: what the contract passes, a constant, or a number that is computed."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from typing import Any

from conformkit.conformance.binding.aliases import meaning
from conformkit.conformance.binding.arguments import Arguments, Expression
from conformkit.conformance.binding.expressions import evaluate
from conformkit.conformance.binding.language import ExpressionError, names, parse
from conformkit.conformance.binding.limits import NUMBERS

__all__ = ["ORDER", "SWITCHES", "kind_of", "kinds_of", "shown", "without_kinds"]

ORDER = ("factors", "computed", "constants")
"""Kinds of excuses that an argument can be, the strictest first."""
_RENAMING = ""
_CALCULATORS = frozenset({"math", "cmath", "operator", "numpy", "torch"})
"""Modules whose functions compute: an object of theirs that a call gets may be a factor."""
_SIZES = frozenset({*NUMBERS, "T", "dtype"})
_TRIED = (3, 16, 250, 1021)
"""Sizes at which an expression is evaluated: one that never changes is a constant."""
_COUNTED = "max_new_tokens"
"""Some code counts the ids of the prompt, or the one that begins a text, as well."""
_FLAGS = frozenset({"causal", "use_cache"})
"""What is true or false: another name may say the same in other words."""
SWITCHES = frozenset({"temperature > 0", "temperature == 0"})
"""How a switch between sampling and greedy decoding is set, declared or not."""


def kinds_of(arguments: Arguments) -> Iterable[tuple[str | int, str, Any]]:
    """Yield each argument's name or place, the kind of excuse that it is (empty for none), and its value."""
    places: list[tuple[str | int, Any]] = [*enumerate(arguments.positional), *arguments.named.items()]
    for place, value in places:
        yield place, kind_of(value, place if isinstance(place, str) else ""), value


def kind_of(value: Any, name: str = "") -> str:
    """Return the kind of excuse that a value is: a size, an array or a flag of the contract is none.

    `name` is that of the argument; empty for a positional one.
    """
    if isinstance(value, Expression):
        return _of_expression(value.text, name)
    if isinstance(value, Arguments):
        return _strictest(kind for _, kind, _ in kinds_of(value))
    if isinstance(value, Mapping):
        return _strictest(kind_of(inner, key) for key, inner in value.items())
    if isinstance(value, list):
        return _strictest(map(kind_of, value))
    if getattr(value, "path", "").partition(":")[0] in _CALCULATORS:
        return "factors"
    inner = [getattr(value, part) for part in ("arguments", "then") if getattr(value, part, None) is not None]
    return _strictest(["constants", *map(kind_of, inner)])


def shown(value: Any) -> str:
    """Return an argument as a report shows it; of what an object gets, what is more than a size or a flag."""
    if isinstance(value, Expression):
        return value.text
    if isinstance(value, Arguments):
        parts = [(place, inner) for place, kind, inner in kinds_of(value) if kind]
        return ", ".join(f"{at} = {shown(inner)}" if isinstance(at, str) else shown(inner) for at, inner in parts)
    if isinstance(value, Mapping):
        named = value.get("$name", value.get("$dtype"))
        entries = ", ".join(f"{key} = {shown(inner)}" for key, inner in value.items())
        return shown(named) if isinstance(named, Expression) else str(named) if named else f"{{ {entries} }}"
    if isinstance(value, list):
        return f"[{', '.join(map(shown, value))}]"
    if not hasattr(value, "path"):
        return repr(value)
    given = shown(value.arguments)
    return f"an object of {value.path}{' with ' if given else ''}{given}"


def without_kinds(arguments: Arguments | None, kinds: AbstractSet[str]) -> Arguments | None:
    """Return arguments without named ones that are excuses of these kinds, and positional ones from the first on."""
    if arguments is None:
        return None
    refused = {place for place, kind, _ in kinds_of(arguments) if kind in kinds}
    last = next((place for place in range(len(arguments.positional)) if place in refused), None)
    named = {name: value for name, value in arguments.named.items() if name not in refused}
    return Arguments(arguments.positional[:last], named)


def _strictest(kinds: Iterable[str]) -> str:
    found = set(kinds)
    return next((kind for kind in ORDER if kind in found), _RENAMING)


def _of_expression(text: str, name: str) -> str:
    used = names(text)
    if not used:
        return "constants" if text != "None" else _RENAMING
    choices = used - _SIZES
    if used == {"dtype"} or (not choices and _is_constant(text, used)):
        return "constants"
    if not choices:
        return "factors" if used & set(NUMBERS) and (_computes(text) or _is_changed(text, name, used)) else _RENAMING
    if _hands_on(parse(text)):
        return _RENAMING
    if choices == {_COUNTED}:
        return "factors" if name and "T" not in used and meaning(name, choices) else "computed"
    is_flag = choices <= _FLAGS and name and not meaning(name, choices)
    return "computed" if is_flag else "factors"


def _hands_on(value: ast.expr) -> bool:
    """Whether an expression is what the contract passes, unchanged; what stands for None may be another value."""
    if ast.unparse(value) in SWITCHES:
        return True
    if isinstance(value, (ast.Tuple, ast.List)):
        return all(map(_hands_on, value.elts))
    if isinstance(value, ast.IfExp):
        return _unless_none(value)
    return isinstance(value.value if isinstance(value, ast.Subscript) else value, (ast.Name, ast.Constant))


def _unless_none(value: ast.IfExp) -> bool:
    """Whether it is `x if x is not None else …`, or the same the other way round."""
    match value.test:
        case ast.Compare(ast.Name() as asked, [ast.IsNot() | ast.NotEq()], [ast.Constant(None)]):
            given = value.body
        case ast.Compare(ast.Name() as asked, [ast.Is() | ast.Eq()], [ast.Constant(None)]):
            given = value.orelse
        case _:
            return False
    return ast.dump(given) == ast.dump(asked)


def _is_constant(text: str, used: Iterable[str]) -> bool:
    """Whether an expression over sizes has the same value whatever they are, such as `T // T` and `d_model > 0`.

    Sizes are tried with the first name the smallest and with it the largest: `d_model // num_heads` is a width, but a
    comparison that never changes while one of two sizes is larger is a constant.
    """
    found: list[set[str]] = []
    for ordered in (sorted(used), sorted(used, reverse=True)):
        values: set[str] = set()
        for tried in _TRIED:
            try:
                values.add(repr(evaluate(text, {name: tried + place for place, name in enumerate(ordered)})))
            except ExpressionError:
                return False
        found.append(values)
    return len({value for values in found for value in values}) == 1 or any(
        values < {"True", "False"} for values in found
    )


def _is_changed(text: str, name: str, used: AbstractSet[str]) -> bool:
    """Whether an argument whose name says that it is a size gets another number than that: `max_len + 1`."""
    return bool(name) and not _hands_on(parse(text)) and meaning(name, NUMBERS) in used


def _computes(text: str) -> bool:
    """Whether an expression may be a number that is no size: it divides, takes a root, or has a fraction."""
    return bool(re.search(r"(?<!/)/(?!/)|sqrt|\d\.\d|\.\d|\*\*\s*\(?\s*-|float", text))
