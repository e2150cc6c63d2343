"""Settings under which a check runs, as text: values with their names."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Setting"]


@dataclass(frozen=True, slots=True)
class Setting:
    """One value of a loop over settings, and its names, `queries, keys`; its text is made only when a check fails."""

    names: str
    value: object

    def __str__(self) -> str:
        """Return `queries = 3, keys = 7`; a dict brings its own names."""
        names = self.names.split(", ")
        if isinstance(self.value, dict) and self.value:
            return ", ".join(f"{name} = {value}" for name, value in self.value.items())
        if isinstance(self.value, tuple) and len(self.value) == len(names) > 1:
            return ", ".join(f"{name} = {value}" for name, value in zip(names, self.value, strict=True))
        return f"{names[0]} = {self.value}" if len(names) == 1 else str(self.value)
