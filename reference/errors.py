"""What the reference refuses, and how it says so.

RefusalError (ValueError)
├── SizeError                 a constructor argument or an option outside its range
├── ShapeError                a tensor whose shape does not fit
├── DtypeError (TypeError)    a tensor of the wrong kind of number
├── CharacterError (LookupError)    a character that a vocabulary lacks
├── CheckpointError           a file that is no checkpoint, is damaged, or belongs to another model
└── TokenError (IndexError)   a token id outside the vocabulary
"""

from __future__ import annotations

__all__ = [
    "CharacterError",
    "CheckpointError",
    "DtypeError",
    "RefusalError",
    "ShapeError",
    "SizeError",
    "TokenError",
]


class RefusalError(ValueError):
    """Say that something has one value where another was wanted; both stay readable as fields."""

    def __init__(self, name: str, got: object, want: str) -> None:
        super().__init__(f"{name} is {got}, expected {want}")
        self.name, self.got, self.want = name, got, want


class SizeError(RefusalError):
    """A constructor argument or an option lies outside its range."""


class ShapeError(RefusalError):
    """The shape of a tensor does not fit."""


class DtypeError(RefusalError, TypeError):
    """A tensor holds the wrong kind of number."""


class TokenError(RefusalError, IndexError):
    """A token id lies outside the vocabulary."""


class CharacterError(RefusalError, LookupError):
    """A character is not in the vocabulary."""


class CheckpointError(RefusalError):
    """A file is no checkpoint, is damaged, or belongs to another model."""
