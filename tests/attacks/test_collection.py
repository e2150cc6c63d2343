"""The attacks themselves: enough of them, of every kind known to graders, each fully described."""

from __future__ import annotations

import ast
from collections import Counter

import pytest

from conformkit.spec.clauses import select

from .attack import CLASSES, FOLDER, LEVELS, Attack, attacks
from .world import World

ENDINGS = {"judged", "not loaded", "refused"}
GRADES = {"zero", "full", "refused", "unreadable"}
RUNS = {"here", "command", "beside"}
SEEN: dict[str, tuple[str, ...]] = {
    "exit with success": ("forging/exit-at-import", "forging/exit-in-a-call", "forging/sys-exit-in-a-call"),
    "skip": ("forging/refuses-to-be-judged", "forging/forged-refusals", "forging/no-gradients-to-judge"),
    "patch asserts, reporters, hooks": ("forging/patched-asserts", "forging/patched-judge", "forging/excepthook"),
    "settings of the test runner": ("configuration/pytest-settings", "configuration/python-settings"),
    "hostile return object": ("forging/class-that-pretends", "denial/hostile-methods", "denial/tensor-subclass"),
    "read the expected value": ("forging/finds-arrays-in-memory", "spying/goldens", "spying/memory-of-the-harness"),
    "change the inputs": ("forging/hidden-side-effects",),
    "forge the result channel": ("forging/frames-to-every-descriptor", "forging/child-that-answers", "forging/atexit"),
    "edit tests, workflow, configuration": ("configuration/everything-out-of-scope", "tampering/own-configuration"),
    "use up time, processes, memory, output": ("denial/swallowed-timeouts", "denial/fork-bomb", "denial/output-flood"),
    "serialization": ("denial/pickled-trap", "forging/malformed-tensors"),
    "hard-coded answers": ("forging/knows-the-goldens",),
    "detect being graded": ("forging/right-when-watched",),
    "remember inputs, answer by count": ("forging/replays-its-answers", "forging/answers-by-count"),
    "call the library": ("forging/hands-back-the-library", "forging/hands-back-the-reference"),
    "leak by failure text": ("configuration/linked", "archives/link-to-a-secret"),
}
"""Known attacks on graders, and the ones here that do the same."""


def test_there_are_enough_of_every_class() -> None:
    counted = Counter(attack.kind for attack in attacks())
    assert set(counted) == set(CLASSES)
    assert counted.total() >= 60
    assert min(counted.values()) >= 5


@pytest.mark.parametrize("seen", SEEN)
def test_what_graders_were_broken_by_is_tried_here(seen: str) -> None:
    assert {attack.id for attack in attacks()}.issuperset(SEEN[seen])


def test_each_attack_is_described_in_full() -> None:
    for attack in attacks():
        described_in_full(attack)


def described_in_full(attack: Attack) -> None:
    for text in (attack.title, attack.tries, attack.source):
        assert text, attack.id
        assert text == text.strip(), attack.id
    assert len(attack.title) < 130, attack.id
    assert attack.levels, attack.id
    assert set(attack.levels) <= set(LEVELS), attack.id
    assert attack.run in RUNS, attack.id
    assert attack.base in {"", "right", "wrong", "right_torch", "wrong_torch", "model_torch"}, attack.id
    assert select(attack.only), attack.id
    for expected in attack.expected.values():
        assert set(expected.ends) <= ENDINGS, attack.id
        assert expected.grade in GRADES, attack.id


def test_each_attack_can_be_read_and_is_bounded() -> None:
    # without this, a typo could make an attack fail, which looks like a working defense
    for path in (path for attack in attacks() for path in attack.folder.rglob("*.py")):
        tree = ast.parse(path.read_bytes(), str(path))
        signals = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and _signals_everybody(node)]
        assert not signals, path


def _signals_everybody(call: ast.Call) -> bool:
    """Whether a call is `os.kill(-1, …)`, which would end the session of the user who runs the tests."""
    named = isinstance(call.func, ast.Attribute) and call.func.attr in {"kill", "killpg"}
    return named and bool(call.args) and ast.unparse(call.args[0]) == "-1"


def test_titles_are_distinguished() -> None:
    twice = [title for title, count in Counter(attack.title for attack in attacks()).items() if count > 1]
    assert not twice


@pytest.mark.parametrize(
    "base",
    [
        "right",
        pytest.param("right_torch", marks=pytest.mark.full),
        "wrong",
        pytest.param("wrong_torch", marks=pytest.mark.full),
    ],
)
def test_the_right_bases_conform_and_the_wrong_ones_do_not(base: str, world: World) -> None:
    # the effect of an attack shows only if the verdict without it is known
    only = ("SDPA", "MHA") if base.endswith("torch") else ("SDPA",)
    report = world.judge(FOLDER / "base" / f"{base}.py", torch=base.endswith("torch"), only=only, diagnose=False)
    assert report.conforms == base.startswith("right")
