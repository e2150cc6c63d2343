"""Constants that arguments with a default get in its place: code may be right only with them.

What has no default needs a value anyhow. A default that is written down again changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from conformkit.conformance.binding.arguments import Arguments, Expression
from conformkit.conformance.binding.expressions import evaluate
from conformkit.conformance.binding.language import ExpressionError
from conformkit.conformance.binding.passed import kinds_of
from conformkit.conformance.binding.signatures import Signature

__all__ = ["replaced_defaults"]


def replaced_defaults(arguments: Arguments, signature: Signature | None) -> Iterator[tuple[str | int, str, Any]]:
    """Yield arguments that get a constant in place of their default: the place or name, the name, the constant.

    Without a signature, all of them.
    """
    by_name = {p["name"]: p for p in signature or ()}
    places = [p["name"] for p in signature or () if p["kind"] == "positional"]
    for place, kind, value in kinds_of(arguments):
        name = place if isinstance(place, str) else places[place] if place < len(places) else f"argument {place}"
        described = by_name.get(name, {"required": False, "default": None})
        if kind == "constants" and not described["required"] and described["default"] != _written(value):
            yield place, name, value


def _written(value: Any) -> str:
    """Return a value as Python writes it, nothing for an object or a number that sizes give."""
    if isinstance(value, Expression):
        try:
            return repr(evaluate(value.text, {}))
        except ExpressionError:
            return ""
    return repr(value) if isinstance(value, (bool, int, float, str)) else ""
