"""What a declaration passes by name, or by position, and callers of the contract do not.

They pass what the contract requires by position, and the rest by name. To most code that is the same; only a trial
shows whether it is, since a signature can say anything.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from conformkit.conformance.binding.arguments import Arguments, Expression
from conformkit.conformance.binding.signatures import Signature

__all__ = ["by_position"]


def by_position(arguments: Arguments, signature: Signature | None, required: Sequence[str]) -> Arguments | None:
    """Return arguments with what the contract requires in its places, and the rest by name.

    None if they are so already, or if its places are other than the contract's: a declaration may rename those.
    """
    places = [p for p in signature or () if p["kind"] == "positional"]
    names = [p["name"] for p in places]
    open_ended = any(p["kind"] == "var_positional" for p in signature or ())
    given: list[tuple[int | str, Any]] = [*enumerate(arguments.positional), *arguments.named.items()]
    for place, ours in enumerate(required):
        found = [where for where, value in given if value == Expression(ours)]
        if len(found) != 1 or not _is_at(found[0], place, names, open_ended=open_ended):
            return None
    after = arguments.positional[len(required) :]
    rest = {name: value for name, value in arguments.named.items() if value not in map(Expression, required)}
    later = _by_name(after, places[len(required) :])
    placed = Arguments(tuple(map(Expression, required)), {**later, **rest})
    return None if not required or placed == arguments or len(later) < len(after) else placed


def _is_at(where: int | str, place: int, names: Sequence[str], *, open_ended: bool) -> bool:
    """Whether an argument is at the contract's place, or may be put there."""
    if isinstance(where, int):
        return where == place
    return names.index(where) == place if where in names else open_ended


def _by_name(values: Sequence[object], places: Signature) -> Mapping[str, object]:
    """Return arguments that follow by position with their names, as far as they have some."""
    named = (p["name"] for p in places if not p.get("positional_only"))
    return dict(zip(named, values, strict=False))
