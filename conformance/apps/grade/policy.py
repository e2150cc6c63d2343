"""The instructor's policy: what counts, how much, what a submission may declare and use up, and what is told."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from conformkit.conformance.binding import limits as sizes
from conformkit.spec.clauses import Clause, Level, clauses, clauses_of
from conformkit.spec.components import component, is_component

__all__ = [
    "OPTIONAL", "Allowed", "ArchiveLimits", "GroupPolicy", "Losses", "Policy", "RunLimits", "binding", "default_group",
]  # fmt: skip

Loss = Literal["clause", "group", "all"]
OPTIONAL = ("weights",)
"""Abilities that the contract leaves open: nobody needs them, and no policy has to say so."""


@dataclass(frozen=True, slots=True)
class GroupPolicy:
    """Clauses that share a number of points: in equal parts (`partial`), or for all of them only (`all`)."""

    name: str
    title: str
    points: float
    clauses: tuple[str, ...]
    credit: Literal["partial", "all"] = "partial"
    required: tuple[str, ...] = ()
    """Without these the group gives nothing."""


@dataclass(frozen=True, slots=True)
class Allowed:
    """What a submission's conform.toml may declare beyond names and weights, and what it need not be able to do."""

    variant: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    """By choice, the values that are right beside the canonical one."""
    sizes: sizes.Limits = field(default_factory=sizes.Limits)
    """The narrowest limits that may be declared."""
    dtypes: tuple[str, ...] = ("float64", "float32")
    lacking: tuple[str, ...] = ()
    """Abilities whose clauses are left out where a submission has not got them."""
    not_applicable: tuple[str, ...] = ()
    """Clauses that are left out where they don't apply, whatever the reason."""


@dataclass(frozen=True, slots=True)
class RunLimits:
    """What judging one submission may take."""

    seconds: float = 300.0
    call_seconds: float = 20.0
    load_seconds: float = 120.0
    memory: int = 4 << 30
    output: int = 8 << 20
    processes: int = 64
    file: int = 64 << 20
    """The largest file that it may write."""
    disk: int = 256 << 20
    """All that it may write."""
    threads: int = 1


@dataclass(frozen=True, slots=True)
class ArchiveLimits:
    """How much a submission may contain, unpacked."""

    bytes: int = 64 << 20
    files: int = 2000
    depth: int = 20
    ratio: int = 200
    """How many times larger than itself an archive may become."""


@dataclass(frozen=True, slots=True)
class Losses:
    """What a clause that ended in a crash or a timeout takes with it, and what counts when the whole time was up."""

    crash: Loss = "clause"
    timeout: Loss = "clause"
    deadline: Literal["partial", "zero"] = "partial"


@dataclass(frozen=True, slots=True)
class Policy:
    """Everything that decides about points. Two policies with one digest give every submission the same points."""

    title: str = ""
    profile: str = "core"
    level: Level = Level.MUST
    groups: tuple[GroupPolicy, ...] = ()
    required: tuple[str, ...] = ()
    """Without these the whole score is zero."""
    allowed: Allowed = field(default_factory=Allowed)
    limits: RunLimits = field(default_factory=RunLimits)
    archive: ArchiveLimits = field(default_factory=ArchiveLimits)
    losses: Losses = field(default_factory=Losses)
    forbidden: tuple[str, ...] = ()
    seed: int | None = None
    """None: a secret one, drawn for the run."""
    hints: int = 1
    isolation: str = "sandbox"
    impl: str = ""
    """What a submission's module is called; empty: it is looked for."""
    conform: str = ""
    """The text of a conform.toml that holds for every submission instead of its own."""

    @property
    def max_points(self) -> float:
        """What a submission to which everything applies can get."""
        return sum(group.points for group in self.groups)

    def wanted(self) -> tuple[str, ...]:
        """Return the clauses that decide about points, in the order of the law."""
        named = {clause for group in self.groups for clause in (*group.clauses, *group.required)} | {*self.required}
        return tuple(clause for clause in clauses() if clause in named)

    def digest(self) -> str:
        """Return the SHA-256 of what the policy says, whatever its layout and comments."""
        content = json.dumps(asdict(self), sort_keys=True, ensure_ascii=True)
        return hashlib.sha256(content.encode()).hexdigest()


def default_group(profile: str, level: Level) -> GroupPolicy:
    """Return the group of a policy that names none: every clause about what an implementation must export."""
    counted = (c for c in clauses_of(profile).values() if binding(c, level) and _required(c))
    return GroupPolicy("all", "Everything", 100.0, tuple(clause.id for clause in counted))


def binding(clause: Clause, level: Level) -> bool:
    """Whether a clause counts at a level: SHOULD counts MUST and SHOULD."""
    order = list(Level)
    return order.index(clause.level) <= order.index(level)


def _required(clause: Clause) -> bool:
    return not is_component(clause.component) or component(clause.component).required
