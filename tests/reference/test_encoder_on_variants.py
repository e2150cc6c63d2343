"""Profiles encoder and vit on the reference in variants: no clause fails, and what is undeclared is named."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformkit.conformance.diagnosis.patching import write_reference
from conformkit.conformance.driver.client.head_start import HeadStart
from conformkit.conformance.driver.spawn.shared import LentFactory
from conformkit.conformance.engine.request import RunRequest
from conformkit.conformance.engine.results import Report, Verdict
from conformkit.conformance.runner import run
from conformkit.spec.variants import BASES, BERT, VIT, Variant

VARIANTS = {
    "encoder": {
        "pre": BERT.but(placement="pre", final_norm=True, embedding_norm=False),
        "roberta": BERT.but(segments=False, pooler=False, next_sentence_head=False, position_offset="pad_id + 1"),
        "no pooler": BERT.but(pooler=False),
        "untied": BERT.but(tied=False, head_transform=False, head_bias=False),
        "rotary and grouped": BERT.but(positions="rotary", kv_heads="1", norm="rmsnorm", gated=True, activation="silu"),
        "sinusoidal": BERT.but(positions="sinusoidal", embedding_scale=True, log_probabilities=True),
    },
    "vit": {
        "mean": VIT.but(pooling="mean"),
        "post": VIT.but(placement="post", final_norm=False, norm_eps=1e-6),
        "without biases": VIT.but(qkv_bias=False, output_bias=False, head_bias=False, norm_bias=False),
        "sinusoidal": VIT.but(positions="sinusoidal", log_probabilities=True),
    },
}
CASES = [(profile, name) for profile, variants in VARIANTS.items() for name in variants]


def judged(folder: Path, profile: str, warm: LentFactory, *only: str) -> Report:
    request = RunRequest(impl=str(folder), profile=profile, diagnose=False, only=only)
    return run(request, early=HeadStart(warm=warm))


@pytest.mark.full(guard="test_undeclared_choices_are_named")
@pytest.mark.parametrize(("profile", "name"), CASES)
def test_the_suite_finds_nothing_wrong_with_the_reference(
    profile: str, name: str, tmp_path: Path, warm: LentFactory
) -> None:
    variant = VARIANTS[profile][name]
    folder = write_reference(tmp_path / "reference_in_variant", variant=variant, base=BASES[profile])
    report = judged(folder, profile, warm)
    quiet = {Verdict.PASS, Verdict.NOT_APPLICABLE}
    assert [f"{r.clause.id}: {r.message or r.reason}" for r in report.results if r.verdict not in quiet] == []
    assert report.conforms


@pytest.mark.parametrize(
    ("profile", "variant", "only", "lines"),
    [
        ("encoder", BERT.but(activation="relu"), "BERT-FFN", ['activation = "relu"']),
        ("vit", VIT.but(pooling="mean"), "VIT-PARAM-COUNT", ['pooling = "mean"']),
    ],
    ids=["encoder", "vit"],
)
def test_undeclared_choices_are_named(
    profile: str, variant: Variant, only: str, lines: list[str], tmp_path: Path, warm: LentFactory
) -> None:
    """Would break if choices were compared with those of core, so that a plain BERT had undeclared ones."""
    folder = write_reference(tmp_path / "undeclared", variant=variant, base=BASES[profile])
    (folder / "conform.toml").unlink()
    report = judged(folder, profile, warm, only)
    assert not report.conforms
    assert [each.line for each in report.undeclared] == lines
