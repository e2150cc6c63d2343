"""Attention functions with torch's arguments."""

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
