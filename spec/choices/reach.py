"""What choices do, as asked of the oracles and stored; `python -m conformkit.fixtures.choices` asks again."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from importlib.resources import files
from typing import Any

__all__ = ["beside_rare", "reached", "shaping", "shaping_by_rare_values"]


def reached(component: str) -> tuple[str, ...]:
    """Return the choices that change the results or the parameters of a component, next to usual ones."""
    return tuple(_stored()["reached"].get(component, ()))


def beside_rare(component: str) -> tuple[str, ...]:
    """Return those that change them only next to rare choices: norms, where queries and keys have some."""
    return tuple(_stored()["reached next to rare choices"].get(component, ()))


def shaping() -> frozenset[str]:
    """Return the usual choices that add or remove parameters."""
    return frozenset(_stored()["shaping"])


def shaping_by_rare_values() -> frozenset[str]:
    """Return the rare choices that do, and the usual ones that do by a rare value."""
    return frozenset(_stored()["shaping by rare values"])


@functools.cache
def _stored() -> Mapping[str, Any]:
    found: Mapping[str, Any] = json.loads((files(__package__) / "reach.json").read_text(encoding="utf-8"))
    return found
