"""Profile seq2seq on the reference in variants that concern it: no clause fails."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformkit.conformance.defects import Patch
from conformkit.conformance.diagnosis.patching import write_reference
from conformkit.conformance.diagnosis.undeclared import searched
from conformkit.conformance.driver.client.head_start import HeadStart
from conformkit.conformance.driver.spawn.shared import LentFactory
from conformkit.conformance.engine.loading import opened
from conformkit.conformance.engine.request import RunRequest
from conformkit.conformance.engine.results import Verdict
from conformkit.conformance.runner import run
from conformkit.spec.presets import PRESETS, preset_of
from conformkit.spec.variants import CANONICAL, FAMOUS

VARIANTS = {
    "rotary and grouped": CANONICAL.but(positions="rotary", kv_heads="1", norm="rmsnorm", gated=True),
    "one learned table of positions": CANONICAL.but(
        positions="learned", shared_positions=True, embedding_scale=True, embedding_norm=True, norm_bias=False
    ),
    "one table for all": CANONICAL.but(shared_embeddings=True, tied=True, embedding_scale=True, head_bias=False),
    "none, log-probabilities": CANONICAL.but(positions="none", output_projection=False, log_probabilities=True),
    "post, as vaswani": FAMOUS["vaswani"],
    "T5 1.0": PRESETS["t5"],
    "T5 1.1, a table a layer": PRESETS["t5_v1_1"].but(relative_shared=False, relative_buckets=8, relative_distance=20),
}


@pytest.mark.full(guard="test_exactly_the_undeclared_choices_are_named")
@pytest.mark.parametrize("name", VARIANTS)
def test_the_suite_finds_nothing_wrong_with_the_reference(name: str, tmp_path: Path, warm: LentFactory) -> None:
    folder = write_reference(tmp_path / "reference_in_variant", variant=VARIANTS[name])
    report = run(RunRequest(impl=str(folder), profile="seq2seq", diagnose=False), early=HeadStart(warm=warm))
    quiet = {Verdict.PASS, Verdict.NOT_APPLICABLE}
    assert [f"{r.clause.id}: {r.message or r.reason}" for r in report.results if r.verdict not in quiet] == []
    assert report.conforms


@pytest.mark.full(guard="test_exactly_the_undeclared_choices_are_named")
def test_an_undeclared_shared_table_of_positions_is_named(tmp_path: Path) -> None:
    folder = write_reference(tmp_path / "undeclared", variant=CANONICAL.but(positions="learned", shared_positions=True))
    (folder / "conform.toml").write_text('[variant]\npositions = "learned"\n')
    report = run(RunRequest(impl=str(folder), profile="seq2seq", only=("S2S-PARAM-COUNT",), diagnose=False))
    assert not report.conforms
    assert [(each.component, each.table, each.line) for each in report.undeclared] == [
        ("Transformer", "variant", "shared_positions = true")
    ]


@pytest.mark.full(guard="test_a_family_is_recognized_by_its_numbers")
def test_t5_is_recognized_in_an_encoder_decoder(tmp_path: Path, warm: LentFactory) -> None:
    """Would break if attention to the memory, which has no table, kept its scale, or one vocabulary were not tried."""
    folder = write_reference(tmp_path / "undeclared", variant=PRESETS["t5"])
    (folder / "conform.toml").write_text("")
    with opened(RunRequest(impl=str(folder), profile="seq2seq"), warm) as (implementation, _):
        found = searched(implementation).found("Transformer")
    assert found is not None
    assert preset_of(found) == ("t5", {})


def test_a_table_of_positions_in_float32_hides_no_epsilon(tmp_path: Path, warm: LentFactory) -> None:
    """Catches a model judged with the usual ε, which fails where its variance is small."""
    coarse = Patch("positional_encoding.py", "x + self.table", "x + (1 + 1e-7) * self.table")
    folder = write_reference(
        tmp_path / "undeclared", [coarse], CANONICAL.but(norm_eps=1e-6, activation="relu", embedding_scale=True)
    )
    others = ("EncoderLayer", "DecoderLayer", "Encoder", "Decoder")
    (folder / "conform.toml").write_text("\n".join(f"[components.{name}]\nskip = true" for name in others))
    with opened(RunRequest(impl=str(folder), profile="seq2seq"), warm) as (implementation, _):
        found = searched(implementation).found("Transformer")
    assert found is not None
    assert found.norm_eps == 1e-6
