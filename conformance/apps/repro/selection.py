"""How a script picks the array from a call's result, which replies describe as `tuple(tensor, None)`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from conformkit.conformance.driver.wire.arrays import FOREMOST

__all__ = ["Returned", "pick", "returned"]

_LISTS = "numbers"
"""How lists of lists of numbers are described: one array, not native."""


@dataclass(frozen=True, slots=True)
class Returned:
    """A value described by the name of its type and its contents, by position or by key."""

    name: str
    parts: tuple[Returned, ...] = ()
    keys: tuple[str, ...] = field(default=())

    @property
    def is_array(self) -> bool:
        """Whether it is an array: their types are named in lower case."""
        return not self.parts and self.name.islower() and self.name not in {"int", "float", "bool", "str", _LISTS}


def returned(structure: str) -> Returned:
    """Read a description."""
    match = re.fullmatch(r"([^(]+)\((.*)\)", structure, re.DOTALL)
    if match is None:
        return Returned(structure)
    texts = [t for t in _split(match[2]) if t and t != "…"]
    pairs = [re.fullmatch(r"([^(:]+): (.*)", text, re.DOTALL) for text in texts]
    if texts and all(pairs):
        found = [pair for pair in pairs if pair]
        return Returned(match[1], tuple(returned(p[2]) for p in found), tuple(p[1] for p in found))
    return Returned(match[1], tuple(returned(text) for text in texts))


def pick(value: Returned, selector: Any) -> tuple[str, bool]:
    """Return the expression for the array, with `{}` for the call, and whether that is a native array.

    Without a selector logits come before others; an empty one is the first, whatever others are called.
    """
    if selector is not None and selector != FOREMOST:
        return _selected(value, selector), True
    foremost = selector == FOREMOST
    if value.is_array or not (value.parts or value.name == _LISTS):
        of_object = _FIRST_OF_OBJECT if foremost else _OF_OBJECT
        return ("{}", True) if value.is_array or not value.name[:1].isupper() else (of_object, True)
    if all(part.name in {"int", "float", "bool"} for part in value.parts):
        return "{}", False
    if "logits" in value.keys and not foremost:
        return '{}["logits"]', True
    path = next(_paths(value, "{}"), "{}")
    if value.name in {"tuple", "list"} or value.keys or foremost:
        return path, True
    return f"(lambda r: getattr(r, 'logits', {path.format('r')}))({{}})", True


_FIRST_OF_OBJECT = "next((v for v in vars({}).values() if hasattr(v, 'shape')), None)"
_OF_OBJECT = f"(lambda r: getattr(r, 'logits', {_FIRST_OF_OBJECT.format('r')}))({{}})"


def _selected(value: Returned, selector: Any) -> str:
    if isinstance(selector, int):
        return f"list({{}}.values())[{selector}]" if value.keys else f"{{}}[{selector}]"
    if value.keys or value.name == "dict":
        return f"{{}}[{_quoted(selector)}]"
    named = all(part.isidentifier() for part in str(selector).split("."))
    return f"{{}}.{selector}" if named else f"getattr({{}}, {_quoted(selector)})"


def _quoted(name: Any) -> str:
    """Return a name from an implementation as a literal in an expression that is formatted."""
    return repr(name).replace("{", "{{").replace("}", "}}")


def _paths(value: Returned, text: str) -> Iterator[str]:
    if value.is_array:
        yield text
    for position, part in enumerate(value.parts):
        yield from _paths(part, f"{text}[{_quoted(value.keys[position])}]" if value.keys else f"{text}[{position}]")


def _split(text: str) -> Iterator[str]:
    """Split at commas outside parentheses."""
    depth, start = 0, 0
    for place, character in enumerate(text):
        depth += {"(": 1, ")": -1}.get(character, 0)
        if character == "," and not depth:
            yield text[start:place].strip()
            start = place + 1
    yield text[start:].strip()
