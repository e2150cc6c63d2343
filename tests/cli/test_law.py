import json
import re
import subprocess
import sys

import pytest

from conformkit.fixtures import stored
from conformkit.spec.clauses import clauses
from conformkit.spec.errata import errata


def test_the_listing_groups_by_document_and_gives_level_id_and_title(conform):
    lines = conform("spec").stdout.splitlines()
    assert lines[0] == "attention · ScaledDotProductAttention (3)"
    assert lines[2] == "  MUST   SDPA-SCALE  scores are divided by the square root of the key width"


@pytest.mark.parametrize(
    ("word", "words"), [("sdpa-no-scael", "nearest: sdpa-no-scale"), ("zzzz", "known prefixes: ")], ids=["near", "far"]
)
def test_an_unknown_mistake_names_the_nearest(conform, word, words):
    result = conform("defects", word)
    assert result.exit_code == 2
    assert words in " ".join(re.sub("[│╭╮╰╯─]", " ", result.stderr).split())


def test_a_prefix_selects(conform):
    assert "SDPA" not in conform("spec", "MASK").stdout
    assert "MASK-NONE" in conform("spec", "mask").stdout


def test_json_has_every_field_of_every_clause(conform):
    found = json.loads(conform("spec", "--json", "SDPA-SCALE").stdout)
    assert found[0]["id"] == "SDPA-SCALE"
    assert found[0]["applies"] == {"gradients": "yes"}
    assert found[0]["needs"] == ["SDPA-SHAPE"]
    assert found[0]["fix"] == "divide by math.sqrt(k.shape[-1])."


@pytest.mark.parametrize("command", ["spec", "explain"])
def test_an_unknown_clause_suggests_the_nearest(conform, command):
    result = conform(command, "SDPA-SCAEL")
    assert result.exit_code == 2
    assert "nearest: SDPA-SCALE" in result.stderr
    assert result.stdout == ""


def test_an_explanation_has_every_part_of_the_clause(conform):
    text = conform("explain", "sdpa-scale").stdout
    for part in (
        "SDPA-SCALE · scores are divided", "normative: every score MUST", "why:       unscaled", "fix:       divide by",
        "level:     MUST", "evidence:  oracle, golden", "applies:   when gradients = yes", "needs:     SDPA-SHAPE",
        "source:    Vaswani et al. 2017, §3.2.1.",
    ):  # fmt: skip
        assert part in text


def test_an_explanation_names_no_source_that_its_reader_cannot_have(conform):
    text = " ".join(conform("explain", "SDPA-SCALE").stdout.split())
    assert "source: Vaswani et al. 2017, §3.2.1. test:" in text


def test_explaining_a_prefix_lists_its_clauses(conform):
    text = conform("explain", "SDPA").stdout
    assert "SDPA-SHAPE" in text
    assert "normative:" not in text


@pytest.mark.parametrize("command", [["spec"], ["explain", "SDPA-SCALE"]], ids=["spec", "explain"])
def test_forty_columns_are_enough(conform, monkeypatch, command):
    monkeypatch.setenv("COLUMNS", "40")
    assert max(map(len, conform(*command).stdout.splitlines())) <= 40


def joined(result):
    """The output as one line, so that no test depends on line breaks."""
    return " ".join(result.stdout.split())


def test_an_explanation_has_the_sentence_of_the_test(conform):
    text = joined(conform("explain", "SDPA-SCALE"))
    assert "test: scores are divided by the square root of the key width (test_attention.py)" in text
    assert "test:" not in conform("explain", "SDPA-SHAPE").stdout


def test_an_explanation_has_the_stored_values_and_what_mistakes_give(conform):
    text = joined(conform("explain", "SDPA-SCALE"))
    assert "G2 · the scaled scores" in text
    assert "given: q = [[1, 0], [0, 1], [1, 1]]; k = [[1, 0], [1, 1], [0, 1]]" in text
    assert "value: scores = [[0.7071068, 0.7071068, 0]" in text
    assert "from: By hand: 1/√2 = .707107" in text
    assert "exposes: sdpa-no-scale gives scores = [[1, 1, 0]" in text


def test_an_explanation_names_more_values_than_it_shows(conform):
    text = conform("explain", "SDPA-SCALE").stdout
    assert "2 more stored values: conform explain G33 G34" in text
    assert text.index("G25 ·") < text.index("G32 · what sdpa-no-scale gives"), "results of mistakes come last"


def test_an_explanation_has_errata_by_title_and_ruling(conform):
    point = errata()["ERR-26"]
    assert f"erratum: ERR-26, where a source says otherwise: {point.title} Here: {point.ruling}" in joined(
        conform("explain", "SDPA-SCALE")
    )


@pytest.mark.parametrize("name", ["ERR-07", "err-7", "ERR7"])
def test_a_whole_erratum_is_explained(conform, name):
    text, point = joined(conform("explain", name)), errata()["ERR-07"]
    assert text.startswith(f"ERR-07 · {point.title} subject: {point.subject} claim: {point.claim} why: {point.why}")
    assert "recomputed: no mask = [[0.802224, 0.598888]" in text
    assert text.endswith(f"ruling: {point.ruling} clauses: {', '.join(point.clauses)}")


def test_errata_are_listed(conform):
    lines = conform("explain", "ERR").stdout.splitlines()
    assert [line.partition(":")[0] for line in lines if line.startswith("ERR-")] == list(errata())


@pytest.mark.parametrize("name", ["G8", "g8"])
def test_a_number_shows_each_of_its_values(conform, name):
    text = joined(conform("explain", name))
    assert text.count("G8 · ") == 2
    assert "expected: [[2.660477, 3.660477], [3.339523, 4.339523]]" in text
    assert "printed: design document §13 has: weights of 0.5 everywhere" in text
    assert "serves: SDPA-GOLDEN-2X2" in text


def test_a_single_value_is_found_by_its_id(conform):
    assert joined(conform("explain", "SDPA-GOLDEN-2X2/pair-weights")).startswith("G8 · the weights of two orthogonal")


def test_a_measurement_says_that_it_is_one_and_how_far_others_may_be_off(conform):
    text = joined(conform("explain", "G230"))
    assert text.startswith("G230 · measured: learning A B A B …")
    assert "value: steps = [1, 24]; loss at step 100 = [0.008, 0.022] (± 100 %)" in text


def test_a_long_array_is_cut_and_its_file_is_named(conform):
    text = joined(conform("explain", "G102"))
    assert ", … (1 by 10 by 8) exposes:" in text
    assert "in full: fixtures/positional_encoding.json, PE-GOLDEN-D8/width-8" in text


@pytest.mark.parametrize(
    ("name", "nearest"), [("G999", "G9, G94, G93"), ("ERR-999", "ERR-99"), ("G8X", "G8, G89, G88 ")]
)
def test_an_unknown_erratum_or_value_suggests_the_nearest(conform, name, nearest):
    result = conform("explain", name)
    assert result.exit_code == 2
    assert f"known mistake {name}; nearest: {nearest}" in result.stderr


@pytest.fixture
def whole_law(monkeypatch):
    monkeypatch.undo()
    return [*clauses(), *errata(), *(item.entry["id"] for item in stored())]


@pytest.mark.parametrize("step", [30, pytest.param(1, marks=pytest.mark.full)], ids=["some", "all"])
def test_every_page_is_bounded_and_fits_forty_columns(conform, whole_law, monkeypatch, step):
    monkeypatch.setenv("COLUMNS", "40")
    lines = {name: conform("explain", name).stdout.splitlines() for name in whole_law[::step]}
    assert [name for name, page in lines.items() if max(map(len, page)) > 40] == []
    assert [name for name, page in lines.items() if len(page) > 400] == []
    assert [
        name for name in clauses().keys() & lines if not any(line.startswith("test:") for line in lines[name])
    ] == []


def test_explaining_imports_neither_torch_nor_numpy():
    code = "from conformkit.cli.app import app; app(['explain', 'BLOCK-GOLDEN', 'ERR-07', 'G8'], standalone_mode=False)"
    check = "import sys; assert not {'torch', 'numpy'} & set(sys.modules)"
    done = subprocess.run([sys.executable, "-c", f"{code}; {check}"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", ["sdpa-no-scale", "sdpa-scale-T"])
def test_a_known_mistake_is_explained_by_its_id(conform, name):
    result = conform("explain", name)
    assert result.exit_code == 0
    assert result.stdout.startswith(f"{name} ·")
    assert "caught by: " in result.stdout


@pytest.mark.parametrize("name", ["", ",", "../attention/sdpa-no-scale", "/etc/passwd"])
def test_what_names_nothing_is_refused(conform, name):
    assert conform("explain", name).exit_code == 2
