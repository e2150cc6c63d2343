"""The instructor's policy: what counts and how much, what a submission may declare and use, what students see."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from conformkit.conformance.binding import limits as sizes
from conformkit.spec.clauses import Clause, Level, clauses, clauses_of
from conformkit.spec.components import component, is_component

__all__ = [
    "OPTIONAL", "Allowed", "ArchiveLimits", "CoursePolicy", "GroupPolicy", "Losses", "Policy", "RunLimits", "binding",
    "default_groups",
]  # fmt: skip

Loss = Literal["clause", "group", "all"]
Blocked = Literal["nothing", "half", "free", "own"]
Credit = Literal["partial", "parts", "all"]
_FREE_CHOICES = {"qkv_bias": (True,), "output_bias": (True,)}
OPTIONAL = ("weights",)
"""Optional abilities in the contract: nobody needs them, and no policy has to mention them."""


@dataclass(frozen=True, slots=True)
class GroupPolicy:
    """Clauses that share a number of points: each alike, the parts that they are about alike, or only if all pass."""

    name: str
    title: str
    points: float
    clauses: tuple[str, ...]
    credit: Credit = "partial"
    """`parts` are those of parts.py."""
    cap: float = 1.0
    """With `parts`, the largest share of the points that it gives where something fails."""
    required: tuple[str, ...] = ()
    """If one of these fails, the group gives no points."""


@dataclass(frozen=True, slots=True)
class Allowed:
    """What a submission's conform.toml may declare beyond names and weights, and which abilities it may lack."""

    variant: Mapping[str, tuple[Any, ...]] = field(default_factory=lambda: dict(_FREE_CHOICES))
    """By choice, the allowed values besides the canonical one: by default the biases of a framework's own layers."""
    sizes: sizes.SizeLimits = field(default_factory=sizes.SizeLimits)
    """The narrowest limits that may be declared."""
    dtypes: tuple[str, ...] = ("float64", "float32")
    excuses: tuple[str, ...] = ("constants", "computed", "ignore", "masks", "causal", "generate")
    """Kinds of declarations that count although they could hide a mistake: by default none that changes arithmetic.

    Ignored parameters are counted in any case.
    """
    lacking: tuple[str, ...] = ()
    """Abilities whose clauses are excluded if a submission lacks them."""
    not_applicable: tuple[str, ...] = ()
    """Clauses that are excluded if they don't apply, whatever the reason."""


@dataclass(frozen=True, slots=True)
class RunLimits:
    """Limits of judging one submission."""

    seconds: float = 300.0
    call_seconds: float = 20.0
    load_seconds: float = 120.0
    memory: int = 4 << 30
    output: int = 8 << 20
    processes: int = 64
    file: int = 64 << 20
    """Maximum size of a file that it writes."""
    disk: int = 256 << 20
    """Maximum size of all files that it writes."""
    threads: int = 1


@dataclass(frozen=True, slots=True)
class ArchiveLimits:
    """Limits of an unpacked submission."""

    bytes: int = 64 << 20
    files: int = 2000
    depth: int = 20
    ratio: int = 200
    """Maximum ratio of unpacked to packed size."""


@dataclass(frozen=True, slots=True)
class Losses:
    """What else is lost after a crash or a timeout, and what counts after the deadline."""

    crash: Loss = "clause"
    timeout: Loss = "clause"
    deadline: Literal["partial", "zero"] = "partial"


@dataclass(frozen=True, slots=True)
class CoursePolicy:
    """The files of a course, and what turns points of submissions into grades of students; paths are as written."""

    roster: str = ""
    """CSV with the columns id and name, and email and section if there are any."""
    adjustments: str = ""
    """CSV with the columns who, points and comment."""
    submitted: str = ""
    """CSV with the columns submission and time."""
    deadline: str = ""
    """With a time zone, as 2026-11-23T18:00+01:00."""
    per_day: float = 10.0
    """Percent of the points that each day that has begun costs."""
    most: float = 100.0
    """Maximum percentage lost."""
    grace_minutes: float = 0.0
    attempts: Literal["best", "last"] = "best"


@dataclass(frozen=True, slots=True)
class Policy:
    """Everything that decides about points. Policies with the same digest give every submission the same points."""

    title: str = ""
    profile: str = "core"
    level: Level = Level.MUST
    groups: tuple[GroupPolicy, ...] = ()
    required: tuple[str, ...] = ()
    """If one of these fails, the whole score is zero."""
    allowed: Allowed = field(default_factory=Allowed)
    limits: RunLimits = field(default_factory=RunLimits)
    archive: ArchiveLimits = field(default_factory=ArchiveLimits)
    losses: Losses = field(default_factory=Losses)
    blocked: Blocked = "half"
    """What a clause counts that could not be judged because another one fails: see scoring.py."""
    names: Literal["exact", "found"] = "exact"
    """Whether what is called otherwise than the assignment asks is told, or judged all the same."""
    forbidden: tuple[str, ...] = ()
    seed: int | None = None
    """None: a hidden one, drawn for the run."""
    hints: int = 1
    isolation: str = "sandbox"
    impl: str = ""
    """Name of a submission's module; if empty, it is searched for."""
    conform: str = ""
    """Text of a conform.toml that replaces every submission's own."""
    course: CoursePolicy = field(default_factory=CoursePolicy)

    @property
    def max_points(self) -> float:
        """Maximum points, if every clause applies."""
        return sum(group.points for group in self.groups)

    def wanted(self) -> tuple[str, ...]:
        """Return the clauses that decide about points, in the order of the law."""
        named = {clause for group in self.groups for clause in (*group.clauses, *group.required)} | {*self.required}
        return tuple(clause for clause in clauses() if clause in named)

    def evidence(self) -> str:
        """Return a digest of what decides about verdicts and what is told of them: the rest only counts them.

        Titles, points, which clauses share them, credit, what is required and what is lost count stored verdicts anew.
        """
        content = asdict(self)
        for name in ("title", "groups", "required", "losses", "blocked", "course"):
            del content[name]
        content["wanted"] = sorted(self.wanted())
        return hashlib.sha256(json.dumps(content, sort_keys=True, default=list).encode()).hexdigest()

    def digest(self) -> str:
        """Return the SHA-256 of the policy's content, independent of layout and comments."""
        content = json.dumps(asdict(self), sort_keys=True, ensure_ascii=True)
        return hashlib.sha256(content.encode()).hexdigest()


def default_groups(profile: str, level: Level, credit: Credit, cap: float) -> tuple[GroupPolicy, ...]:
    """Return the groups of a policy without groups: 100 points, alike for each required component.

    What is about all of them counts in the one with most clauses, which holds the others.
    """
    counted = [c for c in clauses_of(profile).values() if binding(c, level) and _required(c)]
    wholes = list(dict.fromkeys(c.component for c in counted if is_component(c.component)))
    sizes = Counter(clause.component for clause in counted)
    whole = max(wholes, key=lambda name: sizes[name], default="all")
    owned = {clause.id: clause.component if clause.component in wholes else whole for clause in counted}
    return tuple(
        GroupPolicy(name, name, 100.0 / len(wholes or [whole]), ids, credit, cap)
        for name in wholes or [whole]
        if (ids := tuple(each for each, owner in owned.items() if owner == name))
    )


def binding(clause: Clause, level: Level) -> bool:
    """Whether a clause counts at a level: SHOULD counts MUST and SHOULD."""
    return level.includes(clause.level)


def _required(clause: Clause) -> bool:
    return not is_component(clause.component) or component(clause.component).required
