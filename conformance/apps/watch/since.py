"""Which parts of an implementation a change of its sources reaches, given where each is defined."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from conformkit.conformance.apps.watch.affected import Change, change
from conformkit.conformance.apps.watch.snapshot import Files, Lookout

__all__ = ["changed_since", "reached", "reached_parts"]


def changed_since(now: Path, then: Path) -> tuple[Change, Files]:
    """Return what differs between an implementation and an earlier copy of it, and its present files."""
    files, old = Lookout(now).look(), Lookout(then).look()
    earlier = {_moved(path, then, now): content for path, content in old.items()}
    return change(earlier, files), files


def _moved(path: Path, old: Path, new: Path) -> Path:
    return new.parent / path.relative_to(old.parent) if path.is_relative_to(old.parent) else path


def reached(changed: Change, where: str, home: Path, files: Files, *, directly: bool = False) -> bool:
    """Whether a change can affect what is defined at `mypkg/attention.py:12`, or if that is unknown."""
    file, _, line = where.rpartition(":")
    tries = (home / file, *(parent / file for parent in home.parents))
    known = next((path for path in tries if path in files), None)
    if known is None or not line.isdigit():
        return True
    return changed.reaches(known, int(line), files, directly=directly)


def reached_parts(changed: Change, sources: Mapping[str, str], home: Path, files: Files) -> frozenset[str]:
    """Return the names of the exports that a change can affect."""
    return frozenset(name for name, where in sources.items() if reached(changed, where, home, files))
