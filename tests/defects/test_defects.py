"""The catalogue of known mistakes is consistent. tests/suite judges that each breaks the clauses it names."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from conformkit.conformance import defects as catalogue
from conformkit.conformance.defects import defects
from conformkit.conformance.defects.kills import kill_rate, kills
from conformkit.conformance.defects.twins import twins_of
from conformkit.conformance.diagnosis.patching import patched
from conformkit.spec.clauses import clauses


def test_reading_two_lines_of_each_file_finds_what_reading_all_of_it_does():
    """Would break if a multi-line list were overlooked, and a mistake no longer suspected."""
    law = list(clauses())
    told = {name: sorted({*defect.clauses, *defect.also}, key=law.index) for name, defect in defects().items()}
    assert {name: list(broken) for name, broken in kills().items()} == told
    assert list(kills()) == sorted(told)


def test_no_mistake_breaks_a_clause_besides_one_that_it_needs():
    found = {name: {(c, n) for c in red for n in clauses()[c].needs if n in red} for name, red in kills().items()}
    assert not {name: pairs for name, pairs in found.items() if pairs}


def test_no_clause_is_named_twice():
    twice = [name for name, d in defects().items() if len({*d.clauses, *d.also}) < len(d.clauses) + len(d.also)]
    assert not twice


def test_every_defect_names_clauses_of_the_law():
    unknown = {name: c for name, d in defects().items() for c in (*d.clauses, *d.also) if c not in clauses()}
    assert not unknown
    assert all(defect.clauses for defect in defects().values())


def test_most_defects_break_a_binding_clause():
    killed, total = kill_rate(kills())
    assert killed >= 0.9 * total


def test_titles_are_each_defects_own():
    titles = [(defect.title, defect.stem, defect.variant) for defect in defects().values()]
    assert len(titles) == len(set(titles))


def test_no_two_defects_of_a_profile_make_the_same_code():
    made: dict[object, list[str]] = {}
    originals = patched(())
    for name, defect in defects().items():
        changed = {file: text for file, text in patched(defect.patches, originals).items() if text != originals[file]}
        code = {file: "".join(re.sub(r"#.*", "", text).split()) for file, text in changed.items()}
        profiles = frozenset(clauses()[clause].profile for clause in defect.clauses)
        made.setdefault((tuple(sorted(code.items())), defect.variant, profiles), []).append(name)
    assert [names for names in made.values() if len(names) > 1] == []


WITHOUT_A_DEFECT = {
    "SDPA-DUP-KEYS": "whatever treats equal keys unlike breaks SDPA-KEY-PERM as well",
    "MHA-WEIGHTS-SHAPE": "the reference returns no weights",
    "MHA-IDENTICAL-HEADS": "what was tried breaks MHA-SCALE-DHEAD, which it needs",
    "GQA-DIVISIBLE": "the reference's constructors take no number of key/value heads",
    "PE-NONCONTIG": "the reference's table has the shape of its input: nothing is merged that strides could forbid",
    "EMB-PARAM-COUNT": "what was tried breaks LM-PARAM-COUNT, which it needs",
    "EMB-SAME-TOKEN": "what was tried breaks LM-BATCH-INDEP, which it needs",
    "LM-VOCAB-RELABEL": "what was tried breaks EMB-LOOKUP, which it needs",
    "GRAD-NO-EXTRA": "what was tried breaks the clauses of components that GRAD-ALL-PARAMS needs",
    "GRAD-EARLY": "what was tried breaks LM-GRAD-ALL, which GRAD-CHECK needs",
    "NUM-SOFTMAX-SHIFT": "what was tried breaks NUM-ALL-NEGATIVE, which it needs",
    "NUM-TINY": "what was tried breaks SDPA-ZERO-Q, which it needs",
    "NUM-F32-F64": "what was tried breaks an oracle in float32 first",
    "DET-FUNCTIONAL-DROPOUT": "what was tried breaks MHA-DROPOUT-EVAL, which DET-EVAL needs",
    "DT-INT-IDS": "logits of another format are taken for the precision that the model computes in",
    "COPY-REVERSE": "what was tried breaks COPY-TASK, which it needs",
}
"""Clauses that no known mistake names, and why."""

TWINS = {
    ("SDPA-GOLDEN-2X2", "SDPA-GOLDEN-TINY"): "worked examples that students know; two sources print two of them",
    ("FFN-BIAS", "FFN-PARAM-COUNT"): "a wrong number is that of biases, or of hidden units, which FFN-HIDDEN tells",
    ("PE-PRECISION", "PE-UNIQUE"): "rounded positions are both inexact and alike",
    (
        "PE-GOLDEN-D4",
        "PE-GOLDEN-D512",
        "PE-GOLDEN-D8",
    ): "stored tables of three widths, one of them a real model's",
    ("GRAD-BATCH-MEAN", "NUM-NAN-LOCAL"): "a maximum over the batch mixes its elements both ways",
}
"""Clauses named by exactly the same mistakes, and why both stay."""


def _named() -> dict[str, set[str]]:
    found: dict[str, set[str]] = {name: set() for name in clauses()}
    for name, defect in defects().items():
        for clause in defect.clauses:
            found[clause].add(name)
    return found


def test_every_clause_has_a_mistake_that_it_catches():
    assert {name for name, mistakes in _named().items() if not mistakes} == set(WITHOUT_A_DEFECT)


def test_no_two_clauses_catch_exactly_the_same_mistakes():
    by_mistakes: dict[frozenset[str], list[str]] = {}
    for name, mistakes in _named().items():
        by_mistakes.setdefault(frozenset(mistakes), []).append(name)
    assert {tuple(sorted(same)) for mistakes, same in by_mistakes.items() if mistakes and len(same) > 1} == set(TWINS)


@pytest.mark.parametrize(
    ("text", "said"),
    [('title = "x"\ncommon = "rare"', "common is 'rare', expected one of often"), ('title = "x"', "common is missing")],
    ids=["word", "key"],
)
def test_a_file_that_is_not_a_defect_is_reported_with_its_name_and_what_is_wanted(
    tmp_path: Path, text: str, said: str
) -> None:
    """Would break if the author of a mistake were told where the kit's code stopped instead of what to write."""
    (tmp_path / "mine.toml").write_text(text)
    with pytest.raises(ValueError, match=f"^defects/attention/mine.toml: {said}"):
        catalogue._read("attention", tmp_path / "mine.toml")


def test_twins_are_others_of_the_same_variant_that_name_the_same_clauses():
    for name, one in defects().items():
        for other in (defects()[twin] for twin in twins_of(name)):
            assert other.id != name
            assert (other.variant, set(other.clauses)) == (one.variant, set(one.clauses)), (name, other.id)


def test_of_twins_each_is_the_others():
    for name in defects():
        for twin in twins_of(name):
            assert {name, *twins_of(name)} == {twin, *twins_of(twin)}
