"""An attack and an excuse that are judged in each run of the tests, whatever changed."""

from __future__ import annotations

import pytest

from .attack import attacks
from .judging import outcome
from .making import lay_out
from .test_attacks import GUARD_SECONDS, check
from .world import World, guarded

SAMPLE = ("forging/patched-judge", "excuses/tool-with-a-constant")
"""Of those that NumPy is enough for; test_attacks.py says more of each, for all of them."""


@pytest.mark.concerned
@pytest.mark.parametrize("name", SAMPLE)
def test_a_forged_verdict_and_a_declared_one_are_worth_nothing(name: str, world: World) -> None:
    [attack] = [attack for attack in attacks() if attack.id == name]
    with world.class_room() as room, guarded(GUARD_SECONDS):
        ending = outcome(attack, lay_out(attack, room / "submissions"), "process", world)
    check(ending, attack.expected["process"])
