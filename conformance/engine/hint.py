"""What a report says about a known mistake, in three steps."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Hint"]


@dataclass(frozen=True, slots=True)
class Hint:
    """What to say, in steps: what one sees, where to look, what is wrong."""

    symptom: str
    area: str
    mistake: str
