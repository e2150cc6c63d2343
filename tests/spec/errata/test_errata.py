"""The form of the errata: what the parser accepts, its errors, and that each number is recomputed."""

from __future__ import annotations

import ast
import math
import re
from collections import Counter
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest

from conformkit.spec import errata as module
from conformkit.spec.clauses import UnknownClauseError, clauses
from conformkit.spec.errata import Erratum, ErratumSyntaxError, Value, errata, errata_of, parse

RANGES = {
    "Attention and masks": range(1, 45),
    "Positions, embeddings, tying": range(50, 72),
    "Feed-forward, norms, blocks": range(80, 101),
    "Model sizes, memory, cost": range(110, 123),
    "Loss, data, training": range(130, 162),
    "Tokenizer, generation, interfaces": range(170, 185),
}
"""The numbers of each subject's points; those between are free."""
IDS = [f"ERR-{number:02}" for numbers in RANGES.values() for number in numbers]
VAGUE = re.compile(r"\b(should|test that|correctly|works|properly)\b", re.IGNORECASE)

ONE = """\
# Errata

An introduction.

## Attention

### ERR-01
A fact.
Claim: something else,
  on two lines.
Why: because.
Recomputed: `a row = [1, -0.50]`, `word = "ValueError"`, `far = 4.9e8`
Ruling: this.
Clauses: SDPA-SCALE, SDPA-SHARP
"""


def changed(old: str, new: str) -> str:
    assert ONE.count(old) == 1
    return ONE.replace(old, new)


def offenders(holds) -> list[str]:
    return [point.id for point in errata().values() if not holds(point)]


def test_all_points_are_there_in_their_order():
    assert len(IDS) == 147
    assert list(errata()) == IDS


@pytest.mark.parametrize("subject", RANGES)
def test_points_stand_under_their_subject(subject: str):
    assert [int(p.id[4:]) for p in errata().values() if p.subject == subject] == list(RANGES[subject])


def test_titles_are_short_facts_and_unique():
    assert offenders(lambda p: p.title.endswith(".") and p.title[0].isupper() and not VAGUE.search(p.title)) == []
    assert [title for title, count in Counter(p.title.casefold() for p in errata().values()).items() if count > 1] == []


def test_every_clause_named_exists():
    assert {name for p in errata().values() for name in p.clauses} <= set(clauses())


def test_a_point_names_clauses_or_says_why_there_are_none():
    assert offenders(lambda p: bool(p.clauses) != bool(p.reason)) == []


def test_every_claim_says_where_it_stands():
    sources = re.compile(r"handout|[Dd]esign document|Easy Transformers|Shakespeare report|capstone report")
    assert offenders(lambda p: sources.search(p.claim)) == []


def test_the_errata_of_a_clause_are_those_that_name_it():
    assert [p.id for p in errata_of("sdpa-golden-2x2")] == ["ERR-04", "ERR-137"]
    assert errata_of("SDPA-EMPTY") == ()
    with pytest.raises(UnknownClauseError, match="SDPA-SCALE"):
        errata_of("SDPA-SCALES")


def recomputing() -> Counter[str]:
    """The points that a test in this folder recomputes, by the number in its name."""
    found: Counter[str] = Counter()
    for path in Path(__file__).parent.glob("test_*_errata.py"):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef) and (match := re.match(r"test_err_(\d+)_", node.name)):
                found[f"ERR-{match[1]}"] += 1
    return found


def test_each_point_with_numbers_is_computed_again_once():
    assert recomputing() == Counter(p.id for p in errata().values() if p.recomputed)


def shown(text: str) -> Value:
    return parse(changed("[1, -0.50]", text))["ERR-01"].recomputed["a row"]


@pytest.mark.parametrize(
    ("text", "found"),
    [("0.67", 2 / 3), ("4.85e8", math.exp(20)), ("9.0e-44", 9.04e-44), ("7", 7), ("[[1, 2.0]]", np.array([[1, 2.04]])),
     ("NaN", math.nan), ('"IndexError"', "IndexError"), ("0.9899", np.float32(0.98994))],
    ids=["rounded", "large", "tiny", "whole", "rows", "nan", "word", "float32"],
)  # fmt: skip
def test_a_result_agrees_to_the_digits_printed(off, text: str, found: object):
    assert off(shown(text), found) == []


@pytest.mark.parametrize(
    ("text", "found"),
    [("0.66", 2 / 3), ("4.86e8", math.exp(20)), ("9.1e-44", 9e-44), ("7", 7.2), ("[[1, 2.0]]", np.array([[1, 2.06]])),
     ("NaN", 0.0), ("0", math.nan), ('"IndexError"', "ValueError"), ('"IndexError"', 1.0), ("1", "IndexError"),
     ("[1, 2]", [1, 2, 3]), ("[1]", np.array([])), ("1.0", math.inf)],
    ids=["last-digit", "large", "tiny", "whole", "rows", "not-nan", "nan", "word", "number-for-word",
         "word-for-number", "longer", "empty", "infinite"],
)  # fmt: skip
def test_a_result_that_is_off_is_named(off, text: str, found: object):
    assert len(off(shown(text), found)) == 1


def test_a_block_becomes_an_erratum():
    assert parse(ONE)["ERR-01"] == Erratum(
        id="ERR-01", title="A fact.", claim="something else, on two lines.", why="because.",
        recomputed={"a row": (Decimal(1), Decimal("-0.50")), "word": "ValueError", "far": Decimal("4.9e8")},
        ruling="this.", clauses=("SDPA-SCALE", "SDPA-SHARP"), reason="", subject="Attention", line=7,
    )  # fmt: skip


def test_digits_are_kept_as_printed():
    row = parse(ONE)["ERR-01"].recomputed["a row"]
    assert isinstance(row, tuple)
    assert [str(number) for number in row] == ["1", "-0.50"]


def test_numbers_may_be_left_out_and_clauses_declined():
    line = next(line for line in ONE.splitlines() if line.startswith("Recomputed"))
    bare = changed(line + "\n", "").replace("SDPA-SCALE, SDPA-SHARP", "none: training is outside core.")
    point = parse(bare)["ERR-01"]
    assert (dict(point.recomputed), point.clauses, point.reason) == ({}, (), "training is outside core")


@pytest.mark.parametrize(
    ("old", "new", "line", "problem"),
    [
        ("### ERR-01", "### ERR-ONE", 7, "begins with '### ERR-07'"),
        ("## Attention\n", "\n", 7, "before the first subject"),
        ("A fact.", "A " + 50 * "long " + "title.", 8, "at most 99 characters"),
        ("A fact.\n", "", 8, "a title of at most"),
        ("Why: because.\n", "", 7, "Why is missing"),
        ("Why: because.", "Why: because.\nWhy: again.", 12, "unexpected paragraph 'Why: again.'"),
        ("Why: because.", "Why: ", 11, "Why is empty"),
        ("Claim: something else,", "Because: something else,", 9, "unexpected paragraph"),
        ("Ruling: this.\nClauses: SDPA-SCALE, SDPA-SHARP", "Clauses: A-B\nRuling: this.", 7, "another order"),
        ("SDPA-SHARP", "sharp", 14, "'sharp' is no id"),
        ("SDPA-SHARP", "SDPA-SCALE", 14, "named twice"),
        ("SDPA-SCALE, SDPA-SHARP", "none", 14, "without one write 'none: reason'"),
        ("`word =", "`a row =", 12, "'a row' is given twice"),
        ("`word =", "words `word =", 12, "not '`a row"),
        ('"ValueError"', "ValueError", 12, "'word' is no number"),
        ('"ValueError"', "true", 12, "'word' is no number"),
        ("4.9e8", "[" + "1, " * 200 + "1]", 12, "at most 400"),
        ("`, `far = 4.9e8`", "`, far = 4.9e8", 12, "not '`a row"),
        ("SDPA-SCALE, SDPA-SHARP\n", "A-B\n" + ONE.partition("## Attention\n")[2], 16, "ERR-01 is defined twice"),
    ],
    ids=[
        "heading", "no-subject", "long-title", "no-title", "missing", "twice", "empty", "unknown-field", "order",
        "no-id", "clause-twice", "bare-none", "name-twice", "words-between", "bare-word", "truth-value", "too-long",
        "half-a-pair", "defined-twice",
    ],
)  # fmt: skip
def test_a_malformed_block_is_refused_with_its_line(old: str, new: str, line: int, problem: str):
    with pytest.raises(ErratumSyntaxError, match=re.escape(problem)) as caught:
        parse(changed(old, new))
    assert str(caught.value).startswith(f"errata.md, line {caught.value.line}: ")
    assert caught.value.line == line


def test_the_document_is_read_once():
    assert errata() is errata()
    assert module.errata.cache_info().currsize == 1
