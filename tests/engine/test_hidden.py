"""On hidden draws no report holds a number that was drawn or wanted, whatever a clause or an implementation says."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from conformkit.conformance.assertions.checks import (
    ClauseFailure,
    check,
    check_close,
    check_differs,
    check_equal,
    check_finite,
    check_shape,
    check_zero,
    each_of,
    gathering,
)
from conformkit.conformance.driver.errors import ImplementationFailure, WorkerLost
from conformkit.conformance.engine.judge import Judge, _shown, _troubled
from conformkit.conformance.engine.loading import opened
from conformkit.conformance.engine.redaction import redacted, veiled
from conformkit.conformance.engine.request import RunRequest
from conformkit.conformance.engine.results import DifferingPart, Report, Result, Verdict
from conformkit.conformance.findings import outline
from conformkit.conformance.report.html import as_html
from conformkit.conformance.report.json_report import as_json
from conformkit.conformance.report.junit import as_junit
from conformkit.conformance.report.markdown import as_markdown
from conformkit.conformance.report.sarif import as_sarif
from conformkit.conformance.report.terminal import render
from conformkit.conformance.runner import run
from conformkit.conformance.suite import registry
from conformkit.spec.clauses import Level, clauses

CLAUSE = next(iter(clauses().values()))
SEED = 918273645
ATTENTION_DIFFERS = "attention is the first part that differs"
NUMBERS = arrays.arrays(np.float64, arrays.array_shapes(max_dims=3, max_side=4), elements=st.floats(-1e9, 1e9))
ALLOWED = re.compile(
    "it does not hold|it raised an exception, or returned no array"
    "|its process ended, or exceeded a limit|it exceeded the time limit"
)
"""All that a hidden failure may say: by its verdict, nothing that code could choose besides."""

WRONG = """
from conformkit import reference as right

def _off(y):
    return y * 1.0371 + 0.0173 * y.flip(0).flip(-1) if y.is_floating_point() else y

def scaled_dot_product_attention(q, k, v, mask=None):
    return _off(right.scaled_dot_product_attention(q, k, v, mask))

def _wrong(base):
    class Wrong(base):
        def forward(self, *inputs, **options):
            return _off(super().forward(*inputs, **options))
    Wrong.__name__ = base.__name__
    return Wrong

SelfAttention = _wrong(right.SelfAttention)
MultiHeadAttention = _wrong(right.MultiHeadAttention)
FeedForward = _wrong(right.FeedForward)
PositionalEncoding = _wrong(right.PositionalEncoding)
TransformerBlock = _wrong(right.TransformerBlock)
TinyTransformerLM = _wrong(right.TinyTransformerLM)
"""
"""Right except for the output: most clauses fail, and quote numbers."""

TALKATIVE = """
from conformkit.reference import *
from conformkit import reference as right

class Spy(Exception):
    pass

def scaled_dot_product_attention(q, k, v, mask=None):
    print("seen", q.flatten().tolist())
    if q.shape[-1] == 7:
        raise Spy(repr(q.flatten().tolist()))
    return right.scaled_dot_product_attention(q, k, v, mask)
"""
"""It reveals its inputs wherever it can; with keys of another width it is right, so that it is loaded."""


@pytest.fixture
def package(tmp_path):
    def write(source):
        (tmp_path / "mypkg.py").write_text(source)
        return str(tmp_path / "mypkg.py")

    return write


def telling(texts):
    """Return decimal numbers of four or more digits: these are neither sizes nor coincidences."""
    found = {number for text in texts for number in re.findall(r"\d+\.\d+", text)}
    return {number for number in found if len(number.replace(".", "").strip("0")) >= 4}


def tried(impl, begins, seed=SEED):
    """Judge every clause with such an id separately, ignoring its needs."""
    with opened(RunRequest(impl=impl, seed=seed, tries=1)) as (implementation, location):
        judge = Judge(implementation, registry.tests(), seed=seed)
        known = [
            c
            for c in clauses().values()
            if c.id in registry.tests() and c.profile == "core" and c.id.startswith(begins)
        ]
        open_to = [c for c in known if c.component == "all" or implementation.has(c.component)]
        results = [judge._try(c) for c in open_to if judge._why_not_applicable(c) is None]
        return results, str(location.path)


def reported(results, location):
    return Report(
        implementation="mypkg", location=location, framework="torch", profile="core", level=Level.MUST, seed=SEED,
        isolation="sandbox", device="cpu", variant={}, results=results, complete=True,
        parts={
            "TransformerBlock": DifferingPart("attention", f"{ATTENTION_DIFFERS}: off by 0.38412"),
            "MultiHeadAttention": DifferingPart("", "MHA-ORACLE waits, and says: scores are limited to ±2"),
        },
    )  # fmt: skip


@pytest.mark.parametrize(
    ("only", "fail", "tell"),
    [("SDPA", 8, 6), pytest.param("", 100, 60, marks=pytest.mark.full)],
    ids=["attention", "everything"],
)
def test_no_clause_reveals_a_number_whatever_is_wrong(package, only, fail, tell):
    results, location = tried(package(WRONG), only)
    red = [r for r in results if r.verdict.red]
    assert len(red) > fail
    quoted = {r.clause.id: telling([r.message, *r.details]) for r in red}
    assert sum(map(bool, quoted.values())) > tell
    report = reported(results, location)
    report = redacted(report)
    for result in report.results:
        if result.verdict.red:
            assert ALLOWED.fullmatch(result.message), (result.clause.id, result.message)
    law = telling(text for c in clauses().values() for text in (c.title, c.normative, c.why, c.fix))
    secrets = set().union(*quoted.values()) - law | {str(SEED), "0.38412"}
    for form in (as_json, as_html, as_markdown, as_sarif, as_junit, lambda r: render(r, verbose=True)):
        text = form(report)
        found = {number for number in secrets if re.search(rf"(?<![\d.]){re.escape(number)}(?!\d)", text)}
        assert not found, form


def test_an_implementation_that_says_what_it_saw_is_not_quoted(package):
    impl = package(TALKATIVE)
    open_report = run(RunRequest(impl=impl, seed=SEED, only=("SDPA-OUT-SHAPE",), diagnose=False))
    hidden_report = run(RunRequest(impl=impl, seed=SEED, only=("SDPA-OUT-SHAPE",), diagnose=False, hidden=True))
    for words in (open_report.results[0].message, open_report.results[0].output):
        assert len(telling([words])) > 5
    seen = telling([open_report.results[0].message, open_report.results[0].output])
    text = as_json(hidden_report) + render(hidden_report)
    assert not {number for number in seen if number in text}
    (result,) = hidden_report.results
    assert result.message == "it raised an exception, or returned no array"
    assert result.where == "mypkg.py:8"


def test_progress_is_hidden_too(package):
    told = []
    request = RunRequest(impl=package(TALKATIVE), seed=SEED, only=("SDPA-OUT-SHAPE",), diagnose=False, hidden=True)
    run(request, lambda step: told.append(step.last))
    (last,) = filter(None, told)
    assert last.message == "it raised an exception, or returned no array"
    assert last.output == ""


def hidden(check_something):
    """Return everything that a hidden report says about a failing check."""
    with gathering() as evidence, pytest.raises(ClauseFailure) as caught:
        check_something()
    failure = caught.value
    found = evidence.placed(failure.finding)
    return veiled(Result(CLAUSE, Verdict.FAIL, found, evidence.distance, excerpt=_shown(failure.compared)))


@given(NUMBERS, st.floats(1e-3, 1e6), st.text("abc 0123456789.", max_size=20))
def test_no_check_reveals_what_it_compared(want, error, label):
    got = want + error
    for attempt in (
        lambda: check_close(label, got, want, 1e-12),
        lambda: check_equal(label, got, want),
        lambda: check_zero(label, got + 1e10),
        lambda: check_differs(label, got, got),
        lambda: check_finite(label, np.full(3, np.nan)),
        lambda: check_shape(label, got, (*got.shape, 2)),
        lambda: check(f"{label} {error}", False, str(want)),
    ):
        result = hidden(attempt)
        assert ALLOWED.fullmatch(result.message), result.message
        assert not telling([result.message])
        assert result.details == ()
        assert result.excerpt is None


@given(st.floats(1e-12, 1e12), st.sampled_from([Verdict.PASS, Verdict.FAIL]))
def test_no_distance_is_shown(distance, verdict):
    """Each power of ten was once: code that is off by what it likes tells eight bits with it."""
    assert veiled(Result(CLAUSE, verdict, distance=distance)).distance is None


@pytest.mark.parametrize("setting", [{"queries": 3}, (2, 3, True), "float32", 7], ids=str)
def test_at_which_setting_it_fails_is_not_told(setting):
    """The code chooses at which one it fails, by what it saw."""

    def failing():
        for _ in each_of("_", [setting]):
            check("label", False)

    assert hidden(failing).message == "it does not hold"


@pytest.mark.parametrize(
    ("error", "message"),
    [
        ("RuntimeError", "mat1 and mat2 shapes cannot be multiplied (3x5 and 4x6)"),
        ("ValueError", "mat1 and mat2 0.3141592"),
        ("E31415", "'0.3141592'"),
    ],
    ids=["sizes", "a-number", "a-type"],
)  # fmt: skip
def test_of_an_exception_not_even_the_type_is_told(error, message):
    """Its words were quoted once, then its type: sixty of them tell a digit and a half a clause."""
    result = veiled(_troubled(CLAUSE, ImplementationFailure("exception", error, message)))
    assert result.message == "it raised an exception, or returned no array"


@pytest.mark.parametrize("kind", ["memory", "exit", "output"])
def test_other_failures_of_an_implementation_are_shown_without_its_words(kind):
    result = veiled(_troubled(CLAUSE, ImplementationFailure(kind, "E31415", "0.3141592")))
    assert ALLOWED.fullmatch(result.message)
    assert "31415" not in result.message


@pytest.mark.parametrize("kind", ["timeout", "signal", "exit", "memory", "output", "protocol"])
def test_a_lost_worker_is_shown_without_details(kind):
    result = veiled(_troubled(CLAUSE, WorkerLost(kind, "exit code 31")))
    assert ALLOWED.fullmatch(result.message)
    assert "31" not in result.message


@pytest.mark.parametrize(
    ("source", "told"),
    [
        ("mypkg.py:3", "mypkg.py:3"),
        ("mypkg.py:2", "mypkg.py:2"),
        ("mypkg.py:1", ""),
        ("mypkg.py:31415", ""),
        ("0.31415.py:1", ""),
        ("../other.py:1", ""),
        ("loop.py:1", ""),
        (f"{'x' * 300}.py:1", ""),
    ],
    ids=["definition", "decorator", "statement", "no-such-line", "no-such-file", "outside", "a-link-to-itself", "long"],
)
def test_the_line_that_is_shown_begins_the_clauses_component(tmp_path, source, told):
    """The line that raised was once: code that computes it from its input told five digits a clause."""
    home = tmp_path / "home"
    home.mkdir()
    (home / "mypkg.py").write_text("a = 1\n@staticmethod\ndef f():\n    raise ValueError\n")
    (tmp_path / "other.py").write_text("def f(): pass\n")
    (home / "loop.py").symlink_to("loop.py")
    report = replace(reported([], str(home / "mypkg.py")), sources={CLAUSE.component: source})
    result = Result(CLAUSE, Verdict.ERROR, where="mypkg.py:4 in f")
    assert veiled(result, report).where == told


TELLING = """
import numpy as np

ERRORS = (ValueError, TypeError, KeyError, IndexError, RuntimeError, OSError, EOFError, NameError, Warning, Exception)

def scaled_dot_product_attention(q, k, v, mask=None):
    digit = int(abs(q.ravel()[0]) * 1e6) % 10
    if q.shape[-1] == 7:
        exec(compile(chr(10) * digit + f"raise ERRORS[{digit}]('{digit}')", __file__, "exec"))
    if digit % 3 == 0:
        return np.ones((digit + 2,) * 3)
    wrong = np.ones((*q.shape[:-1], v.shape[-1])) * 10.0 ** digit
    return (wrong, wrong * np.nan, wrong.astype(np.float16), wrong.astype(int))[digit % 4]
"""
"""Tells a digit of its input by an exception and its line, by a shape, a format, and by how far it is off."""


def test_what_fails_alike_reads_alike_whatever_was_drawn(package):
    """Alike is: with the same verdict. Types of exceptions and kinds of failures told some digits a clause once."""
    impl = package(TELLING)
    told = []
    for seed in (11, 12, 13):
        found = redacted(reported(*tried(impl, "SDPA", seed)))
        told.append({(r.clause.id, r.verdict): r for r in found.results if r.verdict.red})
    alike = told[0].keys() & told[1].keys() & told[2].keys()
    assert len(alike) > 5
    assert all(told[0][key] == told[1][key] == told[2][key] for key in alike)


def test_reasons_from_before_any_draw_stay_and_later_ones_go():
    before = Result(CLAUSE, Verdict.NOT_APPLICABLE, reason="norm is rmsnorm", tried=False)
    later = Result(CLAUSE, Verdict.NOT_APPLICABLE, reason="id 31415 is too large", outline=outline.SILENT)
    assert veiled(before).reason == "norm is rmsnorm"
    assert veiled(later).reason == "it does not apply to this implementation"


def test_times_carry_no_message():
    assert veiled(Result(CLAUSE, Verdict.PASS, seconds=0.31415)).seconds == 0.0


def test_parts_name_the_part_and_no_measurement():
    report = reported([], "")
    report = redacted(report)
    assert report.parts == {"TransformerBlock": DifferingPart("attention", ATTENTION_DIFFERS)}


def test_the_command_repeats_a_clause_on_public_draws():
    report = reported([Result(CLAUSE, Verdict.FAIL)], str(Path.cwd()))
    report = redacted(report)
    assert "--seed" not in render(report)
    assert "seed hidden" in render(report)
