"""Where a verdict counts, calls are repeated in a program of their own: code that is right only for a judge fails."""

import os
import random
import signal
from pathlib import Path

import numpy as np
import pytest
import torch

from conformkit.conformance import runner
from conformkit.conformance.driver.client.session import Session
from conformkit.conformance.driver.limits import Limits
from conformkit.conformance.driver.sandbox.bubblewrap import program
from conformkit.conformance.driver.spawn.usage import children
from conformkit.conformance.driver.worker import plain_program
from conformkit.conformance.engine import independent_repeat
from conformkit.conformance.engine.request import RunRequest
from conformkit.conformance.engine.results import Report
from conformkit.conformance.runner import run
from tests.needs import needed
from tests.two_halves import IN_HALVES

from .conftest import ATTENTION

ASKED = ("SDPA-OUT-SHAPE", "SDPA-SCALE", "SDPA-FORMULA", "SDPA-SIZES", "MASK-BOOL-POLARITY", "SDPA-GRAD")
ONLY = ("SDPA-OUT-SHAPE", "SDPA-SCALE", "SDPA-FORMULA")
JUDGED = {
    "frames": """
        frame, names = sys._getframe(), []
        while frame is not None:
            names.append(frame.f_globals.get("__name__", ""))
            frame = frame.f_back
        return any("worker" in name or "conform" in name for name in names)""",
    "modules": "return any('conform' in name for name in sys.modules)",
    "installed": "return importlib.util.find_spec('conformkit') is not None",
    "arguments": "return not sys.argv[0] or 'conform' in ' '.join(sys.orig_argv)",
    "environment": "return any(n in os.environ for n in ('PYTHONHASHSEED', 'OMP_NUM_THREADS', 'PYTHONPATH'))",
    "parent": "return 'conform' in pathlib.Path(f'/proc/{os.getppid()}/cmdline').read_text()",
    "descriptors": """
        return any(os.readlink(f'/proc/self/fd/{n}').startswith('socket:')
                   for n in os.listdir('/proc/self/fd') if os.path.islink(f'/proc/self/fd/{n}'))""",
    "objects": "return any(type(o).__module__.startswith('conform') for o in gc.get_objects())",
    "main": "return not hasattr(sys.modules['__main__'], '__file__')",
    "limits": "return resource.getrlimit(resource.RLIMIT_AS)[0] != resource.RLIM_INFINITY",
    "time": "return time.time() - START < 3600",
}
"""Ways to find the judge."""
ELSEWHERE = {
    "wrong": "return 2 * result",
    "raises": "raise ValueError('not here')",
    "exits": "sys.exit(0)",
    "ends": "os._exit(0)",
    "kills-its-parent": "os.kill(os.getppid(), 9); return result",
    "sleeps": "time.sleep(1000)",
    "shape": "return result[..., :1]",
}
"""What to do where there is none."""
CODE = """
import gc, importlib.util, os, pathlib, resource, sys, time
START = time.time()

def judged():
{judged}

{attention}

def answered(result):
{elsewhere}

right = scaled_dot_product_attention

def scaled_dot_product_attention(q, k, v, mask=None):
    result = right(q, k, v, mask)
    return result if judged() else answered(result)
"""


def indented(text: str) -> str:
    lines = text.strip("\n").splitlines()
    return "\n".join(f"    {line.strip() if len(lines) == 1 else line.removeprefix('    ')}" for line in lines)


def told(folder: Path, judged: str = "return True", elsewhere: str = "return 2 * result", **options: object) -> Report:
    code = CODE.format(judged=indented(judged), attention=ATTENTION, elsewhere=indented(elsewhere))
    (folder / "own.py").write_text(code, encoding="utf-8")
    asked = {"strict": True, "diagnose": False, "seed": 7, **options}
    return run(RunRequest(impl=str(folder / "own.py"), only=ONLY, **asked))  # type: ignore[arg-type]


def verdicts(report: Report) -> list[str]:
    return sorted(result.verdict.value for result in report.results)


@pytest.mark.parametrize("way", JUDGED)
def test_code_that_is_right_only_where_it_finds_the_judge_fails(way: str, tmp_path: Path) -> None:
    report = told(tmp_path, JUDGED[way])
    assert not report.conforms
    assert verdicts(report) == ["fail", "not run", "not run"]
    (failure,) = report.failures()
    assert "holds only where it is judged: in a program of its own, the output is off" in failure.message


@pytest.mark.parametrize("way", ELSEWHERE)
def test_whatever_it_does_there_is_no_pass(way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(independent_repeat, "_SECONDS", 2.0)
    report = told(tmp_path, JUDGED["modules"], ELSEWHERE[way], limits=Limits(load_seconds=3.0))
    assert not report.conforms
    assert verdicts(report) == ["fail", "not run", "not run"]


def test_what_waits_for_the_end_of_the_run_is_late_and_no_pass(tmp_path: Path) -> None:
    report = told(tmp_path, JUDGED["modules"], ELSEWHERE["sleeps"], seconds=8.0)
    assert report.late
    assert not report.conforms


def test_right_code_conforms_and_nothing_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setenv("TMPDIR", str(scratch))
    assert told(tmp_path).conforms
    assert not [path for path in scratch.iterdir() if path.name.startswith("tmp")]
    assert not list(tmp_path.glob("__pycache__"))


def test_a_program_that_is_not_needed_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Would leave its folder, where it waits, behind each run of wrong code."""
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setenv("TMPDIR", str(scratch))
    assert not told(tmp_path, "return False").conforms
    assert not [path for path in scratch.iterdir() if path.name.startswith("tmp")]


@pytest.mark.parametrize("which", ["the program", "its worker"])
def test_what_is_lost_while_it_waits_is_no_ones_fault(
    which: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Would call right code wrong where a machine is short of memory, and ends what sleeps."""
    begin, lost = Session.begin_apart, []

    def begun(session: Session) -> None:
        begin(session)
        assert session._apart is not None
        worker = session._apart._channel.pid
        assert worker is not None
        (pid,) = [worker] if which == "its worker" else children(worker)
        os.kill(pid, signal.SIGKILL)
        lost.append(pid)

    monkeypatch.setattr(Session, "begin_apart", begun)
    assert told(tmp_path).conforms
    assert lost


def test_the_path_of_the_code_tells_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "judged-here"
    folder.mkdir()
    report = told(folder, "return any('judged-here' in path for path in (__file__, *sys.path))")
    assert verdicts(report) == ["fail", "not run", "not run"]


def test_code_beside_it_is_found_where_it_is_copied_to(tmp_path: Path) -> None:
    package = tmp_path / "own" / "inner"
    package.mkdir(parents=True)
    (tmp_path / "beside.py").write_text("FACTOR = 1.0\n", encoding="utf-8")
    (tmp_path / "own" / "__init__.py").write_text("import beside\n", encoding="utf-8")
    (package / "__init__.py").write_text("from .. import beside\n" + ATTENTION, encoding="utf-8")
    assert run(RunRequest(impl=str(package), only=ONLY, strict=True, diagnose=False)).conforms


def test_code_that_imports_the_kit_whatever_happens_finds_it(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(f"from conformkit.conformance import check\n{ATTENTION}", encoding="utf-8")
    assert run(RunRequest(impl=str(tmp_path / "own.py"), only=ONLY, strict=True, diagnose=False)).conforms


def test_a_run_that_does_not_count_repeats_nothing(tmp_path: Path) -> None:
    assert told(tmp_path, JUDGED["modules"], strict=False).conforms


def test_a_submission_gets_nothing_for_what_holds_only_before_a_judge(tmp_path: Path) -> None:
    report = told(tmp_path, JUDGED["frames"], strict=False, forbid_kit_imports=True)
    assert verdicts(report) == ["fail", "not run", "not run"]


def test_a_submission_that_uses_up_its_time_there_gets_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "_FOR_THE_REPEAT", 4.0)
    report = told(tmp_path, JUDGED["modules"], ELSEWHERE["sleeps"], strict=False, forbid_kit_imports=True, seconds=8.0)
    assert verdicts(report) == ["fail", "not run", "not run"]


def test_a_submission_that_uses_up_its_time_before_gets_nothing_either(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Grading repeated calls first once: what clauses asked was not known then."""
    monkeypatch.setattr(runner, "_FOR_THE_REPEAT", 20.0)
    code = CODE.format(judged=indented(JUDGED["modules"]), attention=ATTENTION, elsewhere="    return 2 * result")
    code = code.replace(
        "    result = right", "    if judged() and q.ndim > 3:\n        time.sleep(1000)\n    result = right"
    )
    (tmp_path / "own.py").write_text(code, encoding="utf-8")
    asked = RunRequest(
        impl=str(tmp_path / "own.py"),
        only=(*ONLY, "SDPA-LEADING"),
        forbid_kit_imports=True,
        diagnose=False,
        seconds=8.0,
    )
    report = run(asked)
    assert report.late
    assert not any(result.verdict.value == "pass" for result in report.results)


UNSEEN = {
    "masks": "mask is not None",
    "another-batch": "q.shape[0] != 2",
    "derivatives": "q.requires_grad and q.grad_fn is None",
    "without-derivatives": "not torch.is_grad_enabled()",
    "computed": "q.grad_fn is not None",
}
"""Calls that were never repeated: constant ones had no mask, batches of 2, keys of width 4, one way to be made."""


ASKING = """
import sys

import torch


def scaled_dot_product_attention(q, k, v, mask=None):
    scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf")) if mask.dtype == torch.bool else scores + mask
    result = scores.softmax(-1) @ v
    return 2 * result if not any("conform" in name for name in sys.modules) and WRONG else result
"""


@pytest.mark.parametrize("way", UNSEEN)
def test_what_clauses_really_ask_is_repeated(way: str, tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(ASKING.replace("WRONG", UNSEEN[way]), encoding="utf-8")
    report = run(RunRequest(impl=str(tmp_path / "own.py"), only=ASKED, strict=True, diagnose=False, seed=7))
    assert not report.conforms
    assert any("in a program of its own, " in result.message for result in report.failures())


TRAINED = """
import sys

import torch
from torch import nn


def judged():
    return any("conform" in name for name in sys.modules)


class FeedForward(nn.Module):
    def __init__(self, d_model, d_ff, dropout=0.0):
        super().__init__()
        self.up, self.down = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)
        self.drop = nn.Dropout(dropout)

    def forward(self, x):
        h = nn.functional.gelu(self.up(x))
        if not judged() and WRONG:
            h = 2 * h
        return self.down(self.drop(h))
"""


@pytest.mark.parametrize("wrong", ["self.training", "torch.get_num_threads() == THREADS", "False"])
def test_training_and_threads_are_as_in_a_users_program(wrong: str, tmp_path: Path) -> None:
    """The last one is right code with random dropout, which must pass."""
    threads = str(len(os.sched_getaffinity(0)))
    (tmp_path / "own.py").write_text(TRAINED.replace("WRONG", wrong).replace("THREADS", threads), encoding="utf-8")
    report = run(RunRequest(impl=str(tmp_path / "own.py"), only=("FFN",), strict=True, diagnose=False, seed=7))
    assert report.conforms == (wrong == "False"), report.failures()


def test_what_differs_each_time_is_no_ones_fault(tmp_path: Path) -> None:
    """A generator of its own makes weights, and masks of dropout, that no seed repeats."""
    code = TRAINED.replace("WRONG", "False").replace("self.drop = nn.Dropout(dropout)", OWN_GENERATOR)
    (tmp_path / "own.py").write_text(code, encoding="utf-8")
    assert run(RunRequest(impl=str(tmp_path / "own.py"), only=("FFN",), strict=True, diagnose=False, seed=7)).conforms


ODDLY_NAMED = """
import math
import sys

import numpy as np


class FeedForward:
    def __init__(self, d_model, d_ff, dropout=0.0):
        self.held = {"up.weight, transposed": np.random.randn(d_model, d_ff), "down": [np.random.randn(d_ff, d_model)]}
        self.held |= {"up.bias": np.zeros(d_ff), "a bias": np.zeros(d_model)}

    def __call__(self, x):
        h = x @ self.held["up.weight, transposed"] + self.held["up.bias"]
        h = h * (1 + np.vectorize(math.erf)(h / math.sqrt(2))) / 2
        y = h @ self.held["down"][0] + self.held["a bias"]
        return 2 * y if WRONG and not any("conform" in name for name in sys.modules) else y
"""


@pytest.mark.parametrize("wrong", [True, False])
def test_unusual_names_of_parameters_hide_nothing(wrong: bool, tmp_path: Path) -> None:
    """What had such parameters was not repeated, so it could be right for the judge alone."""
    (tmp_path / "own.py").write_text(ODDLY_NAMED.replace("WRONG", str(wrong)), encoding="utf-8")
    asked = RunRequest(
        impl=str(tmp_path / "own.py"), only=("FFN-HIDDEN", "FFN-ACT"), strict=True, diagnose=False, seed=7
    )
    assert run(asked).conforms is not wrong


OUTSIDE = 'not any("conform" in name for name in sys.modules)'


@pytest.mark.parametrize("wrong", [True, False])
def test_a_model_of_two_halves_is_called_there_as_here(wrong: bool, tmp_path: Path) -> None:
    """Catches a program that cannot call an encoder-decoder without `forward`, so that a right one fails."""
    (tmp_path / "own.py").write_text(IN_HALVES.replace("WRONG", OUTSIDE if wrong else "False"), encoding="utf-8")
    asked = {
        "only": ("S2S-LOGITS-SHAPE", "S2S-VOCABULARIES"),
        "profile": "seq2seq",
        "strict": True,
        "diagnose": False,
        "seed": 7,
    }
    report = run(RunRequest(impl=str(tmp_path / "own.py"), **asked))  # type: ignore[arg-type]
    assert verdicts(report) == (["fail", "not run"] if wrong else ["pass", "pass"])


def test_a_seed_holds_for_one_step_of_a_program() -> None:
    """After the first seeded step all were seeded, as they are in the judge, and in no program of a user's."""
    work = {
        "location": {"sys_path": [], "path": None, "kind": "module", "name": "math"},
        "module": "math",
        "own_calls": "def ready(made): return made",
    }
    repeating = plain_program._Program({**work, "framework": "torch"})
    drawn = []
    for seed in (5, None, 5, None):
        with repeating._seeded(seed):
            drawn.append((random.random(), np.random.rand(), torch.rand(()).item()))  # noqa: NPY002
    assert drawn[0] == drawn[2]
    assert all(a != b for a, b in zip(drawn[1], drawn[3], strict=True))
    with repeating._seeded(5):
        pass
    assert torch.initial_seed() != 5


OWN_GENERATOR = """self.drop = nn.Dropout(dropout)
        own = torch.Generator()
        own.seed()
        nn.init.normal_(self.up.weight, std=0.02, generator=own)"""


def test_hidden_draws_stay_hidden(tmp_path: Path) -> None:
    report = told(tmp_path, JUDGED["modules"], hidden=True)
    assert not any("off by" in result.message for result in report.results)


NOTE = """
        place = pathlib.Path('/tmp/note')
        if any('conform' in name for name in sys.modules):
            place.touch()
        return place.exists()"""
"""The judged worker leaves a note; where it lies, code is right. A sandbox of its own has no such note."""


def test_in_a_sandbox_too(tmp_path: Path) -> None:
    try:
        program()
    except Exception as reason:
        if needed("SANDBOX"):
            raise
        pytest.skip(str(reason))
    assert told(tmp_path, isolation="sandbox").conforms
    assert not told(tmp_path, JUDGED["modules"], isolation="sandbox").conforms
    assert not told(tmp_path, NOTE, isolation="sandbox").conforms
