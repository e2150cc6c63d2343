"""A report is finished in one place: in the order of the law, whatever the order of judging, complete or not."""

from dataclasses import replace

import pytest

from conformkit.conformance.defects.killing_order import soonest_first
from conformkit.conformance.engine.collecting import Collector
from conformkit.conformance.engine.request import RunRequest
from conformkit.conformance.engine.results import Causes, DifferingPart, Report, Result, Verdict
from conformkit.conformance.findings.finding import stated
from conformkit.conformance.runner import run
from conformkit.spec.clauses import select

CHOSEN = select(("SDPA-OUT-SHAPE", "SDPA-SCALE", "MASK-NONE"))
BEGUN = Report("mypkg", "/mypkg", "numpy", seed=7)


def collector(told=None, *, hidden=False):
    return Collector(CHOSEN, CHOSEN[::-1], told.append if told is not None else None, hidden=hidden)


def ids(results):
    return [result.clause.id for result in results]


def test_results_come_in_any_order_and_leave_in_that_of_the_law():
    told = []
    collected = collector(told)
    for clause in CHOSEN[::-1]:
        collected.add(Result(clause, Verdict.PASS))
    report = collected.finish(BEGUN, complete=True, seconds=2.5)
    assert ids(report.results) == ids(collected.in_order()) == [clause.id for clause in CHOSEN]
    assert (report.complete, report.seconds, report.conforms) == (True, 2.5, True)
    assert [(now.done, now.clause_id) for now in told] == [*enumerate(c.id for c in CHOSEN[::-1]), (3, "")]


def test_a_result_that_ends_the_run_is_kept(attention_file):
    """Would break if the failure that stops a run were lost or came late, or what it left counted as passed."""
    source = attention_file.read_text().replace(" / np.sqrt(q.shape[-1])", "")
    wrong = attention_file.with_name("unscaled.py")
    wrong.write_text(source)
    chosen = ("SDPA-OUT-SHAPE", "SDPA-SCALE", "SDPA-V-LINEAR", "MASK-NONE")
    told: list[str] = []
    report = run(RunRequest(str(wrong), only=chosen, stop=True, diagnose=False), lambda now: told.append(now.clause_id))
    assert next(one for one in told if one) == soonest_first(select(chosen))[0].id
    verdicts = {result.clause.id: result.verdict for result in report.results}
    assert list(verdicts.values()).count(Verdict.FAIL) == 1
    assert Verdict.NOT_RUN in verdicts.values()
    assert "stopped at the first failure" in report.late
    assert report.absent()[0] == []
    known = run(RunRequest(str(wrong), only=chosen, stop=True, diagnose=False, accepted=("SDPA-SCALE",)))
    assert not known.late


def test_what_is_left_is_not_run_and_says_why():
    collected = collector()
    collected.add(Result(CHOSEN[1], Verdict.PASS))
    collected.add_not_run("there was no time")
    report = collected.finish(BEGUN, complete=False, seconds=1.0)
    assert [result.verdict for result in report.results] == [Verdict.NOT_RUN, Verdict.PASS, Verdict.NOT_RUN]
    assert [result.reason for result in report.results] == ["there was no time", "", "there was no time"]


def test_the_latest_causes_are_in_the_report_and_hidden_numbers_are_not():
    told = []
    collected = collector(told, hidden=True)
    collected.add(Result(CHOSEN[0], Verdict.FAIL, stated("output[0] is 3.1415, expected 2.7182")))
    assert "3.1415" not in told[-1].last.message
    collected.explain(Causes(parts={"MultiHeadAttention": DifferingPart("heads", "heads is off by 3.1415")}))
    open_report = collected.finish(BEGUN, complete=True, seconds=1.0)
    hidden_report = collected.finish(replace(BEGUN, hidden=True), complete=True, seconds=1.0)
    assert "3.1415" in open_report.results[0].message
    assert "3.1415" in open_report.parts["MultiHeadAttention"].sentence
    assert "3.1415" not in hidden_report.results[0].message + hidden_report.parts["MultiHeadAttention"].sentence
    assert (open_report.seed, hidden_report.seed) == (7, 0)


def test_a_remark_is_a_note_of_the_report_unless_draws_are_hidden():
    """Would break if an implementation could tell its inputs in what it says of itself."""
    collected = collector()
    collected.add(Result(CHOSEN[0], Verdict.PASS, remark="3 graphs"))
    assert collected.finish(BEGUN, complete=True, seconds=1.0).notes == ["3 graphs"]
    assert collected.finish(replace(BEGUN, hidden=True), complete=True, seconds=1.0).notes == []


@pytest.mark.parametrize("workers", [1, 2])
def test_an_interrupted_run_reports_what_it_has_as_incomplete(attention_file, workers):
    def interrupt(now):
        if now.done == 2:
            raise KeyboardInterrupt

    report = run(RunRequest(str(attention_file), only=("SDPA", "MASK"), processes=workers), interrupt)
    assert len(report.results) == 2
    assert not report.complete
    assert not report.conforms


def test_a_clause_that_waits_brings_the_failure_it_waits_for(tmp_path):
    """Would break if `--only X` ended red without a word about what is wrong with what it waits for."""
    file = tmp_path / "narrow.py"
    file.write_text("def scaled_dot_product_attention(q, k, v, mask=None):\n    return q[..., :1]\n")
    report = run(RunRequest(str(file), only=("SDPA-SCALE",), discover=True, diagnose=False))
    cause, asked = report.results
    assert (asked.clause.id, asked.verdict) == ("SDPA-SCALE", Verdict.BLOCKED)
    assert (cause.clause.id, cause.verdict.red) == (asked.blocked_by, True)
    assert "shape" in cause.message
