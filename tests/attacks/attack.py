"""What an attack's folder declares: what it tries, and the required outcome. README.md describes the format."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

__all__ = ["CLASSES", "FOLDER", "LEVELS", "Attack", "Expected", "attacks"]

FOLDER = Path(__file__).parent
CLASSES = ("forging", "spying", "denial", "tampering", "configuration", "excuses", "text", "archives")
LEVELS = ("process", "sandbox")
SUCCEEDED = "SUCCEEDED"
"""What an attack prints on success, where no verdict would show it."""


@dataclass(frozen=True, slots=True)
class Expected:
    """The required outcome.

    `ends`: judged, not loaded, refused (its conform.toml cannot be used); several if it is a race.
    """

    ends: tuple[str, ...] = ("judged",)
    conforms: bool = False
    verdicts: Mapping[str, str] = field(default_factory=dict)
    says: tuple[str, ...] = ()
    """Texts that occur in the report, or in the message that says why there is none."""
    never_says: tuple[str, ...] = (SUCCEEDED,)
    exit: int | None = None
    """The exit code, if it is run as a command."""
    grade: str = "zero"
    """Its grade: zero, full, or no points because it is refused or unreadable."""
    traces: tuple[str, ...] = ()
    """Files that must not exist afterwards; {parent} and {home} stand for folders."""


@dataclass(frozen=True, slots=True)
class Attack:
    """One folder: hostile files, and attack.toml."""

    folder: Path
    title: str
    tries: str
    source: str
    base: str = "wrong"
    """The module that is put next to its files: wrong, right, wrong_torch, right_torch; or nothing."""
    name: str = "submission"
    """The name of the package on disk."""
    levels: tuple[str, ...] = LEVELS
    only: tuple[str, ...] = ("SDPA-OUT-SHAPE", "SDPA-SCALE", "SDPA-FORMULA")
    profile: str = "core"
    dtype: str = ""
    """The number format given on the command line."""
    seed: int = 0
    strict: bool = False
    """Whether it is judged with --strict."""
    processes: int = 1
    diagnose: bool = False
    limits: Mapping[str, Any] = field(default_factory=dict)
    run: str = "here"
    """Whether the harness runs in the test's process, or as a `command` in the submission's folder, or `beside` it."""
    make: tuple[Mapping[str, Any], ...] = ()
    """Files that a repository cannot hold: links, pipes, huge ones. See making.py."""
    archive: Mapping[str, Any] = field(default_factory=dict)
    """What is packed, and how. See packing.py."""
    expected: Mapping[str, Expected] = field(default_factory=dict)

    @property
    def kind(self) -> str:
        """The class it belongs to."""
        return self.folder.parent.name

    @property
    def id(self) -> str:
        """Its unique name."""
        return f"{self.kind}/{self.folder.name}"

    @property
    def torch(self) -> bool:
        """Whether its base is written in torch."""
        return self.base.endswith("torch")


def attacks(kind: str | None = None) -> list[Attack]:
    """Return all attacks, or those of a class, in the order of their names."""
    found = sorted(FOLDER.glob(f"{kind or '*'}/*/attack.toml"))
    return [read(path.parent) for path in found]


@cache
def read(folder: Path) -> Attack:
    """Return one attack. An unknown key is an error, and so is a missing one."""
    table = tomllib.loads((folder / "attack.toml").read_text(encoding="utf-8"))
    expected = table.pop("expected")
    own = {level: expected.pop(level, {}) for level in LEVELS}
    common = Expected(**_frozen(expected))
    by_level = {level: replace(common, **_frozen(changes)) for level, changes in own.items()}
    return Attack(folder=folder, expected=by_level, **_frozen(table))


def _frozen(table: Mapping[str, Any]) -> dict[str, Any]:
    return {key: tuple(value) if isinstance(value, list) else value for key, value in table.items()}
