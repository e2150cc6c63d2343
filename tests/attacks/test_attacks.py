"""Each attack ends as its attack.toml says; an honest package next to it keeps its verdict; nothing is left behind."""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.outcomes import Inputs, product
from tests.tiers import quick_ones

from .attack import FOLDER, LEVELS, Attack, Expected, attacks
from .judging import Ending, outcome
from .making import lay_out
from .sandboxes import sandbox
from .world import World, guarded, left_over

HONEST = ("SDPA-OUT-SHAPE", "SDPA-SCALE")
GUARD_SECONDS = 120


QUICK = (
    "forging/exit-in-a-call", "forging/patched-judge", "forging/malformed-tensors", "forging/replays-its-answers",
    "spying/goldens", "spying/memory-of-the-harness", "denial/hostile-methods", "denial/output-flood",
    "tampering/own-configuration", "configuration/linked", "configuration/linked-folder",
    "text/escape-sequences", "text/markdown", "text/xml",
)  # fmt: skip
"""Some of each class."""


READ = ("configuration", "excuses", "text")
"""Attacks on what reads: the same code at every level. In a sandbox, one in four of each is tried."""


def near(attack: Attack) -> tuple[str, ...]:
    """Return what an attack depends on more than others do: if that changes, it doesn't wait for its turn in CI."""
    against = {"excuses": ["binding"], "configuration": ["binding", "driver"], "text": ["report", "findings"]}
    own = attack.folder.relative_to(FOLDER.parents[1]).as_posix()
    return (own, "tests/attacks/base", *(f"conformance/{name}" for name in against.get(attack.kind, ["driver"])))


def cases() -> Iterator[Any]:
    tried = [attack for attack in attacks() if attack.kind != "archives"]
    both = [[attack for attack in attacks(kind) if attack.levels == LEVELS] for kind in READ]
    spared = {attack.id for kind in both for number, attack in enumerate(kind) if number % 4} - {*QUICK}
    quick = quick_ones({attack.id: [attack.folder] for attack in tried}, always=QUICK)
    for level in LEVELS:
        for attack in tried:
            if level in attack.levels and not (level == "sandbox" and attack.id in spared):
                marks = [sandbox] if level == "sandbox" else []
                marks += [] if attack.id in quick else [pytest.mark.full(near=near(attack))]
                yield pytest.param(attack, level, id=f"{attack.id}-{level}", marks=marks)


def inputs(attack: Attack, level: str) -> Inputs:
    """Return what the end of an attack depends on, besides level and seed, which are in its name and its folder."""
    return Inputs(files=(*product(), FOLDER / "base", attack.folder), texts=(level, platform.release()))


@pytest.mark.stored(inputs=inputs)
@pytest.mark.parametrize(("attack", "level"), list(cases()))
def test_an_attack_ends_as_named(attack: Attack, level: str, world: World) -> None:
    expected = attack.expected[level]
    with world.class_room() as room, guarded(GUARD_SECONDS):
        target = lay_out(attack, room / "submissions")
        before = contents(room, but=target)
        ending = outcome(attack, target, level, world)
        honest = world.judge(room / "submissions" / "honest", only=HONEST)
        while left := left_over(world):  # killed processes need a moment to end
            os.sched_yield()
        traces = [path for path in expected.traces if taken_away(path, room, world)]
        after = contents(room, but=target)
    check(ending, expected)
    assert honest.conforms, "the honest package beside it lost its verdict"
    assert not left
    assert not traces
    assert after == before


def check(ending: Ending, expected: Expected) -> None:
    """Compare the outcome with the required one."""
    assert ending.ends in expected.ends, ending.summary
    assert {name: ending.verdicts.get(name) for name in expected.verdicts} == dict(expected.verdicts), ending.summary
    assert ending.conforms == expected.conforms, ending.summary
    assert expected.exit in {None, ending.exit}, ending.summary
    flowing = " ".join(ending.told.split())  # where a line ends depends on how long the folder's name is
    for text in expected.says:
        assert text in ending.told or text in flowing
    for text in expected.never_says:
        assert text not in ending.told


def contents(room: Path, but: Path) -> dict[str, str]:
    """Return every file next to a submission."""
    found: dict[str, str] = {}
    for parent, folders, files in os.walk(room):
        folders[:] = [folder for folder in folders if Path(parent, folder) != but]
        found |= {str(Path(parent, name)): Path(parent, name).read_text(encoding="utf-8") for name in files}
    return found


def taken_away(trace: str, room: Path, world: World) -> bool:
    """Remove a trace, if it is there, and return whether it was."""
    path = Path(trace.format(parent=room / "submissions", home=world.home))
    was_there = path.exists()
    subprocess.run(["rm", "-rf", str(path)], check=True)
    return was_there
