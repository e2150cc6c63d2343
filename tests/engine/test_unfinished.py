"""What is exported and raises NotImplementedError: never green, never an error, and no way to hide a failure."""

import pytest

from conformkit.conformance.engine.judge import Judge
from conformkit.conformance.engine.loading import opened
from conformkit.conformance.engine.request import RunRequest
from conformkit.conformance.engine.results import Verdict
from conformkit.conformance.report import milestones as way
from conformkit.conformance.report.json_report import as_object
from conformkit.conformance.report.stored import from_object
from conformkit.conformance.report.terminal import render
from conformkit.conformance.runner import run
from conformkit.conformance.suite import registry

from .conftest import ATTENTION

STUBS = """
class MultiHeadAttention:
    def __init__(self, d_model, num_heads, dropout=0.0, causal=True):
        raise NotImplementedError("later")

    def __call__(self, x):
        raise NotImplementedError


class FeedForward:
    def __init__(self, d_model, d_ff, dropout=0.0):
        pass

    def __call__(self, x):
        raise NotImplementedError


class TransformerBlock:
    def __init__(self, d_model, num_heads, d_ff, dropout=0.0, causal=True):
        self.attention = MultiHeadAttention(d_model, num_heads)

    def __call__(self, x):
        return self.attention(x)
"""


def judged(tmp_path, source, only, **options):
    path = tmp_path / "unfinished_code.py"
    path.write_text(source, encoding="utf-8")
    return run(RunRequest(impl=str(path), only=only, diagnose=False, **options))


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    return judged(tmp_path_factory.mktemp("stubs"), ATTENTION + STUBS, ("SDPA", "MHA", "FFN", "BLOCK", "PE"))


def verdicts(report, component):
    return {r.verdict for r in report.results if r.clause.component == component}


@pytest.mark.parametrize("component", ["MultiHeadAttention", "FeedForward", "TransformerBlock"])
def test_a_stub_and_what_is_made_of_it_are_not_implemented(report, component):
    assert verdicts(report, component) == {Verdict.NOT_IMPLEMENTED}
    assert component in report.stubs
    assert all(report.breaks(r) for r in report.results if r.clause.component == component and r.clause.level == "MUST")


def test_another_worker_knows_the_same_stubs(tmp_path):
    (tmp_path / "unfinished_code.py").write_text(ATTENTION + STUBS, encoding="utf-8")
    request = RunRequest(impl=str(tmp_path / "unfinished_code.py"))
    with opened(request) as (first, _), opened(request, like=first) as (second, _):
        results = [Judge(worker, registry.tests("core")).result("MHA-ORACLE") for worker in (first, second)]
    assert [result.unfinished for result in results] == [True, True]
    assert results[0].reason == results[1].reason


def test_the_rest_is_judged_and_the_whole_does_not_conform(report):
    assert Verdict.PASS in verdicts(report, "ScaledDotProductAttention")
    assert not report.conforms
    assert set(report.missing) == {"MultiHeadAttention", "PositionalEncoding", "TransformerBlock"}


def test_a_stub_of_what_is_not_required_breaks_too(tmp_path):
    stub = STUBS[STUBS.index("class FeedForward") : STUBS.index("class TransformerBlock")]
    found = judged(tmp_path, ATTENTION + stub, ("SDPA-OUT-SHAPE", "FFN"))
    assert found.missing == []
    assert not found.conforms


def test_a_class_that_makes_another_one_is_judged_by_what_it_makes(tmp_path):
    source = """
import numpy as np


class PositionalEncoding:
    def __new__(cls, d_model, max_len):
        return Sinusoids(d_model, max_len) if cls is PositionalEncoding else super().__new__(cls)

    def __call__(self, x):
        raise NotImplementedError


class Sinusoids(PositionalEncoding):
    def __init__(self, d_model, max_len):
        angles = np.arange(max_len)[:, None] / 10000.0 ** (np.arange(0, d_model, 2) / d_model)
        self.table = np.zeros((max_len, d_model))
        self.table[:, 0::2], self.table[:, 1::2] = np.sin(angles), np.cos(angles)[:, : d_model // 2]

    def __call__(self, x):
        return x + self.table[: x.shape[1]]
"""
    found = judged(tmp_path, ATTENTION + source, ("PE-EXPONENT",))
    assert [r.verdict for r in found.results] == [Verdict.PASS]


def test_an_error_for_some_inputs_only_is_a_failure(tmp_path):
    source = ATTENTION.replace("if mask is not None:", "if mask is not None:\n        raise NotImplementedError", 1)
    found = judged(tmp_path, source, ("SDPA-OUT-SHAPE", "MASK"))
    by_id = {r.clause.id: r.verdict for r in found.results}
    assert by_id["SDPA-OUT-SHAPE"] is Verdict.PASS
    assert set(by_id.values()) & {Verdict.ERROR, Verdict.FAIL}
    assert Verdict.NOT_IMPLEMENTED not in by_id.values()


def test_nothing_but_stubs_is_a_report_and_names_where_to_begin(tmp_path):
    source = "def scaled_dot_product_attention(q, k, v, mask=None):\n    raise NotImplementedError\n"
    found = judged(tmp_path, source, ("SDPA",))
    assert verdicts(found, "ScaledDotProductAttention") == {Verdict.NOT_IMPLEMENTED}
    step = way.next_step(found)
    assert (step.milestone, step.name, step.where) == (
        "attention", "ScaledDotProductAttention", "unfinished_code.py:2 in scaled_dot_product_attention",
    )  # fmt: skip
    text = render(found)
    assert "attention: not implemented" in text
    assert "implement ScaledDotProductAttention (unfinished_code.py:2" in text
    assert "--only SDPA" in text


def test_milestones_come_in_order_and_the_first_open_one_is_next(report):
    states = {m.name: m.state for m in way.milestones(report)}
    assert list(states) == ["attention", "multi-head", "positions", "block", "model"]
    assert states["attention"] is way.State.DONE
    assert states["multi-head"] is way.State.UNFINISHED
    assert way.next_step(report).name == "MultiHeadAttention"


def test_failures_are_fixed_before_the_next_part_is_built(tmp_path):
    source = ATTENTION.replace("np.sqrt(q.shape[-1])", "q.shape[-1]") + STUBS
    step = way.next_step(judged(tmp_path, source, ("SDPA", "MHA")))
    assert step.milestone == "attention"
    assert step.broken.prefix == "SDPA"


def test_a_part_of_the_profile_asks_for_nothing_outside_it(tmp_path):
    found = judged(tmp_path, ATTENTION + STUBS, ("SDPA",))
    assert "FeedForward" in found.stubs
    assert [m.lacking for m in way.milestones(found)] == [()]
    assert way.next_step(judged(tmp_path, ATTENTION + STUBS, ("SDPA", "FFN"))).name == "FeedForward"


def test_what_conforms_has_no_next_step(tmp_path):
    found = judged(tmp_path, ATTENTION, ("SDPA-SCALE",))
    assert found.conforms
    assert way.next_step(found) is None
    assert as_object(found)["next"] is None


def test_a_part_that_conforms_names_what_is_a_stub_beyond_it(tmp_path):
    """Would break if a user who fixes one clause after the other got no next step."""
    found = judged(tmp_path, ATTENTION + STUBS, ("SDPA-SCALE",))
    assert found.conforms
    assert way.next_step(found).name == "MultiHeadAttention"
    text = render(found)
    assert "attention: done" in text
    assert "--only MHA" in text


def test_the_json_has_the_same_content_and_can_be_read_back(report):
    found = as_object(report)
    assert found["next"]["milestone"] == "multi-head"
    assert {item["name"] for item in found["stubs"]} == set(report.stubs)
    again = from_object(found)
    assert as_object(again)["milestones"] == found["milestones"]
    assert again.conforms is False
    assert again.stubs == report.stubs


def test_every_clause_belongs_to_a_milestone_of_its_own_component():
    from conformkit.spec.clauses import clauses

    found = {clause.id: way.milestone_of(clause) for clause in clauses().values()}
    assert set(found.values()) == set(way.MILESTONES)
    assert found["MHA-SCALE-DHEAD"] == "multi-head"
    assert found["GEN-TOPP-SUPPORT"] == "generation"
