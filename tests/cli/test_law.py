import json

import pytest


def test_the_listing_groups_by_document_and_gives_level_id_and_title(conform):
    lines = conform("spec").stdout.splitlines()
    assert lines[0] == "attention · ScaledDotProductAttention (3)"
    assert lines[2] == "  MUST   SDPA-SCALE  scores are divided by the square root of the key width"


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
        "source:    handout §4.2",
    ):  # fmt: skip
        assert part in text


def test_explaining_a_prefix_lists_its_clauses(conform):
    text = conform("explain", "SDPA").stdout
    assert "SDPA-SHAPE" in text
    assert "normative:" not in text


@pytest.mark.parametrize("command", [["spec"], ["explain", "SDPA-SCALE"]], ids=["spec", "explain"])
def test_forty_columns_are_enough(conform, monkeypatch, command):
    monkeypatch.setenv("COLUMNS", "40")
    assert max(map(len, conform(*command).stdout.splitlines())) <= 40
