"""What conform.toml declares earns no points that the code does not, and names of a submission are only names."""

from __future__ import annotations

import os
import shutil
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from conformkit.conformance.apps.grade.grade import GradeRequest, grade
from conformkit.conformance.apps.grade.policy import GroupPolicy, Policy, RunLimits
from conformkit.spec.clauses import Level, select
from tests.outcomes import Inputs, product
from tests.tiers import sampled

from .attack import FOLDER, Attack, attacks
from .making import lay_out
from .world import World, guarded, left_over

COMMAND = Path(sys.executable).with_name("conform")


def musts(*prefixes: str) -> tuple[str, ...]:
    """Return binding clauses; not those about what only some code offers, which lacking costs points."""
    optional = {"MASK-PAD-BUILD", "GEN-EOS-STOP", "GEN-EOS-ROWS"}
    return tuple(clause.id for clause in select(prefixes) if clause.level is Level.MUST and clause.id not in optional)


GROUPS = {
    "attention": GroupPolicy("attention", "Attention", 5.0, musts("SDPA-SCALE", "SDPA-FORMULA", "MASK"), credit="all"),
    "heads": GroupPolicy("heads", "Heads", 5.0, musts("MHA"), credit="all"),
    "text": GroupPolicy("text", "Text", 5.0, musts("GEN"), credit="all"),
}


def policy(*groups: str) -> Policy:
    limits = RunLimits(seconds=120.0)
    return Policy(groups=tuple(GROUPS[name] for name in groups), limits=limits, hints=0, isolation="process")


def about(attack: Attack) -> str:
    groups = {"MHA": "heads", "GEN": "text"}
    return groups.get(attack.only[-1].partition("-")[0], "attention")


QUICK = (
    "excuses/known-factor-of-others", "excuses/second-output", "excuses/ignored-residual-layer",
    "excuses/causal-upside-down", "excuses/input-given-twice",
)  # fmt: skip


NEAR = ["conformance/apps/grade", "conformance/binding", "tests/attacks/base", "tests/attacks/excuses"]
ALONE = [
    case
    for case in sampled(
        attacks("excuses"), lambda attack: attack.id, always=QUICK, files=lambda attack: [attack.folder]
    )
    if not case.marks
]
"""Attacks that are graded one by one: a sample, and what a change concerns."""


@pytest.mark.parametrize("attack", ALONE)
def test_an_excuse_earns_no_points_where_the_policy_allows_none(attack: Attack, world: World) -> None:
    with world.class_room() as room, guarded(240):
        lay_out(replace(attack, name="anna"), room / "submissions")
        summary = grade(GradeRequest(room / "submissions" / "anna", policy(about(attack)), room / "out", single=True))
        while left_over(world):
            os.sched_yield()
    (found,) = summary.grades
    assert found.outcome.value in {"judged", "not loaded"}, found.message
    assert found.points == 0.0, found.notes


def inputs(group: str) -> Inputs:
    """Return what the grades of a group depend on: grading starts processes of its own."""
    folders = [attack.folder for attack in attacks("excuses") if about(attack) == group]
    return Inputs(files=(*product(), FOLDER / "base", *folders))


@pytest.mark.full(guard="test_an_excuse_earns_no_points_where_the_policy_allows_none", near=NEAR)
@pytest.mark.stored(inputs=inputs)
@pytest.mark.parametrize("group", GROUPS)
def test_a_class_of_excuses_earns_no_points(group: str, world: World) -> None:
    """Would break if one of these attacks earned points; all that are about a group are graded as one class."""
    tried = [attack for attack in attacks("excuses") if about(attack) == group]
    with world.class_room() as room, guarded(1800):
        shutil.rmtree(room / "submissions" / "honest")
        for attack in tried:
            lay_out(replace(attack, name=attack.folder.name), room / "submissions")
        summary = grade(GradeRequest(room / "submissions", policy(group), room / "out"))
        while left_over(world):
            os.sched_yield()
    found = {one.submission.name: one for one in summary.grades}
    assert found.keys() == {attack.folder.name for attack in tried}
    ends = {name: one.message for name, one in found.items() if one.outcome.value not in {"judged", "not loaded"}}
    assert ends == {}
    assert {name: one.notes for name, one in found.items() if one.points} == {}


@pytest.mark.parametrize(
    ("base", "groups"), [("right", ("attention", "heads")), ("model", ("text",))], ids=["right", "model"]
)
def test_the_right_base_of_these_attacks_gets_its_points(base: str, groups: tuple[str, ...], world: World) -> None:
    # otherwise no points would mean nothing
    wanted = policy(*groups)
    with world.class_room() as room, guarded(240):
        folder = room / "submissions" / "right"
        folder.mkdir()
        (folder / "__init__.py").write_bytes((FOLDER / "base" / f"{base}_torch.py").read_bytes())
        (found,) = grade(GradeRequest(folder, wanted, room / "out", single=True)).grades
    assert found.points == wanted.max_points, [group.failed for group in found.groups]
