"""How the contract's arguments reach an implementation that declares nothing: read from its signatures."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from conformkit.conformance.binding.aliases import likely_meaning, meaning, meanings
from conformkit.conformance.binding.arguments import Arguments, Expression
from conformkit.conformance.binding.limits import NUMBERS

__all__ = [
    "Signature",
    "SignatureMismatch",
    "call_from",
    "construct_from",
    "named_from",
    "takes_any",
    "with_a_dictionary",
    "with_sizes",
]

Signature = Sequence[Mapping[str, Any]]
"""Parameters as the driver describes them: name, kind, required, default."""


class SignatureMismatch(ValueError):
    """A constructor or call takes other arguments than the contract's.

    `missing` are the contract's that it lacks, `unknown` theirs without a value, `known` maps theirs to the contract's.
    """

    def __init__(self, missing: Sequence[str], unknown: Sequence[str], known: Mapping[str, str]) -> None:
        parts = [f"requires {', '.join(unknown)}, which the contract does not have"] if unknown else []
        parts += [f"does not take {', '.join(missing)}"] if missing else []
        super().__init__(" and ".join(parts))
        self.missing, self.unknown, self.known = tuple(missing), tuple(unknown), dict(known)

    def guessed(self) -> dict[str, str]:
        """Return what each argument without a value may stand for: by its name, the last one by what is left."""
        found = {name: likely_meaning(name, self.missing) or "" for name in self.unknown}
        open_ = [name for name, ours in found.items() if not ours]
        left = [ours for ours in self.missing if ours not in found.values()]
        rest = dict(zip(open_, left, strict=True)) if len(open_) == len(left) else {}
        return {name: rest.get(name) or ours or "…" for name, ours in found.items()}

    def likely(self) -> dict[str, str] | None:
        """Return all arguments, if a likely meaning of those without a value is just what is missing; else None."""
        found = {name: likely_meaning(name, self.missing) for name in self.unknown}
        meant = [ours for ours in found.values() if ours is not None]
        complete = len(meant) == len(found) and sorted(meant) == sorted(self.missing)
        return {**self.known, **{name: ours for name, ours in found.items() if ours}} if complete else None


def construct_from(signature: Signature, contract: Sequence[str], required: Collection[str]) -> Arguments:
    """Map the contract's constructor arguments by their names or by common aliases.

    Raises SignatureMismatch if a required one is not taken, or an argument of theirs has no value.
    """
    usable = _usable(signature)
    known: dict[str, str] = {}
    exact_first = sorted(usable, key=lambda p: p["name"] not in contract)
    for parameter in exact_first:
        free = (name for name in meanings(parameter["name"], contract) if name not in known.values())
        if ours := next(free, None):
            known[parameter["name"]] = ours
    if any(p["kind"] == "var_keyword" for p in signature):
        known |= {name: name for name in contract if name in required and name not in known.values()}
    missing = [name for name in contract if name in required and name not in known.values()]
    unknown = [p["name"] for p in usable if p["required"] and p["name"] not in known]
    if missing or unknown:
        mismatch = SignatureMismatch(missing, unknown, known)
        if (likely := mismatch.likely()) is None:
            raise mismatch
        known = likely
    return _arguments([], known)


def with_sizes(construct: Arguments, signature: Signature, contract: Sequence[str]) -> Arguments:
    """Add the sizes that the constructor takes by the contract's names, or usual ones, and that are left out.

    They are judged: leaving them out would hide that they are wrong.
    """
    usable = _usable(signature)
    placed = [p["name"] for p in usable if p["kind"] == "positional"][: len(construct.positional)]
    given = {*construct.named, *placed}
    left = [name for name in contract if name in NUMBERS and name not in construct.names() | given]
    added = _by_meaning([p for p in usable if p["name"] not in given], left)
    return Arguments(construct.positional, {**construct.named, **{n: Expression(o) for n, o in sorted(added.items())}})


def with_a_dictionary(construct: Arguments | None, signature: Signature | None) -> Arguments | None:
    """Return declared arguments; a table alone in a list is a dictionary where none of its keys is an argument."""
    if construct is None or construct.positional or not (construct.listed and construct.named and signature):
        return construct
    usable = _usable(signature)
    places = any(p["kind"] == "positional" for p in usable)
    if takes_any(signature) or not places or {p["name"] for p in usable} & construct.named.keys():
        return construct
    return Arguments((dict(construct.named),), {})


def takes_any(signature: Signature) -> bool:
    """Whether it takes arguments of any number or of any names."""
    return any(p["kind"] in {"var_keyword", "var_positional"} for p in signature)


def call_from(signature: Signature, contract: Sequence[str], required: Collection[str]) -> Arguments:
    """Pass the required inputs by position, whatever their names are, and optional ones by name.

    One input is passed three times if the first three arguments are named query, key and value. An input without a
    position is passed by name, or to the only keyword-only argument.
    """
    usable = _usable(signature)
    positional = [p for p in usable if p["kind"] == "positional"]
    first = [name for name in contract if name in required]
    if len(first) == 1 and [meaning(p["name"], "qkv") for p in positional[:3]] == ["q", "k", "v"]:
        first = first * 3
    taken = {p["name"]: ours for p, ours in zip(positional, first, strict=False)}
    known: dict[str, str] = {}
    if not any(p["kind"] == "var_positional" for p in signature):
        first, unplaced = first[: len(positional)], first[len(positional) :]
        known = _by_name([p for p in usable if p["kind"] == "keyword"], unplaced)
        if missing := [name for name in unplaced if name not in known.values()]:
            raise SignatureMismatch(missing, [], taken | known)
    optional = [name for name in contract if name not in required]
    known |= _by_meaning([p for p in usable if p["name"] not in taken | known], optional, known.values())
    unknown = [p["name"] for p in usable if p["required"] and p["name"] not in taken and p["name"] not in known]
    if unknown:
        raise SignatureMismatch([], unknown, taken | known)
    return _arguments(first, known)


def named_from(signature: Signature, contract: Sequence[str], required: Collection[str]) -> Arguments:
    """Map arguments by known names; the remaining required ones are mapped by order.

    Raises SignatureMismatch if the remaining ones on both sides differ in number.
    """
    usable = _usable(signature)
    known = _by_meaning(usable, contract)
    missing = [name for name in contract if name in required and name not in known.values()]
    unknown = [p["name"] for p in usable if p["required"] and p["name"] not in known]
    if len(missing) != len(unknown):
        raise SignatureMismatch(missing, unknown, known)
    return _arguments([], known | dict(zip(unknown, missing, strict=True)))


def _by_meaning(parameters: Signature, contract: Sequence[str], placed: Iterable[str] = ()) -> dict[str, str]:
    """Map parameters to what their names stand for and is not yet placed; those that stand for the least come first.

    Beside `decoder_attention_mask`, which is the target's, `attention_mask` is that of the memory.
    """
    known: dict[str, str] = {}
    left = [name for name in contract if name not in set(placed)]
    for parameter in sorted(parameters, key=lambda p: len(meanings(p["name"], contract))):
        ours = meaning(parameter["name"], left)
        if ours:
            known[parameter["name"]] = ours
            left.remove(ours)
    return known


def _by_name(keywords: Signature, inputs: Sequence[str]) -> dict[str, str]:
    """Map inputs to keyword-only arguments: by name, or if one of each is left."""
    known = _by_meaning(keywords, inputs)
    left = [name for name in inputs if name not in known.values()]
    needed = [p["name"] for p in keywords if p["required"] and p["name"] not in known]
    return known | dict(zip(needed, left, strict=True)) if len(needed) == len(left) == 1 else known


def _usable(signature: Signature) -> list[Mapping[str, Any]]:
    return [p for p in signature if p["kind"] in {"positional", "keyword"}]


def _arguments(first: Sequence[str], known: Mapping[str, str]) -> Arguments:
    named = {theirs: Expression(ours) for theirs, ours in known.items()}
    return Arguments(tuple(Expression(name) for name in first), named)
