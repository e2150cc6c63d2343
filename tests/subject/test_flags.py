"""Attention functions with torch's arguments: right ones pass in core and in paths, whatever their convention."""

import pytest

from conformkit.conformance.engine.request import RunRequest
from conformkit.conformance.engine.results import Verdict
from conformkit.conformance.runner import run

TORCH = """
from torch.nn import functional as F
def scaled_dot_product_attention(
    query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False
):
    return F.scaled_dot_product_attention(
        query, key, value, attn_mask, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa
    )
"""
OWN = """
import torch
from torch.nn import functional as F
def scaled_dot_product_attention(q, k, v, mask=None, causal=False, factor=None):
    if causal:
        if q.shape[-2] > k.shape[-2]:
            raise ValueError("more queries than keys")
        mask = torch.ones(q.shape[-2], k.shape[-2], dtype=torch.bool).tril(k.shape[-2] - q.shape[-2])
    return F.scaled_dot_product_attention(q, k, v, mask, scale=factor)
"""
TILED = "key, value = (part.repeat(1, query.shape[1] // part.shape[1], 1, 1) for part in (key, value))"
TABLE = "[components.ScaledDotProductAttention.paths]\n"
ALL = {f"PATH-ATTN-{name}" for name in ("CAUSAL", "ALIGNED", "SCALE", "GROUPS", "DROPOUT")}


@pytest.fixture
def judged(tmp_path):
    def judge(source, declared="", profile="paths", only=("PATH-ATTN",)):
        package = tmp_path / "mypkg"
        package.mkdir()
        (package / "__init__.py").write_text(source)
        (package / "conform.toml").write_text(declared)
        report = run(RunRequest(str(package), profile=profile, only=only, processes=1, diagnose=False))
        return {result.clause.id: result for result in report.results}, report.notes

    return judge


def test_a_causal_flag_is_off_unless_it_is_asked_for(judged):
    """Would break if core set the flag of a function that has one: right code would then hide keys unasked."""
    results, _ = judged(TORCH, profile="core", only=("MASK-NONE", "MASK-BOOL-POLARITY"))
    assert {result.verdict for result in results.values()} == {Verdict.PASS}


def test_torchs_own_function_is_right_and_its_alignment_is_told(judged):
    results, notes = judged(TORCH)
    assert {name for name, result in results.items() if result.verdict is Verdict.PASS} == ALL
    assert any("aligned with the first key" in note for note in notes)


@pytest.mark.parametrize(("alignment", "verdict"), [("first", Verdict.PASS), ("last", Verdict.FAIL)])
def test_a_declared_alignment_is_held_to(judged, alignment, verdict):
    results, _ = judged(TORCH, f'{TABLE}causal_alignment = "{alignment}"')
    assert results["PATH-ATTN-ALIGNED"].verdict is verdict


def test_arguments_under_other_names_are_judged_where_they_are_declared(judged):
    results, notes = judged(OWN, f'{TABLE}causal = "causal"\nscale = "factor"')
    judged_ones = {"PATH-ATTN-CAUSAL", "PATH-ATTN-ALIGNED", "PATH-ATTN-SCALE"}
    assert {name for name, result in results.items() if result.verdict is Verdict.PASS} == judged_ones
    assert results["PATH-ATTN-GROUPS"].verdict is Verdict.NOT_APPLICABLE
    assert any("aligned with the last key" in note for note in notes)


def test_one_familiar_name_alone_tells_nothing(judged):
    """Would break if `scale`, which may divide or be a switch, were judged without the rest of torch's signature."""
    source = OWN.replace("factor", "scale").replace("scale=scale", "scale=None if scale is None else 1 / scale")
    results, _ = judged(source)
    assert {result.verdict for result in results.values()} == {Verdict.NOT_APPLICABLE}


@pytest.mark.parametrize(
    ("right", "wrong", "clause"),
    [
        ("is_causal, scale=scale", "is_causal", "PATH-ATTN-SCALE"),
        ("attn_mask, dropout_p, is_causal", "attn_mask, dropout_p, False", "PATH-ATTN-CAUSAL"),
        ("    return F", "    dropout_p = dropout_p or 0.1\n    return F", "PATH-ATTN-CAUSAL"),
        (
            "    return F",
            f"    if enable_gqa: {TILED}\n    return F",
            "PATH-ATTN-GROUPS",
        ),
    ],
    ids=["scale", "flag", "rate", "groups"],
)
def test_an_argument_that_is_misread_is_red(judged, right, wrong, clause):
    assert right in TORCH
    results, _ = judged(TORCH.replace(right, wrong))
    assert results[clause].verdict is Verdict.FAIL
