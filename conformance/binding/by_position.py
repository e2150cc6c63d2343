"""Arguments that a declaration passes by name where the code can tell that from a call by position.

Callers of the contract pass what it requires by position. Only code with `*arguments` sees the difference.
"""

from __future__ import annotations

from collections.abc import Sequence

from conformkit.conformance.binding.arguments import Arguments, Expression
from conformkit.conformance.binding.signatures import Signature

__all__ = ["by_position"]


def by_position(arguments: Arguments, signature: Signature | None, required: Sequence[str]) -> Arguments | None:
    """Return arguments with what the contract requires in its places; None if they are, or if code can't tell."""
    starred = any(p["kind"] == "var_positional" for p in signature or ())
    named = {value.text: name for name, value in arguments.named.items() if isinstance(value, Expression)}
    if not starred or arguments.positional or not required or not named.keys() >= {*required}:
        return None
    placed = {named[ours] for ours in required}
    rest = {name: value for name, value in arguments.named.items() if name not in placed}
    return Arguments(tuple(map(Expression, required)), rest)
