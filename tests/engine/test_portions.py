"""What each worker judges when several judge side by side."""

import threading
from types import SimpleNamespace

import pytest

from conformkit.conformance.engine.judge import Verdicts
from conformkit.conformance.engine.portions import Portions
from conformkit.conformance.evidence.learning import Lesson
from conformkit.conformance.suite import registry
from conformkit.spec.clauses import clause, select
from conformkit.spec.copying import Task

HEADS = ["TRAIN-ENTROPY-FLOOR", "TRAIN-BEATS-UNIGRAM", "TRAIN-NEEDS-ORDER", "TRAIN-ENTROPY-REACH"]


def portions_of(*ids):
    verdicts = Verdicts()
    return Portions([clause(name) for name in ids], registry.tests("lm"), verdicts), verdicts


def test_what_one_lesson_teaches_is_judged_by_one_worker():
    """Would break if clauses were handed out one by one: each worker would train the same model again."""
    portions, _ = portions_of("TRAIN-MOVES-ALL", *HEADS, "TRAIN-RANDOM-FLOOR", "TRAIN-COPY-LM", "TRAIN-GEN-AGREES")
    assert portions.count == 3
    assert [c.id for c in portions][:2] == ["TRAIN-MOVES-ALL", "TRAIN-RANDOM-FLOOR"]


def test_each_test_that_looks_at_a_lesson_says_so():
    """Would break if a test of a trained model named no lesson, or another one: two workers would train it."""
    for name, test in registry.tests("lm").items() | registry.tests("seq2seq").items():
        words = {word: test.__globals__.get(word) for word in test.__code__.co_names}
        taught = [value for value in words.values() if isinstance(value, Lesson | Task)]
        if taught and not {"learned", "_check_learned"}.isdisjoint(words):
            assert [registry.lesson(test)] == [getattr(one, "name", _task(one)) for one in taught], name


def test_clauses_in_an_order_of_their_own_are_handed_out_one_by_one():
    """Would break if a run that ends at the first failure judged a document to its end before the next clause."""
    given = [clause(name) for name in ("FFN-SHAPE", "SDPA-SCALE", "FFN-ACT")]
    portions = Portions(given, registry.tests("core"), Verdicts(), in_order=True)
    first, second = iter(portions), iter(portions)
    assert [next(first), next(second), next(first)] == given


def _task(task):
    return "reverse" if getattr(task, "reverse", False) else "copy"


def test_a_lesson_waits_for_the_one_that_it_needs():
    """Would break if a second worker took two blocks while three heads are learned: it would learn these itself."""
    portions, verdicts = portions_of(*HEADS, "TRAIN-OWN-BLOCKS")
    first, second, taken = iter(portions), iter(portions), []
    assert next(first).id == HEADS[0]
    other = threading.Thread(target=lambda: taken.extend(one.id for one in second), daemon=True)
    other.start()
    for name in HEADS[1:]:
        assert next(first).id == name
        assert taken == []
    for name in HEADS:
        verdicts.get(name, lambda name=name: SimpleNamespace(clause=clause(name)))
    first.close()
    other.join(30)
    assert taken == ["TRAIN-OWN-BLOCKS"]


def test_whoever_waits_for_a_lesson_goes_on_when_the_run_is_stopped():
    """Would hang if a failure in one worker, or Ctrl-C, left the other waiting for a lesson that nobody gives."""
    portions, _ = portions_of(*HEADS, "TRAIN-OWN-BLOCKS")
    first, taken = iter(portions), []
    next(first)
    other = threading.Thread(target=lambda: taken.extend(portions), daemon=True)
    other.start()
    portions.stop()
    other.join(30)
    assert not other.is_alive()
    assert taken == []
    assert next(first, None) is None


def test_what_a_lost_worker_was_to_judge_holds_nobody_up():
    """Would hang if a worker that ends without results left the others waiting for them."""
    portions, _ = portions_of(*HEADS, "TRAIN-OWN-BLOCKS")
    first = iter(portions)
    next(first)
    first.close()
    assert [one.id for one in portions] == ["TRAIN-OWN-BLOCKS"]


@pytest.mark.parametrize("profile", ["core", "lm", "seq2seq"])
def test_every_clause_is_in_one_portion(profile):
    """Would break if a clause were lost, or judged twice, when portions are cut."""
    clauses = select((), profile)
    assert sorted(c.id for c in Portions(clauses, registry.tests(profile), Verdicts())) == sorted(c.id for c in clauses)


def test_the_longest_documents_are_begun_first():
    """Would break if one with clauses about every size, or component, were begun when the other worker is ending."""
    portions = Portions(select((), "core"), registry.tests("core"), Verdicts())
    documents = list(dict.fromkeys(one.document for one in portions))
    about_much = {one.document for one in select((), "core") if one.sizes or one.component == "all"}
    late = [name for name in documents[len(about_much) :] if name in about_much]
    assert late in ([], ["cost"])  # three clauses
    assert {"generation", "gradients", "devices"} <= set(documents[: len(about_much)])
