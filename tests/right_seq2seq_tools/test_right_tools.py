"""No false alarm: right functions around an encoder-decoder, differently written, are found and break no binding clause."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformkit.conformance.engine.judge import Judge
from conformkit.conformance.engine.loading import opened
from conformkit.conformance.engine.request import RunRequest
from conformkit.conformance.engine.results import Verdict
from conformkit.conformance.suite import registry
from conformkit.spec.clauses import Level, clauses_of
from conformkit.spec.tools import tools_of

FOLDER = Path(__file__).resolve().parent


@pytest.mark.parametrize("name", ["arrays.py", "torch_pairs", "opposite"])
def test_right_functions_break_no_binding_clause(name):
    with opened(RunRequest(impl=str(FOLDER / name), profile="seq2seq")) as (implementation, _):
        assert set(implementation.tools()) == set(tools_of("seq2seq")), implementation.unfit
        judge = Judge(implementation, registry.tests("seq2seq"), seed=0)
        about = [c for c in clauses_of("seq2seq").values() if c.component in tools_of("seq2seq")]
        found = [judge.result(clause.id) for clause in about]
    assert not [f"{r.clause.id}: {r.message}" for r in found if r.clause.level is Level.MUST and r.verdict.red]
    assert sum(r.verdict is Verdict.PASS for r in found) > 45
