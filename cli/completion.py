"""Shell completion of clauses, profiles, and places where an implementation may be."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

__all__ = ["clause_ids", "colors", "dtypes", "implementations", "isolations", "levels", "profiles"]

_MAX_SUGGESTIONS = 200


def clause_ids(incomplete: str) -> list[str]:
    """Return matching prefixes, then matching clauses and components; after a comma, for the last item."""
    from conformkit.spec.clauses import clauses

    head, comma, word = incomplete.upper().rpartition(",")
    ids = list(clauses())
    prefixes = dict.fromkeys(name.partition("-")[0] for name in ids)
    components = dict.fromkeys(one.component for one in clauses().values() if one.component != "all")
    found = [name for name in (*prefixes, *ids, *components) if name.upper().startswith(word)]
    return [f"{head}{comma}{name}" for name in found[:_MAX_SUGGESTIONS]]


def implementations(incomplete: str) -> list[str]:
    """Return folders and Python files that begin with this text."""
    return sorted(_places(incomplete))[:_MAX_SUGGESTIONS]


def _places(incomplete: str) -> Iterator[str]:
    folder, slash, word = incomplete.rpartition("/")
    try:
        for path in Path(f"{folder}{slash}" or ".").iterdir():
            hidden = path.name.startswith((".", "__")) and not word
            if path.name.startswith(word) and not hidden and (path.is_dir() or path.suffix == ".py"):
                yield f"{folder}{slash}{path.name}"
    except OSError:
        return


def profiles() -> list[str]:
    """Return the names of all profiles."""
    from conformkit.spec.profiles import PROFILES

    return list(PROFILES)


def levels() -> list[str]:
    """Return the levels."""
    return ["MUST", "SHOULD", "MAY"]


def dtypes() -> list[str]:
    """Return the number formats."""
    return ["float64", "float32", "float16", "bfloat16"]


def isolations() -> list[str]:
    """Return the levels of isolation."""
    return ["process", "sandbox", "none"]


def colors() -> list[str]:
    """Return the values of --color."""
    return ["auto", "always", "never"]
