"""Settings under which a check runs: sizes and options by name, or a phrase."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

__all__ = ["Setting"]

_PAIR = r"[A-Za-z_]{1,14} ?= ?(?:\d{1,9}|True|False|None)"
_PAIRS = re.compile(rf"{_PAIR}(?:, {_PAIR})*")


@dataclass(frozen=True, slots=True)
class Setting:
    """One value of a loop over settings, and its names, `queries, keys`; without names, a phrase.

    `found` says that the sizes were looked for: they are a result, which hidden draws do not tell.
    """

    names: str
    value: object
    found: bool = False

    @classmethod
    def of(cls, phrase: str) -> Setting:
        """Return a setting from a phrase: sizes by name, `d_model = 7, d_k = 3`, or other words."""
        if not _PAIRS.fullmatch(phrase):
            return cls("", phrase)
        pairs = (pair.split("=") for pair in phrase.split(", "))
        return cls("", {name.strip(): _plain(value.strip()) for name, value in pairs})

    @property
    def values(self) -> Mapping[str, object]:
        """Sizes and options by name; empty where the setting has no names."""
        if isinstance(self.value, dict) and self.value:
            return self.value
        names = self.names.split(", ") if self.names else []
        if isinstance(self.value, tuple) and len(self.value) == len(names) > 1:
            return dict(zip(names, self.value, strict=True))
        return {names[0]: self.value} if len(names) == 1 else {}

    def __str__(self) -> str:
        """Return `queries = 3, keys = 7`; a dict brings its own names."""
        values = self.values
        said = ", ".join(f"{name} = {value}" for name, value in values.items()) if values else str(self.value)
        return f"sizes {said}" if self.found else said


def _plain(value: str) -> object:
    return {"True": True, "False": False, "None": None}.get(value) if not value.isdigit() else int(value)
