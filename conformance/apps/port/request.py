"""What to convert, and what came of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from conformkit.conformance.apps.port.proof import Proof
from conformkit.spec.arrays import Array

__all__ = ["NamedMistake", "PortReport", "PortRequest"]


@dataclass(frozen=True, slots=True)
class PortRequest:
    """What to convert, and how.

    `theirs` is code, a class of transformers, or nothing where `like` names the family of the weights.
    """

    ours: str
    theirs: str = ""
    like: str = ""
    weights: Path | Mapping[str, Array] | None = None
    """A file or folder of theirs; None: random ones."""
    config: Path | None = None
    """Their config.json; by default the one next to the weights."""
    converted: Path | Mapping[str, Array] | None = None
    """What your own conversion made of them, to be checked."""
    out: Path | None = None
    sizes: Mapping[str, int] = field(default_factory=dict)
    seed: int = 0
    isolation: str = "process"
    keep: bool = False
    """Whether to return the converted arrays where no file is written."""


@dataclass(frozen=True, slots=True)
class NamedMistake:
    """A mistake: its id, a sentence, how certain it is (`exact`, `likely`, `unsure`), and what it is about."""

    id: str
    sentence: str
    certainty: str
    where: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PortReport:
    """What came of it.

    `code` compares both with small random weights, `checkpoint` with those of the file; `map` is a Python function
    that converts; `converted` are the arrays of ours where no file was written.
    """

    theirs: str
    ours: str
    code: Proof
    checkpoint: Proof | None
    map: str
    differences: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """Choices in which the two compute differently, in words: theirs, ours."""
    problems: tuple[str, ...] = ()
    mistakes: tuple[NamedMistake, ...] = ()
    notes: tuple[str, ...] = ()
    written: str = ""
    converted: Mapping[str, Array] = field(default_factory=dict)

    @property
    def proved(self) -> bool:
        """Whether both say the same with the converted weights."""
        proofs = [self.code, *([self.checkpoint] if self.checkpoint else [])]
        return all(proof.holds for proof in proofs) and not self.problems and not self.differences

    @property
    def first(self) -> str:
        """The first part that differs."""
        return next((p.first for p in (self.code, self.checkpoint) if p is not None and not p.holds), "")
