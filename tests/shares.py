"""Clauses about every size take half the time of right code: in CI each package meets a third of them, each night all.

Another third each time that CONFORM_SEED is another one; CONFORM_SIZES=all asks for all. What a change concerns is met
whole: by each package if the clause's prose or test changed, and by a package that changed itself.
"""

from __future__ import annotations

import os
from pathlib import Path
from zlib import crc32

from conformkit.spec.clauses import Clause, clauses_of

from .tiers import ROOT, changed_now

__all__ = ["left_out", "share"]

SHARES = 3


def left_out(name: str, profile: str, files: Path | None = None) -> tuple[str, ...]:
    """Return the clauses about every size that a package of this name doesn't meet this time."""
    changed = changed_now()
    if os.environ.get("CONFORM_SIZES") == "all" or (files is not None and _changed(files, changed)):
        return ()
    sized = [clause for clause in clauses_of(profile).values() if clause.sizes]
    turn = crc32(name.encode()) + int(os.environ.get("CONFORM_SEED", "0"))
    return tuple(
        clause.id for number, clause in enumerate(sized)
        if (number + turn) % SHARES and changed.isdisjoint(_about(clause))
    )  # fmt: skip


def share(name: str, profile: str, files: Path | None = None) -> str:
    """Return the same as a text for `tests.outcomes.Inputs`: an outcome is that of what was met."""
    return " ".join(("without", *left_out(name, profile, files)))


def _changed(files: Path, changed: frozenset[str]) -> bool:
    own = files.relative_to(ROOT).as_posix()
    return any(file == own or file.startswith(f"{own}/") for file in changed)


def _about(clause: Clause) -> tuple[str, str]:
    return f"spec/{clause.document}.md", f"conformance/suite/test_{clause.document}.py"
