"""The variants that the tests of this folder go through: every single change, and whole known models."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields

from conformkit.spec.variants import CANONICAL, FAMOUS, Variant, alternatives, choices


def single_changes() -> Iterator[tuple[str, Variant]]:
    """Yield each value of each choice but the canonical one, alone, with what else that choice needs."""
    for field in (f for f in fields(Variant) if not f.name.startswith("shared_")):  # no choice of a decoder alone
        values = alternatives(field.name, field.default)
        for value in values if isinstance(choices()[field.name], tuple) else values[:2]:
            needs = {"positions": "rotary"} if field.name.startswith("rotary") else {}
            yield f"{field.name}={value}", CANONICAL.but(**needs, **{field.name: value})


def every_variant() -> dict[str, Variant]:
    """Return the canonical variant, all single changes and the famous ones, by name."""
    return {"canonical": CANONICAL, **dict(single_changes()), **FAMOUS}
