"""A failure is named after the known mistake that reproduces it, and after nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from conformkit.conformance.defects import defects
from conformkit.conformance.defects.patching import PatchError, write_reference
from conformkit.conformance.diagnosis.diagnose import diagnose
from conformkit.conformance.diagnosis.likeness import numbers_in, same_failure
from conformkit.conformance.diagnosis.suspects import suspects
from conformkit.conformance.results import Certainty, Result, Verdict
from conformkit.conformance.runner import RunRequest, run
from conformkit.spec.clauses import clause
from conformkit.spec.variants import CANONICAL

NUMBERS = "output[0, 0] is 0.844638, want 0.802224 (float64, relative tolerance 1e-06)"


def failed(name: str, message: str = NUMBERS, verdict: Verdict = Verdict.FAIL, *details: str) -> Result:
    return Result(clause(name), verdict, message, details)


def passed(name: str) -> Result:
    return Result(clause(name), Verdict.PASS)


class TestLikeness:
    def test_rounding_in_the_last_digits_is_no_difference(self):
        assert same_failure(failed("SDPA-SCALE"), failed("SDPA-SCALE", NUMBERS.replace("0.844638", "0.844639")))

    @pytest.mark.parametrize(
        "other",
        [
            NUMBERS.replace("0.844638", "0.845"),
            NUMBERS.replace("[0, 0]", "[0, 1]"),
            NUMBERS.replace("output", "weights"),
        ],
        ids=["another-number", "another-place", "other-words"],
    )
    def test_anything_else_is(self, other):
        assert not same_failure(failed("SDPA-SCALE"), failed("SDPA-SCALE", other))

    def test_a_failure_is_no_exception(self):
        assert not same_failure(failed("SDPA-SCALE"), failed("SDPA-SCALE", NUMBERS, Verdict.ERROR))

    def test_details_count(self):
        assert not same_failure(
            failed("SDPA-SCALE", NUMBERS, Verdict.FAIL, "6 of 6 differ"),
            failed("SDPA-SCALE", NUMBERS, Verdict.FAIL, "5 of 6 differ"),
        )

    def test_nan_is_like_nan(self):
        assert same_failure(failed("SDPA-SCALE", "x is nan, want 1"), failed("SDPA-SCALE", "x is nan, want 1"))

    def test_a_number_of_many_digits_tells_more_than_a_count(self):
        assert numbers_in(failed("SDPA-SCALE")) == 2
        assert numbers_in(failed("SDPA-SCALE", "7 of 7 tokens were accepted, want an exception")) == 0


class TestSuspects:
    def test_a_green_clause_acquits_whoever_is_known_to_break_it(self):
        guilty = defects()["sdpa-no-scale"]
        assert guilty in suspects([failed("SDPA-SCALE")], CANONICAL)
        assert guilty not in suspects([passed(name) for name in guilty.clauses], CANONICAL)

    def test_nobody_is_suspected_of_what_he_does_not_break(self):
        assert defects()["sdpa-no-scale"] not in suspects([failed("MHA-OUT-PROJ")], CANONICAL)


class Witness:
    """Answers for references with defects in them, without running any."""

    def __init__(self, answers: dict[tuple[str, ...], str]) -> None:
        self.answers, self.asked = answers, []

    @contextmanager
    def __call__(self, chosen, components) -> Iterator[Witness]:
        names = tuple(defect.id for defect in chosen)
        self.asked.append(names)
        if names not in self.answers:
            raise PatchError(f"{names} do not go together")
        self.message = self.answers[names]
        yield self

    def result(self, name: str) -> Result:
        return failed(name, self.message) if self.message else passed(name)


@pytest.fixture
def three(monkeypatch):
    """Three suspects."""
    chosen = [defects()[name] for name in ("sdpa-no-scale", "sdpa-scale-dk", "sdpa-scale-T")]
    monkeypatch.setattr("conformkit.conformance.diagnosis.diagnose.suspects", lambda *_: chosen)
    return [defect.id for defect in chosen]


class TestDiagnosis:
    def test_the_one_that_gives_the_same_numbers_is_named(self, three):
        answers = {(three[0],): "output[0, 0] is 0.5123, want 0.802224", (three[1],): NUMBERS, (three[2],): ""}
        (result,) = diagnose([failed("SDPA-SCALE")], CANONICAL, Witness(answers))
        assert [(like.defect, like.certainty) for like in result.looks_like] == [(three[1], Certainty.EXACT)]

    def test_a_tie_is_said_to_be_one(self, three):
        answers = dict.fromkeys([(three[0],), (three[1],)], NUMBERS) | {(three[2],): ""}
        (result,) = diagnose([failed("SDPA-SCALE")], CANONICAL, Witness(answers))
        assert {like.certainty for like in result.looks_like} == {Certainty.UNSURE}
        assert len(result.looks_like) == 2

    def test_the_same_words_without_numbers_are_no_proof(self, three):
        words = "7 tokens were accepted, want an exception"
        (result,) = diagnose([failed("SDPA-SCALE", words)], CANONICAL, Witness({(three[0],): words}))
        assert [like.certainty for like in result.looks_like] == [Certainty.LIKELY]

    def test_nothing_is_named_where_nothing_fits(self, three):
        (result,) = diagnose([failed("SDPA-SCALE")], CANONICAL, Witness({(name,): "" for name in three}))
        assert result.looks_like == ()

    def test_two_together_are_named_where_none_alone_fits(self, three):
        other = "output[0, 0] is 0.111111, want 0.222222"
        answers = {(three[0],): NUMBERS, (three[1],): other, (three[2],): "", (three[0], three[1]): "x is 3.14159"}
        red = [failed("SDPA-SCALE"), failed("SDPA-FORMULA", other), failed("MHA-OUT-PROJ", "x is 3.14159")]
        third = diagnose(red, CANONICAL, Witness(answers))[2]
        assert {like.defect for like in third.looks_like} == {three[0], three[1]}
        assert all(like.together_with for like in third.looks_like)

    def test_green_results_stay_as_they_are(self, three):
        asked = Witness({})
        assert diagnose([passed("SDPA-SCALE")], CANONICAL, asked) == [passed("SDPA-SCALE")]


def test_a_mistake_in_somebody_elses_words_is_named(tmp_path):
    folder = write_reference(tmp_path / "mine")
    source = (folder / "attention.py").read_text()
    (folder / "attention.py").write_text(source.replace("q / math.sqrt(q.shape[-1])", "q * q.shape[-1] ** 0.5"))
    report = run(RunRequest(impl=str(folder), only=("SDPA",)))
    named = {like.defect for result in report.failures() for like in result.looks_like}
    assert named == {"sdpa-scale-multiply"}
