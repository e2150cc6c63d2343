"""How the contract's arguments reach an implementation whose file says nothing: read off its signatures."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from conformkit.conformance.binding.aliases import meaning
from conformkit.conformance.binding.arguments import Arguments, Expression

__all__ = ["Signature", "SignatureMismatch", "call_from", "construct_from", "named_from"]

Signature = Sequence[Mapping[str, Any]]
"""Parameters as the driver describes them: name, kind, required, default."""


class SignatureMismatch(ValueError):
    """A constructor or call takes other arguments than the contract's.

    `missing` are the contract's without a place, `unknown` theirs without a value, `known` theirs → the contract's.
    """

    def __init__(self, missing: Sequence[str], unknown: Sequence[str], known: Mapping[str, str]) -> None:
        parts = [f"wants {', '.join(unknown)}, which the contract does not have"] if unknown else []
        parts += [f"takes no {', '.join(missing)}"] if missing else []
        super().__init__(" and ".join(parts))
        self.missing, self.unknown, self.known = tuple(missing), tuple(unknown), dict(known)


def construct_from(signature: Signature, contract: Sequence[str], required: Collection[str]) -> Arguments:
    """Map the contract's constructor arguments by their names, or by well-known other names.

    Raises SignatureMismatch when a required one has no place, or an argument of theirs no value.
    """
    usable = _usable(signature)
    known: dict[str, str] = {}
    exact_first = sorted(usable, key=lambda p: p["name"] not in contract)
    for parameter in exact_first:
        ours = meaning(parameter["name"], contract)
        if ours and ours not in known.values():
            known[parameter["name"]] = ours
    if any(p["kind"] == "var_keyword" for p in signature):
        known |= {name: name for name in contract if name in required and name not in known.values()}
    missing = [name for name in contract if name in required and name not in known.values()]
    unknown = [p["name"] for p in usable if p["required"] and p["name"] not in known]
    if missing or unknown:
        raise SignatureMismatch(missing, unknown, known)
    return _arguments([], known)


def call_from(signature: Signature, contract: Sequence[str], required: Collection[str]) -> Arguments:
    """Pass the required inputs by position, whatever they are called, and optional ones by name.

    One input goes in three times where the first three arguments are called query, key and value. An input without a
    position goes by its name, or to the one argument that has to be named.
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
    for parameter in usable:
        ours = meaning(parameter["name"], optional) if parameter["name"] not in taken | known else None
        if ours and ours not in known.values():
            known[parameter["name"]] = ours
    unknown = [p["name"] for p in usable if p["required"] and p["name"] not in taken and p["name"] not in known]
    if unknown:
        raise SignatureMismatch([], unknown, taken | known)
    return _arguments(first, known)


def named_from(signature: Signature, contract: Sequence[str], required: Collection[str]) -> Arguments:
    """Map arguments whose names are known to the contract's; what is left of required ones goes in by order.

    Raises SignatureMismatch when there are not as many of theirs left as of the contract's.
    """
    usable = _usable(signature)
    known: dict[str, str] = {}
    for parameter in usable:
        ours = meaning(parameter["name"], contract)
        if ours and ours not in known.values():
            known[parameter["name"]] = ours
    missing = [name for name in contract if name in required and name not in known.values()]
    unknown = [p["name"] for p in usable if p["required"] and p["name"] not in known]
    if len(missing) != len(unknown):
        raise SignatureMismatch(missing, unknown, known)
    return _arguments([], known | dict(zip(unknown, missing, strict=True)))


def _by_name(keywords: Signature, inputs: Sequence[str]) -> dict[str, str]:
    """Give inputs to arguments that take no position: by name, or where one of each is left."""
    known: dict[str, str] = {}
    for parameter in sorted(keywords, key=lambda p: p["name"] not in inputs):
        ours = meaning(parameter["name"], inputs)
        if ours and ours not in known.values():
            known[parameter["name"]] = ours
    left = [name for name in inputs if name not in known.values()]
    needed = [p["name"] for p in keywords if p["required"] and p["name"] not in known]
    return known | dict(zip(needed, left, strict=True)) if len(needed) == len(left) == 1 else known


def _usable(signature: Signature) -> list[Mapping[str, Any]]:
    return [p for p in signature if p["kind"] in {"positional", "keyword"}]


def _arguments(first: Sequence[str], known: Mapping[str, str]) -> Arguments:
    named = {theirs: Expression(ours) for theirs, ours in known.items()}
    return Arguments(tuple(Expression(name) for name in first), named)
