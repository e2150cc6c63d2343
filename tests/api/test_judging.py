"""Programs judge code: texts, files, packages; one, or many side by side."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from conformkit.conformance import Failure, JudgePool, Judgment, judge
from conformkit.conformance.report.score import RunOutcome

ROOT = Path(__file__).resolve().parents[2]
RIGHT = """\
import numpy as np


def scaled_dot_product_attention(q, k, v, mask=None):
    scores = q @ np.swapaxes(k, -1, -2) / k.shape[-1] ** 0.5
    if mask is not None:
        scores = np.where(mask, scores, -np.inf) if mask.dtype == bool else scores + mask
    shifted = scores - scores.max(-1, keepdims=True)
    weights = np.exp(shifted)
    return weights / weights.sum(-1, keepdims=True) @ v
"""
WRONG = RIGHT.replace(" / k.shape[-1] ** 0.5", "")
ONLY = "SDPA"


@pytest.fixture(scope="module")
def judges() -> Iterator[JudgePool]:
    with JudgePool(workers=1, only=ONLY, isolation="process", seed=5) as found:
        yield found


def test_a_text_is_judged_and_named_with_its_own_line(judges: JudgePool) -> None:
    right, wrong = judges.map([RIGHT, WRONG])
    assert (right.outcome, right.score, right.failures) == (RunOutcome.CONFORMS, 1.0, ())
    assert wrong.outcome is RunOutcome.FAILS
    assert 0 < wrong.score < 1
    first = wrong.failures[0]
    assert isinstance(first, Failure)
    assert (first.clause, first.file, first.line) == ("SDPA-SCALE", "candidate.py", 4)
    assert first.names[0]["title"] == "the scores are not divided by √d_k"
    assert first.finding
    assert "math.sqrt" in first.fix
    assert "conform-judge" not in f"{right.sentence} {wrong.sentence}"  # the folder that it was put in


def test_the_same_text_is_judged_once_and_said_to_be_known(judges: JudgePool) -> None:
    first, again = judges.judge(RIGHT), judges.judge(RIGHT)
    assert again.cached
    assert (again.score, again.sentence) == (first.score, first.sentence)


@pytest.mark.parametrize(
    ("code", "why"),
    [
        ("x = (\n", r"candidate\.py, line 1 is no Python: '\(' was never closed"),
        ("\n\n", "it holds no Python code"),
        (b"\xff\x00", r"candidate\.py is no text in UTF-8: invalid start byte at byte 0"),
        ({}, "it has no files"),
        ({"../a.py": RIGHT}, r"'\.\./a\.py' is no relative name of a file inside the package"),
        ({f"a{n}.py": "" for n in range(1001)}, "it has 1001 files; 1000 are allowed"),
        (f"# {'x' * 5_000_000}\n", "it is longer than 5,000,000 characters"),
        (
            f"x = {'(' * 5000}{')' * 5000}\n",
            r"candidate\.py.* (is nested too deeply to be read|is no Python: too many)",
        ),
    ],
    ids=["syntax", "empty", "binary", "no files", "outside", "many files", "long", "deep"],
)
def test_what_is_no_code_gets_a_verdict_that_says_why(judges: JudgePool, code: object, why: str) -> None:
    found = judges.judge(code)  # type: ignore[arg-type]
    assert (found.outcome, found.score, found.conforms) == (RunOutcome.NOT_JUDGED, 0.0, False)
    assert re.match(why, found.sentence)


def test_verdicts_come_in_the_order_of_the_codes_and_a_killed_worker_costs_none(judges: JudgePool) -> None:
    codes = [RIGHT.replace("weights", f"w{number}") for number in range(3)]
    found = list[Judgment]()
    for each in judges.map(codes):
        found.append(each)
        process = judges._harnesses[0]._process
        if len(found) == 1 and process is not None:
            os.killpg(process.pid, signal.SIGKILL)
    assert [each.outcome for each in found] == [RunOutcome.CONFORMS] * 3


def test_a_relative_path_is_the_callers(judges: JudgePool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mine.py").write_text(WRONG, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert judges.judge("mine.py", only="SDPA-SCALE").outcome is RunOutcome.FAILS


def test_an_event_loop_waits_for_a_verdict(judges: JudgePool) -> None:
    assert asyncio.run(judges.judged(WRONG)).outcome is RunOutcome.FAILS


def test_a_package_is_judged_by_its_files_and_what_blocks_is_a_failure() -> None:
    files = {"__init__.py": "from .core import scaled_dot_product_attention\n", "core.py": WRONG}
    found = judge(files, only="SDPA-FORMULA", isolation="none", discover=False)
    assert found.outcome is RunOutcome.FAILS
    assert [(each.clause, each.what) for each in found.failures] == [("SDPA-FORMULA", "SDPA-SCALE does not pass")]


def test_wrong_options_are_refused_before_anything_is_judged() -> None:
    with pytest.raises(ValueError, match="isolation is sandbox, process or none, not 'jail'"):
        judge(RIGHT, isolation="jail")
    with pytest.raises(TypeError, match="nearest: profile"):
        judge(RIGHT, profil="core")  # type: ignore[call-arg]
    with pytest.raises(ValueError, match="no clause is called SDPA-SCAEL; nearest: SDPA-SCALE"):
        judge(RIGHT, only="SDPA-SCAEL", isolation="none")
    with pytest.raises(ValueError, match="profile 'cor' is not one of core, "):
        judge(RIGHT, profile="cor", isolation="none")
    with pytest.raises(ValueError, match="workers must be at least 1, not 0"):
        JudgePool(workers=0)
    with pytest.raises(RuntimeError, match="open inside `with JudgePool"):
        JudgePool(isolation="process").submit(RIGHT)


def test_the_page_shows_what_happens() -> None:
    page = (ROOT / "docs" / "judge.md").read_text(encoding="utf-8")
    names: dict[str, object] = {"source": WRONG}
    for block in re.findall(r"```python\n(.*?)```", page, re.DOTALL)[:2]:
        exec(compile(block, "judge.md", "exec"), names)
    assert names["found"]


def test_the_command_answers_each_line_and_ends_with_its_input() -> None:
    lines = [json.dumps({"id": 1, "code": WRONG, "only": "SDPA-SCALE", "seed": 5}), "{", '{"path": "nowhere_at_all"}']
    command = [sys.executable, "-P", "-m", "conformkit.cli", "serve", "--isolation", "process"]
    done = subprocess.run(command, input="\n".join(lines), capture_output=True, text=True, check=True)
    told = [json.loads(line) for line in done.stdout.splitlines()]
    assert sorted(each.get("outcome", each.get("error", ""))[:16] for each in told) == [
        "fails", "line 2: it is no", "not judged",
    ]  # fmt: skip
    (wrong,) = (each for each in told if each["id"] == 1)
    assert wrong["failures"][0]["clause"] == "SDPA-SCALE"
    assert done.stderr == ""
