"""What is left out of a run is not judged: told, and a pass only where nobody requires it or doubts it."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from conformkit.conformance.api.embed import ClauseBroken, EmbeddedSuite
from conformkit.conformance.engine.request import RunRequest
from conformkit.conformance.engine.results import Report, Verdict
from conformkit.conformance.report.badge import as_badge
from conformkit.conformance.report.json_report import as_json
from conformkit.conformance.report.junit import as_junit
from conformkit.conformance.report.milestones import State, milestones
from conformkit.conformance.report.wording import verdict_line
from conformkit.conformance.runner import run
from tests.engine.conftest import ATTENTION

TWO = ("SDPA-SCALE", "PE-SHAPE")
SINES = """
class PositionalEncoding:
    def __init__(self, d_model, max_len):
        self.width = d_model

    def __call__(self, x):
        return x + 1.0  # no sine at all
"""


def judged(folder: Path, declared: str, *only: str, **options: object) -> Report:
    (folder / "own.py").write_text(ATTENTION + SINES)
    (folder / "conform.toml").write_text(declared)
    return run(RunRequest(impl=str(folder / "own.py"), only=only, diagnose=False, **options))  # type: ignore[arg-type]


UNCONFIRMED = "[components.PositionalEncoding]\nunconfirmed = true\n"
SKIPPED = "[components.PositionalEncoding]\nskip = true\n"


@pytest.mark.parametrize(
    ("declared", "why"),
    [(UNCONFIRMED, "its draft could not find it or confirm"), (SKIPPED, "it is required, and skip = true")],
    ids=["by-a-draft", "by-a-person"],
)
def test_a_required_component_that_is_left_out_is_no_pass(tmp_path, declared, why):
    """A draft that left out what was wrong ended with 0 once: two milestones of three were called done."""
    found = judged(tmp_path, declared, *TWO)
    assert not found.conforms
    assert why in found.unusable["PositionalEncoding"].problem
    assert [r.verdict for r in found.results] == [Verdict.PASS, Verdict.NOT_RUN]
    assert verdict_line(found).endswith("left out by conform.toml, so not judged: PositionalEncoding")
    assert {m.name: m.state for m in milestones(found)} == {"attention": State.DONE, "positions": State.UNJUDGED}


def test_every_form_of_a_report_says_so(tmp_path):
    found = judged(tmp_path, UNCONFIRMED, *TWO)
    told = json.loads(as_json(found))
    assert told["conforms"] is False
    assert [one["name"] for one in told["unusable"]] == ["PositionalEncoding"]
    assert "conforms" not in as_badge(found)
    suite = ET.fromstring(as_junit(found))
    assert int(suite.get("failures", 0)) + int(suite.get("errors", 0)) == 1


def test_an_optional_component_is_left_out_by_a_person_and_not_by_a_draft(tmp_path):
    only = ("SDPA-SCALE", "SA-SHAPE")
    assert judged(tmp_path, "[components.SelfAttention]\nskip = true\n", *only).conforms
    found = judged(tmp_path, "[components.SelfAttention]\nunconfirmed = true\n", *only)
    assert not found.conforms
    assert "SelfAttention" in found.unusable


def test_what_was_not_asked_for_may_be_left_out(tmp_path):
    found = judged(tmp_path, UNCONFIRMED, "SDPA-SCALE")
    assert found.conforms
    assert not found.unusable
    assert judged(tmp_path, SKIPPED, *TWO, without=("PE",)).conforms


def test_a_clause_of_ones_own_suite_fails_where_it_is_not_judged(tmp_path):
    (tmp_path / "own.py").write_text(ATTENTION + SINES)
    (tmp_path / "conform.toml").write_text(UNCONFIRMED)
    suite = EmbeddedSuite(RunRequest(impl=str(tmp_path / "own.py"), isolation="none"))
    try:
        with pytest.raises(ClauseBroken, match="unconfirmed"):
            suite.settle("PE-SHAPE")
    finally:
        suite.close()


DECODING = """
from conformkit.reference import Transformer as Right


class Transformer(Right):
    def forward(self, src, tgt, src_mask=None, tgt_mask=None):
        memory_mask = (src != self.pad_id)[:, None, None] if src_mask is None else src_mask
        return Right.decode(self, tgt, self.encode(src, src_mask), tgt_mask, memory_mask)

    def decode(self, tgt, memory{argument}):
        return Right.decode(self, tgt, memory, None, {given})
"""


@pytest.mark.parametrize(
    ("argument", "given", "want"),
    [
        (", hidden=None", "None if hidden is None else ~hidden[:, None, None]", Verdict.NOT_RUN),
        (", memory_mask=None", "None", Verdict.FAIL),
        ("", "None", Verdict.FAIL),
    ],
    ids=["by-an-unknown-name", "given-and-ignored", "not-taken"],
)
def test_a_mask_that_was_never_given_is_no_reason_to_fail(tmp_path, argument, given, want):
    """Right code was told that its decode ignores the memory's mask, which nobody had passed to it."""
    (tmp_path / "own.py").write_text(DECODING.format(argument=argument, given=given))
    only = ("S2S-STEP-MASK",)
    found = run(RunRequest(impl=str(tmp_path / "own.py"), only=only, profile="seq2seq", diagnose=False))
    assert [r.verdict for r in found.results] == [want]
    assert not found.conforms
    if want is Verdict.NOT_RUN:
        told = found.unusable["Transformer.decode"]
        assert "hidden" in told.problem
        (tmp_path / "conform.toml").write_text("\n".join(told.advice[1:3]).replace("memory_mask", "memory_padding"))
        assert run(RunRequest(impl=str(tmp_path / "own.py"), only=only, profile="seq2seq", diagnose=False)).conforms
