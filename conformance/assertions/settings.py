"""Settings under which a check runs, in words: by the names that the loop over them gives them."""

from __future__ import annotations

import linecache
import re
from dataclasses import dataclass

__all__ = ["Setting"]

_LOOP = re.compile(r"\s*for ([\w, ]+) in \w+\(")


@dataclass(frozen=True, slots=True)
class Setting:
    """One value of a loop over settings, and where that loop begins; its text is made when something fails."""

    value: object
    file: str
    line: int

    def __str__(self) -> str:
        """Return `queries = 3, keys = 7`; a table says its own names."""
        match = _LOOP.match(linecache.getline(self.file, self.line))
        names = match[1].split(", ") if match else []
        if isinstance(self.value, dict) and self.value:
            return ", ".join(f"{name} = {value}" for name, value in self.value.items())
        if isinstance(self.value, tuple) and len(self.value) == len(names) > 1:
            return ", ".join(f"{name} = {value}" for name, value in zip(names, self.value, strict=True))
        return f"{names[0]} = {self.value}" if len(names) == 1 else str(self.value)
