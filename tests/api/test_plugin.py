"""The suite inside pytest: one item a clause, selection and parallel runs that change no verdict."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path
from types import SimpleNamespace

import pytest

from conformkit.conformance import parametrize_with_clauses
from conformkit.conformance.api import plugin
from tests.attacks.sandboxes import sandbox
from tests.engine.conftest import ATTENTION

UNSCALED = ATTENTION.replace(" / np.sqrt(q.shape[-1])", "")


def pytest_run(folder: Path, *options: str, **variables: str) -> tuple[int, str]:
    """Run pytest as a user does, in a foreign folder."""
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *options]
    if "--lf" in options:
        command.remove("-p")
        command.remove("no:cacheprovider")
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    environment = inherited | {"COLUMNS": "300"} | variables
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def counts(text: str) -> dict[str, int]:
    line = text.strip().splitlines()[-1]
    words = "passed|failed|skipped|xfailed|deselected|error"
    return {word: int(number) for number, word in re.findall(rf"(\d+) ({words})", line)}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "right.py").write_text(ATTENTION, encoding="utf-8")
    (tmp_path / "wrong.py").write_text(UNSCALED, encoding="utf-8")
    return tmp_path


SUITE = ("--pyargs", "conformkit.conformance", "--conform-only", "SDPA")


def test_each_clause_is_an_item(folder: Path) -> None:
    code, text = pytest_run(folder, *SUITE, "--conform-impl", "right.py", "-v")
    assert code == 0, text
    assert "::SDPA-SCALE PASSED" in text
    assert counts(text)["passed"] > 20


def test_a_failing_item_shows_the_result_the_reason_and_the_next_step(folder: Path) -> None:
    code, text = pytest_run(folder, *SUITE, "--conform-impl", "wrong.py", "-k", "SDPA-SCALE")
    assert code == 1
    assert "FAILED" in text
    for words in ("SDPA-SCALE · ", "why: ", "fix: ", "again: conform run --impl wrong.py --only SDPA-SCALE"):
        assert words in text
    assert "looks like: the scores are not divided by √d_k (" in text
    path, _, numbers = next(line for line in text.splitlines() if line.startswith("FAILED")).partition(" - ")
    assert re.match(r"the divisor of the scores is 1, expected ", numbers), numbers  # not the id again
    again, text = pytest_run(folder, path.removeprefix("FAILED "), "--conform-impl", "right.py")
    assert (again, counts(text)) == (0, {"passed": 1}), text  # the id can be pasted


def test_a_conftest_with_options_of_its_own_is_left_alone(folder: Path) -> None:
    """Would break if the plugin took a name such as --impl: every pytest with the kit installed would stop."""
    options = "\n".join(
        f"    parser.addoption('--{name}', default='mine')" for name in ("impl", "only", "profile", "seed")
    )
    (folder / "conftest.py").write_text(f"def pytest_addoption(parser):\n{options}\n", encoding="utf-8")
    (folder / "test_mine.py").write_text(
        "def test_mine(pytestconfig):\n    assert pytestconfig.getoption('--impl') == 'mine'\n", encoding="utf-8"
    )
    code, text = pytest_run(folder, "test_mine.py")
    assert code == 0, text


def test_everything_that_the_plugin_adds_begins_with_its_name() -> None:
    added: list[str] = []

    class Parser:
        def getgroup(self, *_: str) -> Parser:
            return self

        def addoption(self, *names: str, **_: object) -> None:
            added.extend(names)

    plugin.pytest_addoption(Parser())
    assert added
    assert all(name.startswith("--conform-") for name in added)


def test_a_case_of_ones_own_test_shows_no_frame_of_the_kit(folder: Path) -> None:
    case = """
        from conformkit.conformance import parametrize_with_clauses
        @parametrize_with_clauses("wrong.py", only=("SDPA-SCALE",))
        def test_conformance(check_clause):
            check_clause()
    """
    (folder / "test_mine.py").write_text(textwrap.dedent(case), encoding="utf-8")
    code, text = pytest_run(folder, "test_mine.py")
    assert code == 1
    assert "times what it should be" in text
    assert "embed.py" not in text
    assert re.search(
        r"^FAILED test_mine.py::test_conformance\[SDPA-SCALE\] - ClauseBroken: the divisor of ", text, re.MULTILINE
    )


def test_a_case_of_ones_own_test_says_why_code_does_not_load_without_the_kits_traceback(folder: Path) -> None:
    (folder / "gone.py").write_text("import nothing_like_it\n", encoding="utf-8")
    (folder / "test_own.py").write_text(
        textwrap.dedent("""
        from conformkit.conformance import parametrize_with_clauses
        @parametrize_with_clauses("gone.py", only=("SDPA-SCALE", "SDPA-GRAD"))
        def test_own(check_clause):
            check_clause()
        """),
        encoding="utf-8",
    )
    code, text = pytest_run(folder, "test_own.py")
    assert code == 1
    assert counts(text) == {"failed": 2}
    assert "gone.py:1 in <module>" in text
    assert "conformance/" not in text
    assert "def check_clause" not in text


@pytest.mark.parametrize(
    ("profile", "only", "words"),
    [
        ("cor", [], "'cor' is not one of core, "),
        ("lm,paths", [], "takes one profile, not lm,paths"),
        ("lm", ["SDPA-SCALE"], "SDPA-SCALE is not in profile lm, but in core"),
    ],
)
def test_a_profile_without_what_is_asked_for_is_wrong_usage(profile: str, only: list[str], words: str) -> None:
    """Would break if pytest ended with an internal error, or left out in silence what is of another profile."""
    options = {"--conform-profile": profile, "--conform-only": only, "--conform-impl": "x", "--conform-baseline": None}
    with pytest.raises(pytest.UsageError, match=words):
        plugin.pytest_configure(SimpleNamespace(args=[], getoption=options.__getitem__))  # type: ignore[arg-type]


@pytest.mark.full(guard="test_each_clause_is_an_item")
def test_a_stub_fails_and_what_is_not_exported_is_skipped(folder: Path) -> None:
    stub = "def scaled_dot_product_attention(q, k, v, mask=None):\n    raise NotImplementedError\n"
    (folder / "stub.py").write_text(stub, encoding="utf-8")
    code, text = pytest_run(folder, *SUITE[:2], "--conform-impl", "stub.py", "-k", "SDPA-SCALE or PE-EXPONENT", "-rs")
    assert code == 1
    assert "scaled_dot_product_attention" in text
    assert "is not implemented yet: stub.py:2 in" in text
    assert "PositionalEncoding is not exported" in text


def test_what_a_clause_needs_is_judged_even_when_deselected(folder: Path) -> None:
    _, text = pytest_run(folder, *SUITE, "--conform-impl", "wrong.py", "-k", "SDPA-FORMULA", "-rs")
    assert "blocked: not checked until SDPA-SCALE" in text
    assert "failed" not in counts(text)


@pytest.mark.full(guard="test_each_clause_is_an_item")
def test_parallel_runs_give_the_same_verdicts(folder: Path) -> None:
    _, alone = pytest_run(folder, *SUITE, "--conform-impl", "wrong.py")
    _, together = pytest_run(folder, *SUITE, "--conform-impl", "wrong.py", "-n", "2")
    assert counts(alone) == counts(together), together
    assert counts(alone)["failed"] >= 1


RELU = """
    import numpy as np
    class FeedForward:
        def __init__(self, d_model, d_ff, dropout=0.0):
            self.up, self.up_bias = np.random.randn(d_ff, d_model), np.random.randn(d_ff)
            self.down, self.down_bias = np.random.randn(d_model, d_ff), np.random.randn(d_model)
        def __call__(self, x):
            return np.maximum(x @ self.up.T + self.up_bias, 0) @ self.down.T + self.down_bias
"""


@pytest.mark.parametrize("options", [(), ("-p", "xdist", "-n", "2"), ("-k", "FFN-ORACLE or FFN-ACT")], ids=str)
def test_an_undeclared_choice_is_one_failing_item_and_the_rest_is_judged_under_it(
    folder: Path, options: tuple[str, ...]
) -> None:
    """Would break if ReLU, right but not declared, failed or skipped items that `conform run` passes."""
    (folder / "relu.py").write_text(textwrap.dedent(RELU), encoding="utf-8")
    only = ("--conform-only", "FFN")
    _, text = pytest_run(
        folder, "--pyargs", "conformkit.conformance", *only, "--conform-impl", "relu.py", "-v", *options
    )
    failed = re.findall(r"::(FFN-[A-Z0-9-]+) FAILED|FAILED \S*::(FFN-[A-Z0-9-]+)", text)
    assert {name for pair in failed for name in pair if name} == {"FFN-ACT"}, text
    assert "blocked" not in text
    assert '`activation = "relu"` under [variant]' in text


@pytest.mark.full(guard="test_each_clause_is_an_item")
def test_last_failed_selects_the_failed_clauses(folder: Path) -> None:
    _, first = pytest_run(folder, *SUITE, "--conform-impl", "wrong.py", "--lf")
    _, second = pytest_run(folder, *SUITE, "--conform-impl", "wrong.py", "--lf")
    assert counts(second)["failed"] == counts(first)["failed"]
    assert "passed" not in counts(second)


def test_an_implementation_that_does_not_load_ends_the_run_with_its_code(folder: Path) -> None:
    (folder / "broken.py").write_text("raise RuntimeError('no luck')", encoding="utf-8")
    code, text = pytest_run(folder, *SUITE, "--conform-impl", "broken.py")
    assert code == 3
    assert "importing it raised RuntimeError: no luck" in text


@pytest.mark.parametrize(
    "options", [pytest.param((), id="alone"), pytest.param(("-n", "2"), id="with-workers", marks=pytest.mark.full)]
)
@pytest.mark.full(guard="test_an_implementation_that_does_not_load_ends_the_run_with_its_code")
def test_an_unusable_conform_toml_is_reported_without_a_traceback(folder: Path, options: tuple[str, ...]) -> None:
    (folder / "conform.toml").write_text("[limits\n", encoding="utf-8")
    code, text = pytest_run(folder, *SUITE, "--conform-impl", "right.py", *options)
    assert code == (1 if options else 3)
    assert "conform.toml, line 1" in text
    assert "Traceback" not in text


PRINTS_WHO_IS_THERE = """
import os
OTHERS = sum(name.isdigit() for name in os.listdir("/proc")) if os.path.isdir("/proc") else 0
assert OTHERS < 5, f"{OTHERS} processes can be seen"
"""


@pytest.mark.full(guard="test_an_unavailable_sandbox_ends_the_run_with_its_code")
@sandbox
def test_isolation_sandbox_is_a_sandbox(folder: Path) -> None:
    (folder / "looking.py").write_text(ATTENTION + PRINTS_WHO_IS_THERE, encoding="utf-8")
    scale = (*SUITE[:2], "--conform-only", "SDPA-SCALE", "--conform-impl", "looking.py")
    inside, told = pytest_run(folder, *scale, "--conform-isolation", "sandbox", "-v")
    assert inside == 0, told
    assert "::SDPA-SCALE PASSED" in told
    outside, told = pytest_run(folder, *scale)
    assert outside == 3
    assert "processes can be seen" in told


def test_an_unavailable_sandbox_ends_the_run_with_its_code(folder: Path) -> None:
    """A PATH without bwrap."""
    code, text = pytest_run(
        folder, *SUITE, "--conform-impl", "right.py", "--conform-isolation", "sandbox", PATH=str(folder)
    )
    assert code == 4
    assert "needs the program bwrap" in text
    assert "install it: apt-get install bubblewrap" in text
    assert "Traceback" not in text


def test_a_missing_option_and_an_unknown_clause_are_wrong_usage(folder: Path) -> None:
    assert pytest_run(folder, "--pyargs", "conformkit.conformance")[0] == 4
    code, text = pytest_run(folder, *SUITE[:2], "--conform-impl", "right.py", "--conform-only", "SDAP-SCALE")
    assert code == 4
    assert "SDPA-SCALE" in text


@pytest.mark.full(guard="test_each_clause_is_an_item")
def test_ones_own_suite_can_hold_the_clauses(folder: Path) -> None:
    (folder / "expected.toml").write_text('SDPA-SCALE = "on purpose"\n', encoding="utf-8")
    (folder / "test_own.py").write_text(
        """
from conformkit.conformance import check, parametrize_with_clauses

TWO = ("SDPA-SCALE", "SDPA-OUT-SHAPE")

@parametrize_with_clauses("wrong.py", only=TWO, expected_failures={"SDPA-SCALE": "on purpose"})
def test_conformance(check_clause):
    check_clause()

@parametrize_with_clauses("right.py", only=("SDPA-SCALE",), expected_failures={"SDPA-SCALE": "no longer"})
def test_strict(check_clause):
    check_clause()

@parametrize_with_clauses("wrong.py", only=TWO, expected_failures="expected.toml")
def test_file(check_clause):
    check_clause()

@parametrize_with_clauses("right.py", only=("SDPA-GRAD",), expected_failures={"SDPA-GRAD": "NumPy has no gradients"})
def test_silent(check_clause):
    check_clause()

@parametrize_with_clauses("gone.py", only=("SDPA-SCALE",), expected_failures={"SDPA-SCALE": "on purpose"})
def test_gone(check_clause):
    check_clause()

def test_report():
    report = check("right.py", only=("SDPA",))
    assert report.conforms
    assert report.ledger()["pass"] > 20
""",
        encoding="utf-8",
    )
    code, text = pytest_run(folder, "test_own.py", "-v")
    assert code == 1, text
    assert "test_conformance[SDPA-OUT-SHAPE] PASSED" in text
    assert "test_conformance[SDPA-SCALE] XFAIL" in text
    assert "test_strict[SDPA-SCALE] FAILED" in text
    assert "test_report PASSED" in text
    assert "test_file[SDPA-SCALE] XFAIL" in text
    assert "test_silent[SDPA-GRAD] FAILED" in text
    assert "expected to fail (NumPy has no gradients), but is not applicable" in text
    assert "test_gone[SDPA-SCALE] FAILED" in text


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ({"PE-ODD-D": "out of scope"}, "not among the selected clauses"),
        ({"SDPA-SCALE": " "}, "expected a string"),
        ({"SDPA-SCALE": 3}, "expected a string"),
        ({"sdpa-scale": "lower case"}, "not among"),
    ],
)
def test_an_expected_failure_needs_a_clause_and_a_reason(table: dict[str, str], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        parametrize_with_clauses("right.py", only=("SDPA",), expected_failures=table)


def test_a_class_is_refused_with_what_to_write_instead():
    """Would break if it were an error of os.fspath: check() takes classes, so one tries that here too."""
    with pytest.raises(
        TypeError, match=r'not the object Parser: write "argparse", or judge the object by check\(Parser'
    ):
        parametrize_with_clauses(type("Parser", (), {"__module__": "argparse.deep"}))


def test_a_baseline_expects_its_failures_and_no_other(folder: Path) -> None:
    """Would break if a known failure were red, a new one expected, or one that passes now silent."""
    known = {"SDPA-SCALE": "fail", "SDPA-OUT-SHAPE": "fail"}
    (folder / "b.json").write_text(json.dumps({"schema": "conformkit.baseline/1", "known": known}))
    options = (*SUITE, "--conform-impl", "wrong.py", "--conform-baseline", "b.json", "-v")
    code, text = pytest_run(folder, *options)
    assert code == 0, text
    assert "::SDPA-SCALE XFAIL" in text
    assert "::SDPA-OUT-SHAPE XPASS" in text
    (folder / "b.json").write_text(json.dumps({"schema": "conformkit.baseline/1", "known": {"SDPA-SCALE": "blocked"}}))
    code, text = pytest_run(folder, *options, "-k", "SDPA-SCALE")
    assert (code, "::SDPA-SCALE FAILED" in text) == (1, True), text
