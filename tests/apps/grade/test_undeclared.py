"""Choices that a submission makes and does not declare."""

from pathlib import Path

import pytest

from conformkit.conformance.apps.grade.grade import GradeRequest, grade
from conformkit.conformance.apps.grade.policy_file import parse_policy
from conformkit.conformance.apps.grade.undeclared import declaring, told_choices, undeclared
from conformkit.conformance.binding.config import Config
from conformkit.conformance.engine.results import Report, Undeclared

PLACED = 'placement = "post"'
BIAS = Undeclared("MultiHeadAttention", "qkv_bias", False, True, "variant", "qkv_bias = true")
POST = Undeclared("TransformerBlock", "placement", "pre", "post", "components.TransformerBlock.variant", PLACED)
EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
NO_BIASES = "bias=False"
HEADS = """
seed = 3
isolation = "process"
groups = [{ name = "heads", points = 10, clauses = ["MHA-SHAPE", "MHA-PARAM-COUNT", "MHA-ORACLE"] }]
[allow]
"""


def report(*found):
    return Report("", "", "torch", results=[], undeclared=found)


@pytest.mark.parametrize(
    ("allow", "made"),
    [("", [BIAS]), ("variant = {}", []), ('variant = { placement = ["post"] }', [POST])],
    ids=["biases by default", "none", "what the policy lists"],
)
def test_what_the_policy_allows_counts_and_nothing_else(allow, made):
    """Would break if an undeclared choice that the assignment fixes were forgiven, or default biases were not."""
    assert undeclared(report(BIAS, POST), parse_policy(f"[allow]\n{allow}").allowed) == made


def test_a_choice_is_declared_where_its_line_says():
    config = declaring(Config(), [BIAS, POST])
    assert (config.variant_for("MultiHeadAttention").qkv_bias, config.variant) == (True, {"qkv_bias": True})
    assert config.variant_for("TransformerBlock").placement == "post"
    assert config.variant_for("EncoderLayer").placement == "pre"
    assert ["qkv_bias = true" in line and "[variant]" in line for line in told_choices([BIAS])] == [True]


@pytest.mark.full(guard="test_what_the_policy_allows_counts_and_nothing_else")
def test_default_biases_cost_nothing_and_are_told(submissions, tmp_path):
    """Would break if `nn.Linear` without bias=False cost points under a policy that allows biases."""
    right = (EXAMPLES / "handout" / "attention.py").read_text(encoding="utf-8")
    folder = submissions(anna__py=right.replace(NO_BIASES, "bias=True"))
    found = [
        grade(GradeRequest(folder, parse_policy(HEADS + allow), tmp_path / "out"), lambda _: None).grades[0]
        for allow in ("", "variant = {}")
    ]
    assert [each.points == 10 for each in found] == [True, False]
    told = [[note.partition("`")[2].partition("`")[0] for note in each.notes] for each in found]
    assert told[0] == ["qkv_bias = true", "output_bias = true"]
    assert "qkv_bias = true" not in told[1]
