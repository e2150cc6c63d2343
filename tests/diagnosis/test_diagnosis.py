"""A failure is named after the known mistake that reproduces it, and after no other."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest

from conformkit.conformance.defects import defects
from conformkit.conformance.diagnosis.diagnose import diagnose
from conformkit.conformance.diagnosis.patching import PatchError
from conformkit.conformance.diagnosis.similarity import Likeness, at_most, likeness, telling
from conformkit.conformance.diagnosis.suspects import Suspect, suspects
from conformkit.conformance.engine.results import Certainty, Result, Verdict
from conformkit.conformance.findings.altered import Altered
from conformkit.conformance.findings.finding import Finding, Kind
from conformkit.conformance.findings.relation import How, Relation
from conformkit.conformance.findings.setting import Setting
from conformkit.spec.clauses import clause, clauses
from conformkit.spec.variants import CANONICAL
from tests.diagnosis.shorthand import found

NUMBERS = "output[0, 0] is 0.844638, expected 0.802224 (float64, relative tolerance 1e-06)"
WORDS = "7 tokens were accepted, expected an exception"


def failed(name: str, message: str = NUMBERS, verdict: Verdict = Verdict.FAIL, *details: str) -> Result:
    return Result(clause(name), verdict, found(message, *details))


def passed(name: str) -> Result:
    return Result(clause(name), Verdict.PASS)


def alike(one: str, other: str, *details: str, of: tuple[str, ...] = ()) -> Likeness:
    theirs = failed("SDPA-SCALE", other, Verdict.FAIL, *(of or details))
    return likeness(failed("SDPA-SCALE", one, Verdict.FAIL, *details), theirs)


class TestLikeness:
    @pytest.mark.parametrize(
        "other",
        [
            NUMBERS.replace("0.844638", "0.844639"),
            NUMBERS.replace("1e-06", "1e-12"),
            NUMBERS.replace("[0, 0]", "[3, 1]"),
        ],
        ids=["rounding", "another-tolerance", "another-place"],
    )
    def test_changes_by_rounding_and_tolerances_are_not_differences(self, other):
        assert alike(NUMBERS, other) is Likeness.EXACT

    def test_another_number_where_the_same_is_wanted_is_another_failure(self):
        assert alike(NUMBERS, NUMBERS.replace("0.844638", "0.845")) is Likeness.RED

    def test_different_numbers_throughout_may_be_due_to_other_weights(self):
        assert alike(NUMBERS, "output[0, 0] is 3.14159, expected 2.71828 (float64, exactly)") is Likeness.WORDS

    def test_nan_in_a_mean_is_like_nan_and_unlike_a_number(self):
        mean = "the mean of output[0, 0] over 2000 draws is nan, expected 0.8675, give or take nan"
        assert alike(mean, mean) is Likeness.SAME
        assert alike(mean, mean.replace("nan", "0.7")) is Likeness.RED

    def test_counts_do_not_depend_on_weights(self):
        ours, theirs = (f"gradient[0, {n}] is 1.{n}2345, expected exactly 0; {n} of 25 entries" for n in (4, 4))
        assert alike(ours, theirs.replace("1.4", "2.4")) is Likeness.COUNTS
        assert alike(ours, theirs.replace("1.4", "2.4").replace("4 of", "9 of")) is Likeness.WORDS

    def test_frequencies_need_only_be_near(self):
        ours = "id 3 was sampled 902 times in 2000 draws, not about 1915"
        assert alike(ours, ours.replace("902", "887")) is Likeness.SAME
        assert alike(ours, ours.replace("902", "1490")) is Likeness.WORDS
        assert alike(ours, ours.replace("id 3", "id 4")) is not Likeness.SAME

    def test_equal_shares_are_more_than_near_ones(self):
        ours = "id 8, the most probable, was never sampled in 500 draws"
        shares = "drawn: [0, 1], by their shares 0.462 0.538"
        assert alike(ours, ours, shares, of=(shares,)) is Likeness.DRAWS
        assert alike(ours, ours, shares, of=(shares.replace("462", "470"),)) is Likeness.SAME
        assert alike(ours, ours, "with p = 0.51", of=("with p = 0.51",)) is Likeness.SAME  # a setting is no result

    def test_lists_of_ids_are_compared_and_positions_are_not(self):
        ours = "id 8 was never sampled in 500 draws"
        assert alike(ours, ours, "drawn: [0]", of=("drawn: [0, 1]",)) < Likeness.WORDS
        assert alike("output[0, 1] is 2.71828", "output[3, 1] is 2.71828") is Likeness.EXACT

    def test_words_in_common_are_needed_or_the_same_setting(self):
        assert alike("it raised A: x", "it raised B: y", "with 3") is Likeness.KIND
        assert alike("it raised A: x", "it raised B: y", "with 3", of=("with 4",)) is Likeness.RED

    def test_lists_of_parameters_differ_between_implementations(self):
        ours = "it has 624 trainable numbers, expected 588"
        assert alike(ours, ours, "yours: q, k", "with 3", of=("yours: query, key", "with 3")) is Likeness.SAME

    def test_names_of_parameters_differ_between_implementations(self):
        ours = "how layers.0.fc1.bias changed[3] is -0.123456, expected -0.001234"
        theirs = "how blocks.0.feed_forward.up.bias changed[1] is -0.654321, expected -0.004321"
        assert alike(ours, theirs) is Likeness.WORDS

    def test_quoted_parameters_are_too_and_their_number_counts(self):
        ours = "no gradient reaches `W_K`, `W_Q`"
        assert alike(ours, "no gradient reaches `k.weight`, `q.weight`") is Likeness.SAME
        assert alike(ours, "no gradient reaches `k.weight`") < Likeness.WORDS

    def test_the_parameter_of_a_clause_is_named_in_the_contracts_terms(self):
        ours, theirs = "output when q.weight changes is unchanged", "output when v.weight changes is unchanged"
        assert alike(ours, ours, "with name = q.weight") is Likeness.SAME
        assert alike(ours, theirs, "with name = q.weight", of=("with name = v.weight",)) is Likeness.RED

    def test_a_failure_is_neither_an_exception_nor_a_success(self):
        assert likeness(failed("SDPA-SCALE"), failed("SDPA-SCALE", NUMBERS, Verdict.ERROR)) is Likeness.RED
        assert likeness(failed("SDPA-SCALE"), passed("SDPA-SCALE")) is Likeness.NONE

    def test_another_exception_is_another_mistake(self):
        """Would break if a view of transposed numbers got the name of a mistake that raises something else."""
        ours, other, same = (
            Result(clause("SDPA-SCALE"), Verdict.ERROR, Finding(Kind.RAISED, "", error=error, said=said))
            for error, said in (
                ("RuntimeError", "view size is not compatible"),
                ("IndexError", "x"),
                ("RuntimeError", "size of tensor"),
            )
        )
        assert likeness(ours, other) is Likeness.RED
        assert likeness(ours, same) is Likeness.RED
        assert likeness(ours, ours) >= Likeness.WORDS

    def test_counts_that_one_probability_does_not_give_are_not_near(self):
        ours = "id 8 was sampled 1831 times in 2000 draws, expected 1604"
        assert alike(ours, ours.replace("1831", "2000")) is not Likeness.SAME

    def test_nan_equals_nan_and_is_no_evidence(self):
        assert alike("x is nan, expected 1", "x is nan, expected 1") is Likeness.SAME

    def test_computed_numbers_are_stronger_evidence_than_a_count(self):
        assert telling(failed("SDPA-SCALE"))
        assert telling(failed("SDPA-SCALE", "the divisor is 4, expected 2 (float64, relative tolerance 2e-08)"))
        assert not telling(failed("SDPA-SCALE", "output[0] is 0, expected 0.802224 (float64, exactly)"))
        assert not telling(failed("SDPA-SCALE", "it has 1112 trainable numbers, expected 1136"))
        assert not telling(failed("SDPA-SCALE", WORDS))

    @pytest.mark.parametrize(("where", "like"), [("temperature 0.5", Likeness.SAME), ("temperature 1.0", Likeness.RED)])
    def test_logits_as_if_multiplied_are_alike_at_the_same_temperature_alone(self, where, like):
        """Would break if what is drawn wrongly at temperature 1 were said to divide by the temperature twice."""
        notes = ("as if:    logits were multiplied by about 1.9 before their softmax",)
        at_half = Finding(Kind.UNTRUE, "ids: id 8 was sampled 1853 times", notes=notes, sampled=True)
        at_half = replace(at_half, setting=Setting.of("temperature 0.5"))
        one = Result(clause("GEN-TEMP"), Verdict.FAIL, replace(at_half, setting=Setting.of(where)))
        assert likeness(one, replace(one, finding=at_half)) is like

    @pytest.mark.parametrize(
        ("changes", "like"),
        [
            ({}, Likeness.EXACT), ({"sampled": True}, Likeness.SAME), ({"own_draws": True}, Likeness.COUNTS),
            ({"got": 1.0}, Likeness.SAME), ({"kind": Kind.UNTRUE}, Likeness.SAME),
        ],
    )  # fmt: skip
    def test_how_alike_a_mistake_must_be_depends_on_what_the_numbers_tell(self, changes, like):
        """Would break if a search waited for a match that cannot come, or ended before one that can."""
        numbers = Finding(Kind.NUMBERS, "output", got=0.844638, want=0.802224, bad=1, of=9, worst=0.04, form="float64")
        one = Result(clause("SDPA-SCALE"), Verdict.FAIL, replace(numbers, **changes))
        assert at_most(one) is like

    def test_of_exceptions_words_are_not_expected_to_be_alike(self):
        raised = Finding(Kind.RAISED, "", error="IndexError", said="3")
        assert at_most(Result(clause("SDPA-SCALE"), Verdict.ERROR, raised)) is Likeness.KIND
        assert at_most(Result(clause("SDPA-SCALE"), Verdict.FAIL)) is Likeness.KIND

    @pytest.mark.parametrize(("factor", "like"), [("1.8", Likeness.SAME), ("2.9", Likeness.RED), ("", Likeness.RED)])
    def test_logits_multiplied_by_another_number_are_another_mistake(self, factor, like):
        """Would break if a temperature that counts twice were named where the logits are halved."""
        notes = [f"as if:    logits were multiplied by about {number}".rstrip() for number in ("1.9", factor)]
        drawn = Finding(Kind.UNTRUE, "ids: id 8 was sampled 1853 times", sampled=True, setting=Setting.of("top 4"))
        one, other = (
            Result(clause("GEN-TEMP"), Verdict.FAIL, replace(drawn, label=label, notes=(note,)))
            for label, note in zip(("ids: id 8 was sampled 1853 times", "id 3 never came"), notes, strict=True)
        )
        assert likeness(one, other) is like


def suspected(*results: Result) -> list[str]:
    red = [result for result in results if result.verdict.red]
    return [suspect.defect.id for suspect in suspects(red, results, CANONICAL)]


class TestSuspects:
    def test_a_passing_clause_acquits_the_mistakes_known_to_break_it(self):
        assert "mask-one-ahead" in suspected(failed("MHA-CAUSAL"), failed("SA-CAUSAL-DEFAULT"))
        assert "mask-upper" not in suspected(failed("MHA-CAUSAL"), passed("MHA-CAUSAL-REACH"))

    def test_a_clause_about_another_component_does_not(self):
        guilty = "mask-diagonal-only"
        assert guilty in suspected(failed("MHA-CAUSAL-REACH"), passed("SA-CAUSAL-REACH"))
        assert guilty not in suspected(
            failed("SA-CAUSAL-DEFAULT"), passed("SA-CAUSAL-REACH"), passed("MHA-CAUSAL-REACH")
        )

    def test_the_mistake_that_explains_the_first_failure_comes_first(self):
        found = suspected(failed("MHA-CAUSAL"), failed("LM-CAUSAL"))
        assert found.index("mha-never-causal") < found.index("lm-noncausal")
        assert "sdpa-no-scale" not in found[: found.index("lm-noncausal")]

    @pytest.mark.parametrize("guilty", ["sdpa-no-scale", "sdpa-scale-dk"])
    def test_the_mistake_that_breaks_exactly_the_failing_clauses_comes_first(self, guilty, monkeypatch):
        both = {name: ["SDPA-SCALE", "SDPA-FORMULA"] for name in ("sdpa-no-scale", "sdpa-scale-dk")}
        measured = both | {guilty: ["SDPA-SCALE"]}
        monkeypatch.setattr("conformkit.conformance.diagnosis.suspects.kills", lambda: measured)
        assert suspected(failed("SDPA-SCALE"), passed("SDPA-FORMULA"))[0] == guilty

    def test_a_clause_that_was_blocked_at_measuring_is_evidence_too(self, monkeypatch):
        measured = {"stack-same-block": ["LM-PARAM-COUNT"]}
        monkeypatch.setattr("conformkit.conformance.diagnosis.suspects.kills", lambda: measured)
        assert "stack-same-block" in suspected(failed("BLOCK-STACK-DISTINCT"))

    def test_a_size_may_be_written_in_another_way(self):
        red = [failed("GQA-EXPAND")]
        fewer, all_heads = CANONICAL.but(kv_heads="max(1, num_heads // 3)"), CANONICAL
        assert "gqa-heads-tiled" in {s.defect.id for s in suspects(red, red, fewer)}
        assert "gqa-heads-tiled" not in {s.defect.id for s in suspects(red, red, all_heads)}

    def test_where_text_is_right_without_the_cache_its_mistakes_come_first(self):
        red = [failed("GEN-AUTOREGRESSIVE", "ids[0, 3] is 4, expected 7 (exactly)")]
        found = list(suspects(red, red, CANONICAL, cached=True))
        of_the_cache = {"gen-cached-mask-from-zero", "gen-cached-position-zero"}
        assert {s.defect.id for s in found[:2]} == of_the_cache
        assert not of_the_cache & {s.defect.id for s in found if s.plausible < found[0].plausible - 2}

    def test_what_could_not_be_judged_comes_last(self):
        found = suspected(failed("MHA-SHAPE"), passed("SDPA-SCALE"))
        assert found.index("mha-view-noncontig") < found.index("mha-softmax-heads")

    def test_parts_that_are_not_exported_are_suspected_of_what_the_whole_shows(self):
        # regression: a missing final norm of a stack was reported for the target's embedding, where it shows first
        absent = [Result(clause(name), Verdict.NOT_IMPLEMENTED) for name in ("DEC-FINAL-NORM", "ENC-FINAL-NORM")]
        assert "dec-no-final-norm" in suspected(failed("S2S-EMBED-TGT"), *absent)[:4]
        found = suspected(failed("S2S-EMBED-TGT"), passed("DEC-FINAL-NORM"))
        assert "dec-no-final-norm" not in found[:4]

    def test_a_measured_mistake_comes_before_a_supposed_one_of_a_part(self):
        absent = [Result(one, Verdict.NOT_IMPLEMENTED) for one in clauses().values() if one.id.startswith("SDPA-")]
        found = suspected(failed("MHA-SPLIT-POSITIONS"), *absent)
        assert found.index("mha-softmax-queries") < found.index("sdpa-softmax-queries")


class Witness:
    """Replies for references with defects, without running any: one message, or one for each clause."""

    def __init__(self, answers: dict[tuple[str, ...], str | dict[str, str]]) -> None:
        self.answers, self.asked, self.bound = answers, [], []

    @contextmanager
    def __call__(self, chosen, components) -> Iterator[Witness]:
        names = tuple(defect.id for defect in chosen)
        self.asked.append(names)
        self.bound.append(components)
        if names not in self.answers:
            raise PatchError(f"{names} do not go together")
        answer = Witness({})
        answer.message = self.answers[names]
        yield answer

    def result(self, name: str) -> Result:
        message = self.message if isinstance(self.message, str) else self.message.get(name, "")
        return failed(name, message) if message else passed(name)


@pytest.fixture
def three(monkeypatch):
    """Three equally plausible suspects, each known to break the clauses that fail here."""
    found = [defects()[name] for name in ("sdpa-no-scale", "sdpa-scale-capped", "sdpa-scale-T")]
    broken = ("SDPA-SCALE", "SDPA-FORMULA", "MHA-OUT-PROJ")
    chosen = [Suspect(replace(defect, clauses=broken), 3.0) for defect in found]
    monkeypatch.setattr("conformkit.conformance.diagnosis.diagnose.suspects", lambda *_, **__: iter(chosen))
    return [suspect.defect.id for suspect in chosen]


def named(result: Result) -> list[tuple[str, Certainty]]:
    return [(like.defect, like.certainty) for like in result.looks_like]


class TestDiagnosis:
    def test_the_one_that_gives_the_same_numbers_is_named(self, three):
        answers = {(three[0],): NUMBERS.replace("0.844", "0.512"), (three[1],): NUMBERS, (three[2],): ""}
        (result,) = diagnose([failed("SDPA-SCALE")], CANONICAL, Witness(answers))
        assert named(result) == [(three[1], Certainty.EXACT)]

    def test_what_fails_in_the_same_words_with_other_numbers_is_not_named(self, three):
        """Would break if an unknown mistake got the name of the nearest known one: of eight such, none was right."""
        ours = "gradient[0, 1] is 1.42345, expected exactly 0; 4 of 25 entries"
        answers = {(three[0],): ours.replace("1.4", "2.4"), (three[1],): "", (three[2],): ""}
        (result,) = diagnose([failed("SDPA-SCALE", ours)], CANONICAL, Witness(answers))
        assert named(result) == []

    def test_where_much_is_allowed_no_error_is_near(self, three):
        """Would break if another ε in the last norm had no name: its clause allows a hundredth, and it is off by two
        thirds.
        """
        ours = "the logits[1, 0, 3] is -0.327785, expected -0.999531 (float64, relative tolerance 1e-02)"
        more = ours.replace("-0.327785", "-0.412").replace("0.999", "0.912")
        answers = {(three[0],): {"SDPA-SCALE": ours, "SDPA-FORMULA": more}, (three[1],): ""}
        red = [replace(failed(name, ours), distance=67.0) for name in ("SDPA-SCALE", "SDPA-FORMULA")]
        assert named(diagnose(red, CANONICAL, Witness(answers))[0])[0] == (three[0], Certainty.LIKELY)

    def test_an_error_near_the_tolerance_is_named_after_what_gives_these_numbers(self, three):
        answers = {(three[0],): NUMBERS, (three[1],): "", (three[2],): ""}
        (result,) = diagnose([replace(failed("SDPA-SCALE"), distance=40.0)], CANONICAL, Witness(answers))
        assert named(result) == [(three[0], Certainty.EXACT)]

    @pytest.mark.parametrize(
        ("answer", "bound"),
        [("", [{"MultiHeadAttention"}]), (NUMBERS, [{"MultiHeadAttention"}, {"TinyTransformerLM"}])],
        ids=["nothing alike", "alike"],
    )
    def test_a_suspect_is_compared_with_what_it_can_break(self, monkeypatch, answer, bound):
        """Would break if each suspect bound all that is red: positions have no heads, and the whole has, if alike."""
        suspect = Suspect(replace(defects()["mha-scale-dmodel"], clauses=("MHA-OUT-PROJ",), also=()), 3.0)
        monkeypatch.setattr("conformkit.conformance.diagnosis.diagnose.suspects", lambda *_, **__: iter([suspect]))
        asked = Witness({("mha-scale-dmodel",): answer})
        diagnose([failed(name) for name in ("MHA-OUT-PROJ", "PE-EXPONENT", "LM-CAUSAL")], CANONICAL, asked)
        assert asked.bound == bound

    def test_no_more_mistakes_are_tried_once_all_is_explained(self, three):
        asked = Witness(dict.fromkeys([(three[0],), (three[1],), (three[2],)], NUMBERS))
        diagnose([failed("SDPA-SCALE")], CANONICAL, asked)
        assert sorted(asked.asked) == sorted([(three[0],), (three[1],)])

    def test_more_are_tried_as_long_as_none_gives_the_numbers(self, monkeypatch):
        some = [replace(defects()["sdpa-no-scale"], id=f"the-{n}", clauses=("SDPA-SCALE",)) for n in range(20)]
        given = [Suspect(one, 3.0) for one in some]
        monkeypatch.setattr("conformkit.conformance.diagnosis.diagnose.suspects", lambda *_, **__: iter(given))
        answers = {(one.id,): NUMBERS.replace("0.844", "0.512") for one in some} | {("the-17",): NUMBERS}
        (result,) = diagnose([failed("SDPA-SCALE")], CANONICAL, Witness(answers))
        assert named(result) == [("the-17", Certainty.EXACT)]

    def test_indistinguishable_mistakes_are_one_answer(self, three):
        answers = dict.fromkeys([(three[0],), (three[1],)], NUMBERS) | {(three[2],): ""}
        (result,) = diagnose([failed("SDPA-SCALE")], CANONICAL, Witness(answers))
        assert named(result) == [(three[0], Certainty.EXACT), (three[1], Certainty.EXACT)]

    def test_those_that_differ_elsewhere_are_rivals(self, three):
        others = ({"SDPA-SCALE": WORDS, "MHA-OUT-PROJ": f"{word} was accepted"} for word in ("one", "two"))
        answers = {(name,): answer for name, answer in zip(three, others, strict=False)}
        red = [failed("SDPA-SCALE", WORDS), failed("MHA-OUT-PROJ", "all was accepted")]
        first, _ = diagnose(red, CANONICAL, Witness(answers))
        assert {certainty for _, certainty in named(first)} == {Certainty.UNSURE}
        assert len(named(first)) == 2

    def test_of_more_than_two_guesses_two_are_given(self, three):
        """Would break if a student had to check three places for one red line, and none of them were right."""
        words = ({"SDPA-SCALE": WORDS, "MHA-OUT-PROJ": f"{word} was accepted"} for word in ("one", "two", "three"))
        answers = {(name,): answer for name, answer in zip(three, words, strict=True)}
        red = [failed("SDPA-SCALE", WORDS), failed("MHA-OUT-PROJ", "all was accepted")]
        first, _ = diagnose(red, CANONICAL, Witness(answers))
        assert [certainty for _, certainty in named(first)] == [Certainty.UNSURE] * 2

    @pytest.mark.parametrize(("other", "count"), [("SDPA-FORMULA", 0), ("MHA-OUT-PROJ", 2)], ids=["same", "another"])
    def test_a_guess_is_not_shown_beside_numbers_that_say_what_they_are(self, three, other, count):
        """Of guesses beside the right relation of the same component's numbers, most name another mistake."""
        words = ({"SDPA-SCALE": WORDS, "SDPA-OUT-SHAPE": f"{word} was accepted"} for word in ("one", "two"))
        answers = {(name,): answer for name, answer in zip(three, words, strict=False)}
        red = [failed("SDPA-SCALE", WORDS), failed("SDPA-OUT-SHAPE", "all was accepted")]
        made = Relation(How.MADE, names=("`q`",), change=Altered.ABSENT)
        numbers = failed(other, "output[0, 0] is 3.14159, expected 2.71828 (float64, exactly)")
        said = replace(numbers, finding=replace(numbers.finding, relation=made))
        first, *_ = diagnose([*red, said], CANONICAL, Witness(answers))
        assert len(named(first)) == count

    def test_the_same_words_without_numbers_prove_nothing(self, three):
        (result,) = diagnose([failed("SDPA-SCALE", WORDS)], CANONICAL, Witness({(three[0],): WORDS}))
        assert named(result) == [(three[0], Certainty.LIKELY)]

    def test_other_numbers_on_another_clause_make_it_less_sure(self, three):
        words = "output[0, 0] is {}, expected {} (float64, exactly)"
        others = [words.format("3.1416", "2.7183"), words.format("7.3891", "0.5772")]
        red = [failed("SDPA-SCALE"), failed("SDPA-FORMULA", others[0])]
        answers = {(three[0],): {"SDPA-SCALE": NUMBERS, "SDPA-FORMULA": others[1]}}
        assert named(diagnose(red, CANONICAL, Witness(answers))[0]) == [(three[0], Certainty.LIKELY)]

    @pytest.mark.parametrize(
        ("file", "certainty"), [("attention.py", Certainty.LIKELY), ("masks.py", Certainty.UNSURE)], ids=["one", "two"]
    )
    def test_without_numbers_only_one_mistake_with_two_ids_is_certain(self, file, certainty, monkeypatch):
        found = defects()["sdpa-no-scale"]
        again = replace(found, id="again", patches=tuple(replace(patch, file=file) for patch in found.patches))
        monkeypatch.setattr("conformkit.conformance.diagnosis.explaining.kills", dict)
        tried = iter([Suspect(found, 3.0), Suspect(again, 3.0)])
        monkeypatch.setattr("conformkit.conformance.diagnosis.diagnose.suspects", lambda *_, **__: tried)
        answers = dict.fromkeys([(found.id,), (again.id,)], WORDS)
        (result,) = diagnose([failed("SDPA-SCALE", WORDS)], CANONICAL, Witness(answers))
        assert named(result) == [(found.id, certainty), (again.id, certainty)]

    @pytest.mark.parametrize(
        ("about", "known"),
        [("TransformerBlock", True), ("FeedForward", False)],
        ids=["the-same-component", "another-one"],
    )
    def test_a_clause_about_all_shares_the_cause_that_is_known_to_break_it(self, monkeypatch, about, known):
        """Would break if `x += f(x)` had two red lines with two fixes, one of them for its input that changes."""
        found = defects()["block-residual-in-place"]
        tried = iter([Suspect(found, 3.0)])
        monkeypatch.setattr("conformkit.conformance.diagnosis.diagnose.suspects", lambda *_, **__: tried)
        red = [failed("BLOCK-GRAD-ALL", WORDS), failed("DET-NO-MUTATE", f"{about}: its input has changed")]
        first, second = diagnose(red, CANONICAL, Witness({(found.id,): WORDS}))
        assert named(first)[0] == (found.id, Certainty.LIKELY)
        assert second.looks_like == (first.looks_like if known else ())

    def test_nothing_is_named_where_nothing_fits(self, three):
        (result,) = diagnose([failed("SDPA-SCALE")], CANONICAL, Witness({(name,): "" for name in three}))
        assert result.looks_like == ()

    def test_one_that_leaves_right_what_is_wrong_beside_it_is_not_exact(self, three):
        """Would break if codes that are subtracted had, exactly, sines of the wrong sign: cosines are off as well."""
        red = [failed("SDPA-SCALE"), failed("SDPA-FORMULA", "output[0, 0] is 0.111111, expected 0.222222")]
        alone = {(three[0],): {"SDPA-SCALE": NUMBERS}, (three[1],): "", (three[2],): ""}
        first, second = diagnose(red, CANONICAL, Witness(alone))
        assert named(first) == [(three[0], Certainty.LIKELY)]
        assert named(second) == []

    def test_each_of_two_mistakes_is_named_for_what_it_explains(self, three):
        other = NUMBERS.replace("0.844", "0.111")
        answers = {(three[0],): {"SDPA-SCALE": NUMBERS}, (three[2],): {"MHA-OUT-PROJ": other}}
        red = [failed("SDPA-SCALE"), failed("MHA-OUT-PROJ", other)]
        assert [named(r)[0][0] for r in diagnose(red, CANONICAL, Witness(answers))] == [three[0], three[2]]

    def test_two_together_are_named_where_none_alone_fits(self, three):
        other = "output[0, 0] is 0.111111, expected 0.222222"
        answers = {
            (three[0],): {"SDPA-SCALE": NUMBERS}, (three[1],): {"SDPA-FORMULA": other},
            (three[0], three[1]): "x is 3.14159",
        }  # fmt: skip
        red = [failed("SDPA-SCALE"), failed("SDPA-FORMULA", other), failed("MHA-OUT-PROJ", "x is 3.14159")]
        third = diagnose(red, CANONICAL, Witness(answers))[2]
        assert {like.defect for like in third.looks_like} == {three[0], three[1]}
        assert all(like.together_with for like in third.looks_like)
        assert {like.certainty for like in third.looks_like} == {Certainty.LIKELY}

    def test_two_together_are_not_named_for_what_one_alone_explains(self, three):
        """Would break if a mask read the other way round were said to need positions that begin at 1 as well."""
        other = "output[0, 0] is 0.111111, expected 0.222222"
        alone = [{"SDPA-SCALE": NUMBERS}, {"SDPA-FORMULA": other}]
        answers = {(three[0],): alone[0], (three[1],): alone[1], (three[0], three[1]): alone[0] | alone[1]}
        red = [failed("SDPA-SCALE"), failed("SDPA-FORMULA", other), failed("MHA-OUT-PROJ", "x is 3.14159")]
        first, second, third = diagnose(red, CANONICAL, Witness(answers))
        assert named(first) == [(three[0], Certainty.EXACT)]
        assert named(second) == [(three[1], Certainty.EXACT)]
        assert third.looks_like == ()

    def test_failures_of_an_undeclared_choice_are_no_evidence_of_further_mistakes(self, three):
        choice = {"SDPA-SCALE": NUMBERS}
        otherwise = Witness({(): choice, (three[2],): choice | {"MHA-OUT-PROJ": WORDS}})
        red = [failed("SDPA-SCALE"), failed("MHA-OUT-PROJ", WORDS)]
        _, second = diagnose(red, CANONICAL, Witness({}), otherwise)
        assert [name for name, _ in named(second)] == [three[2]]

    def test_green_results_stay_as_they_are(self, three):
        asked = Witness({})
        assert diagnose([passed("SDPA-SCALE")], CANONICAL, asked) == [passed("SDPA-SCALE")]
        assert asked.asked == []
