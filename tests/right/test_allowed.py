"""What careful code in use does otherwise is allowed: it breaks no binding clause, and is told as a warning."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from conformkit.conformance.defects import defects
from conformkit.conformance.driver.spawn.shared import LentFactory
from conformkit.conformance.engine.judge import Judge
from conformkit.conformance.engine.loading import opened
from conformkit.conformance.engine.request import RunRequest
from conformkit.conformance.suite.registry import tests as suite
from conformkit.spec.clauses import Level, clauses

from .false_alarms import alarms

RIGHT = Path(__file__).parents[1]

ALLOWED = {
    "right/dropout_on_inputs": (
        "core",
        "MHA-DROPOUT-MEAN FFN-DROPOUT-MEAN BLOCK-DROPOUT-MEAN GEN-ZERO GEN-GREEDY-ARGMAX GEN-MODE-RESTORE PE-OVERLONG LM-OVERLONG",
        "GEN-EVAL-MODE PE-OVERLONG-REFUSED ERRH-OVERLONG",
    ),
    "right/cut_masks.py": (
        "core",
        "DET-MEMORY-ORDER ERRH-KV-LEN ERRH-MASK-SHAPE",
        "SDPA-NONCONTIG ERRH-VALUES-LEFT ERRH-MASK-CUT",
    ),
    "right_lm/counted.py": (
        "lm",
        "SCHED-NOAM SCHED-NOAM-SIZES REP-ROLLING REP-EMA TOK-BPE-ROUNDTRIP TOK-BPE-BYTES TOK-BPE-SHORTER TOK-BPE-GREEDY TOK-BPE-SIZES",
        "REP-ROLLING-WHOLE TOK-BPE-LAYOUT",
    ),
}  # fmt: skip
"""Right implementations: the profile, clauses that hold, and clauses that warn."""


@pytest.mark.parametrize("impl", ALLOWED)
def test_another_convention_is_a_warning_at_most(impl: str, warm: LentFactory) -> None:
    profile, holding, warned = ALLOWED[impl]
    with opened(RunRequest(impl=str(RIGHT / impl), profile=profile), warm) as (implementation, _):
        judge = Judge(implementation, suite(profile), seed=0)
        found = {name: judge.result(name) for name in (*holding.split(), *warned.split())}
    assert {name for name, result in found.items() if result.verdict.red} == set(warned.split())
    assert {name: result.message for name, result in found.items() if not result.verdict.red and result.message} == {}


@pytest.mark.full(guard="test_another_convention_is_a_warning_at_most")
def test_a_rate_of_its_own_that_nobody_can_set_is_no_mistake(warm: LentFactory, tmp_path: Path) -> None:
    """Would break if a model were asked for a rate of 0 that its constructor does not take."""
    shutil.copytree(RIGHT / "right/dropout_on_inputs", tmp_path / "fixed", ignore=shutil.ignore_patterns("__pycache__"))
    own = tmp_path / "fixed" / "__init__.py"
    before, after = (
        "block_size, dropout=0.0):\n        super().__init__()\n",
        "block_size):\n        super().__init__()\n",
    )
    source = own.read_text(encoding="utf-8")
    assert source.count(before) == 1
    own.write_text(source.replace(before, f"{after}        dropout = 0.1\n"), encoding="utf-8")
    assert [result.clause.id for _, result in alarms(str(tmp_path / "fixed"), [0], warm=warm)] == []


@pytest.mark.parametrize(
    "name",
    ["gen-dropout", "gen-flag-only", "gen-leaves-eval", "s2sgen-dropout", "s2sgen-leaves-eval", "s2sbeam-dropout"],
)
def test_leaving_the_mode_to_the_caller_breaks_no_binding_clause(name: str) -> None:
    defect = defects()[name]
    assert [broken for broken in (*defect.clauses, *defect.also) if clauses()[broken].level is Level.MUST] == []
