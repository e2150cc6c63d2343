"""A class in which all but one attack: nobody gets unearned points, and the honest one gets all."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from conformkit.conformance.apps.grade.grade import GradeRequest, grade
from conformkit.conformance.apps.grade.policy import ArchiveLimits, GroupPolicy, Policy, RunLimits
from conformkit.conformance.apps.grade.record import Grade
from tests.tiers import sampled

from .attack import CLASSES, Attack, attacks
from .making import lay_out
from .packing import pack
from .sandboxes import sandbox
from .world import SECRET, World, guarded, left_over

CLAUSES = ("SDPA-OUT-SHAPE", "SDPA-SCALE", "SDPA-FORMULA", "SDPA-LEADING", "SDPA-V-LINEAR")
POLICY = Policy(
    groups=(GroupPolicy("all", "Everything", 10.0, CLAUSES, credit="all"),),
    limits=RunLimits(seconds=40.0, call_seconds=4.0, load_seconds=10.0, memory=1 << 30, output=1 << 18, processes=64),
    archive=ArchiveLimits(bytes=16 << 20),
    hints=0,
)
OUTCOMES = {"refused": {"refused"}, "unreadable": {"unreadable"}}
NEVER = {"kit failed"}
ELSEWHERE = {"text", "excuses"}
"""Texts earn nothing; test_excuses.py grades excuses on the clauses that they are about."""

NEAR = ["conformance/apps/grade", "conformance/driver", "tests/attacks/base"]
"""What such a class depends on more than other tests do."""


@sandbox
@pytest.mark.parametrize(
    "kind",
    sampled(
        [kind for kind in CLASSES if kind not in ELSEWHERE],
        always=["spying"],
        near=lambda kind: [f"tests/attacks/{kind}", *NEAR],
    ),
)
def test_nobody_gets_points_by_an_attack(kind: str, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    everyone = attacks(kind)
    monkeypatch.setenv("TMPDIR", str(world.folder))
    with world.class_room() as room, guarded(600):
        names = {f"{kind}-{attack.folder.name}": attack for attack in everyone}
        for name, attack in names.items():
            hand_in(attack, room / "submissions", name)
        before = around(room)
        summary = grade(GradeRequest(room / "submissions", POLICY, room / "out", workers=2))
        while left_over(world):
            os.sched_yield()
        after, told = around(room), written(room / "out")
    grades = {found.submission.name: found for found in summary.grades}
    assert grades.pop("honest").points == POLICY.max_points
    assert {name: earned(grades[name], attack) for name, attack in names.items()} == dict.fromkeys(names, "")
    assert after == before
    assert SECRET not in told
    assert not traces(everyone, room, world)


def hand_in(attack: Attack, folder: Path, name: str) -> None:
    """Write a submission to disk, or pack it."""
    if attack.archive:
        pack(attack, folder, name)
    else:
        lay_out(replace(attack, name=name), folder)


def earned(found: Grade, attack: Attack) -> str:
    """Say what is wrong with a grade; nothing, if it is the required one."""
    wanted = attack.expected["sandbox"].grade
    outcome = found.outcome.value
    points = {"full": {POLICY.max_points}, "any": {0.0, POLICY.max_points}}.get(wanted, {0.0})
    if found.points in points and outcome in OUTCOMES.get(wanted, {outcome}) and outcome not in NEVER:
        return ""
    return f"{found.points} points, {outcome}: {found.message}; wanted {wanted}"


def around(room: Path) -> Mapping[str, str]:
    """Return the honest package and the files next to the submissions."""
    places = [*(room / "submissions" / "honest").iterdir(), *(path for path in room.iterdir() if path.is_file())]
    return {str(path.relative_to(room)): path.read_text(encoding="utf-8") for path in places}


def written(out: Path) -> str:
    """Return everything that grading has written."""
    files = (path for path in out.rglob("*") if path.is_file())
    return "\n".join(path.read_bytes().decode(errors="replace") for path in files)


def traces(everyone: list[Attack], room: Path, world: World) -> list[str]:
    """Return what was left behind, and remove it."""
    places = {"parent": room / "submissions", "home": world.home}
    named = {Path(t.format(**places)) for attack in everyone for t in attack.expected["sandbox"].traces}
    left = [path for path in named if path.exists()] + list(world.folder.glob("conform-grade-*"))
    for path in left:
        subprocess.run(["rm", "-rf", str(path)], check=True)
    return [str(path) for path in left]
