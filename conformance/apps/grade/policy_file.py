"""Read policy.toml. Errors name the line and the nearest known name."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import fields
from importlib.resources import files
from pathlib import Path
from typing import Any, cast

from conformkit.conformance.apps.grade.course_file import read_course
from conformkit.conformance.apps.grade.policy import (
    OPTIONAL,
    Allowed,
    ArchiveLimits,
    CoursePolicy,
    Credit,
    GroupPolicy,
    Losses,
    Policy,
    RunLimits,
    binding,
    default_groups,
)
from conformkit.conformance.binding.arguments import DTYPES
from conformkit.conformance.binding.config import parse_config
from conformkit.conformance.binding.declarations import KINDS
from conformkit.conformance.binding.limits import read_limits
from conformkit.conformance.binding.messages import hint, nearest, shown
from conformkit.conformance.binding.toml_nodes import Node, parse_document, read_text
from conformkit.spec.clauses import Level, UnknownClauseError, clauses, clauses_of, select
from conformkit.spec.profiles import PROFILES
from conformkit.spec.variants import choices

__all__ = ["READY", "abilities", "example", "parse_policy", "read_policy", "ready"]

EXCUSES = tuple(kind for kind in KINDS if kind not in {"variant", "limits", "dtypes", "skip"})
"""Kinds of excuses that a policy allows by name; the others have a key of their own, or are never allowed."""
ISOLATIONS = ("sandbox", "process")
HIDDEN = "hidden"

_TOP = (
    "title", "profile", "level", "seed", "hints", "isolation", "impl", "conform", "forbidden", "required", "groups",
    "allow", "limits", "archive", "lose", "blocked", "course", "credit", "cap",
    "names",
)  # fmt: skip
_CREDITS = ("parts", "partial", "all")
_CAP = 0.5
READY = ("strict", "course", "encouraging")
"""Policies that need no file."""
_UNITS = {"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
_SIZE = re.compile(r"(\d+(?:\.\d+)?) ?(KiB|MiB|GiB)")
_NAME = re.compile(r"[A-Za-z0-9_-]{1,40}")
_DOTTED = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)*")
_IMPL = re.compile(r"[\w-]+(?:[./][\w-]+)*(?:\.py)?")
_MAX_POINTS = 1_000_000


def read_policy(path: Path, *, alone: bool = False) -> Policy:
    """Return the policy in a file, for a submission that is graded `alone` without its course. Raises ConfigError."""
    return parse_policy(read_text(path), path, alone=alone)


def ready(name: str) -> Policy:
    """Return one of the policies that need no file, READY."""
    file = files(__package__).joinpath("policies", f"{name}.toml")
    return parse_policy(file.read_text(encoding="utf-8"), Path(f"{name}.toml"))


def example() -> str:
    """Return the text of a valid policy that uses every key, with comments."""
    return files(__package__).joinpath("policy.example.toml").read_text(encoding="utf-8")


def parse_policy(text: str, path: Path = Path("policy.toml"), *, alone: bool = False) -> Policy:
    """Return the policy in a text; relative paths in it start at the folder of `path`. Raises ConfigError.

    For a submission that is graded `alone`, as on Gradescope, the course is not read: its files need not be there.
    """
    top = parse_document(text, path).table(_TOP)
    profile = top["profile"].choice(PROFILES) if "profile" in top else "core"
    level = Level(top["level"].choice(list(Level))) if "level" in top else Level.MUST
    credit: Credit = cast("Any", top["credit"].choice(_CREDITS)) if "credit" in top else "parts"
    cap = _share(top["cap"]) if "cap" in top else _CAP
    if "groups" in top:
        groups = _groups(top["groups"], profile, level, credit, cap)
    else:
        groups = default_groups(profile, level, credit, cap)
    return Policy(
        title=top["title"].text(200) if "title" in top else "",
        profile=profile,
        level=level,
        groups=groups,
        required=_clauses(top["required"], profile, level) if "required" in top else (),
        allowed=_allowed(top["allow"], profile) if "allow" in top else Allowed(),
        limits=_run_limits(top["limits"]) if "limits" in top else RunLimits(),
        archive=_archive(top["archive"]) if "archive" in top else ArchiveLimits(),
        losses=_losses(top["lose"]) if "lose" in top else Losses(),
        blocked=cast("Any", top["blocked"].choice(("own", "half", "nothing", "free"))) if "blocked" in top else "own",
        names=cast("Any", top["names"].choice(("exact", "found"))) if "names" in top else "exact",
        forbidden=_dotted(top["forbidden"]) if "forbidden" in top else (),
        seed=_seed(top["seed"]) if "seed" in top else None,
        hints=top["hints"].whole(0, 3) if "hints" in top else 1,
        isolation=top["isolation"].choice(ISOLATIONS) if "isolation" in top else "sandbox",
        impl=_impl(top["impl"]) if "impl" in top else "",
        conform=_conform(top["conform"], path) if "conform" in top else "",
        course=read_course(top["course"], path) if "course" in top and not alone else CoursePolicy(),
    )


def abilities(profile: str) -> tuple[str, ...]:
    """Return the abilities that clauses of a profile name after `Applies:`."""
    named = {name for clause in clauses_of(profile).values() for name in clause.applies}
    return tuple(sorted(named - choices().keys() - {*OPTIONAL}))


# --- groups -----------------------------------------------------------------------------------------------------------


def _groups(node: Node, profile: str, level: Level, credit: Credit, cap: float) -> tuple[GroupPolicy, ...]:
    found = tuple(_group(item, profile, level, credit, cap) for item in node.items())
    if not found:
        raise node.error("no group gives any points", "remove the key to count all clauses equally")
    owners: dict[str, str] = {}
    for item, group in zip(node.items(), found, strict=True):
        if group.name in owners.values():
            raise item.table()["name"].error(f"two groups are called {shown(group.name)}")
        for clause in group.clauses:
            if clause in owners:
                raise item.table()["clauses"].error(f"{clause} is in the group {shown(owners[clause])} already")
        owners |= dict.fromkeys(group.clauses, group.name)
    return found


def _group(node: Node, profile: str, level: Level, credit: Credit, cap: float) -> GroupPolicy:
    keys = node.table(("name", "title", "points", "clauses", "credit", "cap", "required"))
    for key in ("name", "points", "clauses"):
        if key not in keys:
            raise node.error(f"a group needs its {key}")
    if not keys["clauses"].items():
        raise keys["clauses"].error("the list is empty")
    name = keys["name"].text(40)
    if not _NAME.fullmatch(name):
        raise keys["name"].error(f"{shown(name)} is not a valid name for a group", "use letters, digits, - and _")
    return GroupPolicy(
        name=name,
        title=keys["title"].text(200) if "title" in keys else name,
        points=_points(keys["points"]),
        clauses=_clauses(keys["clauses"], profile, level),
        credit=cast("Any", keys["credit"].choice(_CREDITS)) if "credit" in keys else credit,
        cap=_share(keys["cap"]) if "cap" in keys else cap,
        required=_clauses(keys["required"], profile, level) if "required" in keys else (),
    )


def _share(node: Node) -> float:
    found = 0.0 if node.value == 0 else node.positive()
    if found > 1:
        raise node.error(f"it is {found:g}, expected 0 to 1")
    return found


def _points(node: Node) -> float:
    found = node.positive()
    if found > _MAX_POINTS:
        raise node.error(f"it is {found:g}, expected at most {_MAX_POINTS}")
    return found


def _clauses(node: Node, profile: str, level: Level) -> tuple[str, ...]:
    """Return the ids that a list of ids and prefixes selects; a prefix selects those that count at the level."""
    found: set[str] = set()
    for item in node.items():
        found |= _matching(item, profile, level)
    return tuple(clause for clause in clauses() if clause in found)


def _matching(node: Node, profile: str, level: Level) -> set[str]:
    word = node.text(80).strip().upper()
    if word in clauses():
        if word not in clauses_of(profile):
            raise node.error(f"{word} belongs to profile {clauses()[word].profile}, the policy's is {profile}")
        return {word}
    try:
        chosen = select(()) if word == "*" else select((word.removesuffix("*"),))
    except UnknownClauseError as error:
        raise node.error(f"there is no clause {shown(node.value)}", _nearest(error)) from None
    counted = {clause.id for clause in chosen if clause.id in clauses_of(profile) and binding(clause, level)}
    if not counted:
        raise node.error(f"{shown(node.value)} selects no clause of profile {profile} at level {level}")
    return counted


def _nearest(error: UnknownClauseError) -> str:
    return hint(error.nearest, "conform spec lists them all")


# --- what may be declared ---------------------------------------------------------------------------------------------


def _allowed(node: Node, profile: str) -> Allowed:
    keys = node.table(("variant", "sizes", "dtypes", "excuses", "lacking", "not_applicable"))
    standard = Allowed()
    return Allowed(
        variant=_variants(keys["variant"]) if "variant" in keys else standard.variant,
        sizes=read_limits(keys["sizes"]) if "sizes" in keys else standard.sizes,
        dtypes=keys["dtypes"].choices(DTYPES) if "dtypes" in keys else standard.dtypes,
        excuses=keys["excuses"].choices(EXCUSES) if "excuses" in keys else standard.excuses,
        lacking=keys["lacking"].choices(abilities(profile)) if "lacking" in keys else (),
        not_applicable=_clauses(keys["not_applicable"], profile, Level.MAY) if "not_applicable" in keys else (),
    )


def _variants(node: Node) -> dict[str, tuple[Any, ...]]:
    """Return the allowed values of each choice, read like a conform.toml that declares them."""
    found: dict[str, tuple[Any, ...]] = {}
    for name, value in node.table(choices(), "choice").items():
        found[name] = tuple(_choice(name, item) for item in value.items())
        if not found[name]:
            raise value.error("the list is empty", "remove the line: the canonical value is always allowed")
    return found


def _choice(name: str, node: Node) -> Any:
    kind = choices()[name]
    if isinstance(kind, tuple):
        return node.choice(kind)
    if kind is bool:
        return node.flag()
    if kind is float:
        return node.positive()
    if kind is int:
        return node.whole(1, _MAX_POINTS)
    return node.text(200) if isinstance(node.value, str) else str(node.whole(1, _MAX_POINTS))


# --- limits -----------------------------------------------------------------------------------------------------------


def _run_limits(node: Node) -> RunLimits:
    readers: Mapping[str, Any] = {
        "seconds": Node.positive, "call_seconds": Node.positive, "load_seconds": Node.positive,
        "memory": _amount, "output": _amount, "file": _amount, "disk": _amount,
        "processes": lambda n: n.whole(1, 10_000), "threads": lambda n: n.whole(1, 1024),
    }  # fmt: skip
    found = node.table(tuple(f.name for f in fields(RunLimits)))
    return RunLimits(**{name: readers[name](value) for name, value in found.items()})


def _archive(node: Node) -> ArchiveLimits:
    readers: Mapping[str, Any] = {
        "bytes": _amount, "files": lambda n: n.whole(1, 100_000), "depth": lambda n: n.whole(1, 100),
        "ratio": lambda n: n.whole(2, 100_000),
    }  # fmt: skip
    found = node.table(tuple(f.name for f in fields(ArchiveLimits)))
    return ArchiveLimits(**{name: readers[name](value) for name, value in found.items()})


def _amount(node: Node) -> int:
    match = _SIZE.fullmatch(node.text(40))
    size = math.floor(float(match[1]) * _UNITS[match[2]]) if match else 0
    if not 1 << 10 <= size <= 1 << 44:
        raise node.error(f"{shown(node.value)} is not an amount of bytes", 'write it as "512 MiB" or "4 GiB"')
    return size


def _losses(node: Node) -> Losses:
    kinds: Mapping[str, Iterable[str]] = {
        "crash": ("clause", "group", "all"), "timeout": ("clause", "group", "all"), "deadline": ("partial", "zero"),
    }  # fmt: skip
    found: dict[str, Any] = {name: value.choice(kinds[name]) for name, value in node.table(kinds).items()}
    return Losses(**found)


# --- the rest ---------------------------------------------------------------------------------------------------------


def _dotted(node: Node) -> tuple[str, ...]:
    for item in node.items():
        if not _DOTTED.fullmatch(item.text(200)):
            raise item.error(f"{shown(item.value)} is not a dotted name", 'write "package" or "package.module.name"')
    return tuple(item.text() for item in node.items())


def _seed(node: Node) -> int | None:
    if isinstance(node.value, str):
        if node.value != HIDDEN:
            near = hint(nearest(node.value, [HIDDEN]), f'write "{HIDDEN}" or a number')
            raise node.error(f"{shown(node.value)} is not a seed", near)
        return None
    return node.whole(0, 2**63 - 1)


def _impl(node: Node) -> str:
    text = node.text(200)
    if not _IMPL.fullmatch(text):
        raise node.error(
            f"{shown(text)} is not a module, file or folder of a submission", 'write "solution" or "src/model.py"'
        )
    return text


def _conform(node: Node, policy: Path) -> str:
    """Return the text of the conform.toml for every submission; errors in it name that file."""
    path = policy.parent / node.text(1000)
    if not path.is_file():
        raise node.error(f"there is no file {shown(path)}")
    text = read_text(path)
    parse_config(text, path)
    return text
