"""Which framework was guessed for an implementation that declares none and whose calls raise."""

from __future__ import annotations

from conformkit.conformance.driver.errors import ImplementationFailure
from conformkit.conformance.driver.location import Location, mentions
from conformkit.conformance.engine.implementation import Implementation

__all__ = ["framework_notes", "other_framework"]

_TITLES = {"numpy": "NumPy", "torch": "torch"}
_OTHERS = {"numpy": "torch", "torch": "numpy"}


def framework_notes(implementation: Implementation, location: Location) -> list[str]:
    """Return which framework was guessed and why, if a wrong guess may make the first call of each component raise.

    Code that imports torch gets torch's arrays. Code that imports neither framework may be written for either; for code
    that imports both, the guess is doubtful if nothing runs.
    """
    guessed = implementation.framework
    raising = [bound.component.name for bound in implementation.bounds() if _raises(bound.failure)]
    if implementation.config.framework is not None or not raising or guessed not in _OTHERS:
        return []
    if not _doubtful(guessed, location, everything=len(raising) == len(implementation.bounds())):
        return []
    which = ", ".join(raising) if len(raising) < 3 else f"{raising[0]} and {len(raising) - 1} more"
    why = "it imports torch" if guessed == "torch" else "no source of it imports torch"
    begin = f"every first call of {which} raises, and nothing declares the framework"
    return [f"{begin}: {_TITLES[guessed]} was guessed, since {why}; {other_framework(guessed)}"]


def other_framework(guessed: str) -> str:
    """Return what to write if the other framework is meant."""
    other = _OTHERS[guessed]
    return f'if it computes with {_TITLES[other]}, say so in conform.toml: [implementation] framework = "{other}"'


def _raises(failure: object) -> bool:
    return isinstance(failure, ImplementationFailure) and failure.kind == "exception"


def _doubtful(guessed: str, location: Location, *, everything: bool) -> bool:
    if location.path is None:
        return everything
    imports_numpy = mentions(location.path, "numpy")
    return (guessed == "numpy" and not imports_numpy) or (everything and (guessed == "numpy" or imports_numpy))
