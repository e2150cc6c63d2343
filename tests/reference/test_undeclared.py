"""An undeclared variant does not conform, and the report names the choice; a mistake is never named as one."""

from __future__ import annotations

import re
import shutil
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from conformkit.conformance.binding.config import parse_config
from conformkit.conformance.defects import Patch, defects
from conformkit.conformance.diagnosis.patching import write_reference
from conformkit.conformance.diagnosis.search_relative import BESIDE_A_TABLE
from conformkit.conformance.diagnosis.undeclared import searched
from conformkit.conformance.diagnosis.variant_trial import Trial
from conformkit.conformance.driver.errors import WorkerLost
from conformkit.conformance.driver.spawn.shared import LentFactory
from conformkit.conformance.engine.judge import Judge
from conformkit.conformance.engine.loading import opened
from conformkit.conformance.engine.request import RunRequest
from conformkit.conformance.engine.results import Undeclared
from conformkit.conformance.runner import run
from conformkit.conformance.suite import registry
from conformkit.spec.presets import PRESETS, preset_of
from conformkit.spec.presets import __file__ as PRESETS_FILE
from conformkit.spec.variants import CANONICAL, FREE
from tests.tiers import sampled

from .variants import every_variant

NO_POSITIONS = Patch("model.py", "        x = self.positions(x)\n", "")
UNSCALED = Patch("attention.py", "(q / math.sqrt(q.shape[-1]))", "q")
RELU = Patch("feed_forward.py", '"gelu": gelu,', '"gelu": relu,')
RIGHT = Path(__file__).parents[1] / "right"
full = partial(pytest.param, marks=pytest.mark.full)
NEAR = ["conformance/diagnosis/undeclared.py", "spec/variants.py", "spec/choices"]
OPEN_NUMBERS = {"rotary_low", "rotary_high", "rotary_magnitude", "relative_distance"}
"""Choices of which any number is possible, and only the usual one is tried."""
ENCODERS = {"segments", "pooler", "head_transform", "next_sentence_head", "pooling"}
"""Choices of profiles encoder and vit, which nothing of core shows."""
UNDECLARED = {
    name: variant for name, variant in every_variant().items()
    # a model without a pad_id has no such offset, and one with fewer than six layers no sixth
    if variant != CANONICAL and variant.position_offset != "pad_id + 1" and variant.window_layers != "5 of 6"
    and not variant.differences().keys() & (ENCODERS | OPEN_NUMBERS | {*BESIDE_A_TABLE})
}  # fmt: skip


def looked_at(folder: Path, warm: LentFactory, declaration: str = "") -> list[Undeclared]:
    (folder / "conform.toml").write_text(declaration)
    with opened(RunRequest(impl=str(folder)), warm) as (implementation, _):
        return searched(implementation).entries()


def lines(found: list[Undeclared]) -> list[str]:
    return [f"{each.component} [{each.table}] {each.line}" for each in found]


@pytest.mark.parametrize("name", sampled(UNDECLARED, always=[*list(UNDECLARED)[::10], "llama"], near=lambda _: NEAR))
def test_exactly_the_undeclared_choices_are_named(name: str, warm: LentFactory, tmp_path: Path) -> None:
    variant = UNDECLARED[name]
    found = looked_at(write_reference(tmp_path / "undeclared", variant=variant), warm)
    told = {choice: value for choice, value in variant.differences().items() if choice not in FREE}
    assert {each.choice: each.actual for each in found} == told
    assert {each.table for each in found} == ({"variant"} if told else set())
    text = "[variant]\n" + "\n".join(each.line for each in found)
    assert parse_config(text).variant_for("TinyTransformerLM") == CANONICAL.but(**told)


FAMILIES = {
    "gemma2": {"window": 3},
    "gemma3": {"window": 3, "window_layers": "even"},
    "gptj": {},
    "neox": {},
    "olmo2": {"rotary_base": 500.0},
    "phi": {"rotary_fraction": 0.5},
    "t5": {"shared_embeddings": False},
}
"""By name, numbers with which small sizes show a family's choices."""


@pytest.mark.parametrize("name", sampled(FAMILIES, always=["gemma3"], files=lambda _: [Path(PRESETS_FILE)]))
def test_a_family_is_recognized_by_its_numbers(name: str, warm: LentFactory, tmp_path: Path) -> None:
    """Would break if choices were tried one after the other only: a family is a dozen of them at once."""
    folder = write_reference(tmp_path / "family", variant=PRESETS[name].but(**FAMILIES[name]))
    (folder / "conform.toml").write_text("")
    with opened(RunRequest(impl=str(folder)), warm) as (implementation, _):
        found = searched(implementation).found("TinyTransformerLM")
    assert found is not None
    assert preset_of(found) == (name, FAMILIES[name])


@pytest.mark.parametrize(
    "name",
    sampled(
        ["annotated", "complex_rope", "deepseek_attention", "gemma", "gpt2_conv1d", "stacked_layers", "torch_layers"],
        always=["gemma", "torch_layers"],
        files=lambda name: [RIGHT / name],
    ),
)
def test_choices_are_named_whatever_the_parameters_are_called(name: str, warm: LentFactory, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(RIGHT / name, tmp_path / name))
    declared = (folder / "conform.toml").read_text()
    found = looked_at(folder, warm, re.sub(r"^\[variant\]\n([^\[\n].*\n|\n)*", "", declared, flags=re.MULTILINE))
    wanted = parse_config(declared).variant
    assert {each.choice: each.actual for each in found} == {c: v for c, v in wanted.items() if c not in FREE}


def test_what_conforms_has_nothing_undeclared(warm: LentFactory, tmp_path: Path) -> None:
    assert looked_at(write_reference(tmp_path / "canonical"), warm) == []


def test_a_declared_choice_that_was_not_made_is_named_too(warm: LentFactory, tmp_path: Path) -> None:
    found = looked_at(write_reference(tmp_path / "canonical"), warm, '[variant]\nplacement = "post"\n')
    assert lines(found) == ['TransformerBlock [variant] placement = "pre"']
    assert found[0].declared == "post"


@pytest.mark.parametrize(
    ("patches", "want"),
    [
        full((UNSCALED,), []),
        ((UNSCALED, RELU), ['FeedForward [variant] activation = "relu"']),
        full(
            (Patch("block.py", "x = x + self.feed_forward(self.norm2(x))", "x = self.feed_forward(self.norm2(x))"),), []
        ),
        full((Patch("norms.py", "wide - wide.mean(dim=-1, keepdim=True)", "wide - wide.mean()"),), []),
        full((NO_POSITIONS, Patch("block.py", "self.norm2(x))\n        else", "self.norm1(x))\n        else")), []),
    ],
    ids=["unscaled", "unscaled-and-relu", "no-residual", "norm-over-everything", "two-mistakes"],
)
def test_a_mistake_is_not_named_as_a_choice(
    patches: tuple[Patch, ...], want: list[str], warm: LentFactory, tmp_path: Path
) -> None:
    assert lines(looked_at(write_reference(tmp_path / "wrong", patches), warm)) == want


def test_a_choice_that_one_component_made_alone_is_declared_for_it_alone(warm: LentFactory, tmp_path: Path) -> None:
    found = looked_at(write_reference(tmp_path / "forgotten", (NO_POSITIONS,)), warm)
    assert lines(found) == ['TinyTransformerLM [components.TinyTransformerLM.variant] positions = "none"']


@pytest.mark.full(guard="test_a_choice_that_one_component_made_alone_is_declared_for_it_alone")
def test_a_component_may_have_a_separate_declared_variant(warm: LentFactory, tmp_path: Path) -> None:
    alone = Patch(
        "feed_forward.py", "dropout: float = 0.0, *, variant: Variant = CANONICAL",
        'dropout: float = 0.0, *, variant: Variant = CANONICAL.but(activation="relu")',
    )  # fmt: skip
    folder = write_reference(tmp_path / "mixed", (alone,))
    (named,) = looked_at(folder, warm)
    assert lines([named]) == ['FeedForward [components.FeedForward.variant] activation = "relu"']
    (folder / "conform.toml").write_text(f"[{named.table}]\n{named.line}\n")
    report = run(RunRequest(impl=str(folder), only=("FFN", "BLOCK", "LM")))
    assert report.conforms


def test_positions_without_a_component_are_named_by_the_model(warm: LentFactory, tmp_path: Path) -> None:
    patches = (
        Patch("__init__.py", "from conformkit.reference.positional_encoding import PositionalEncoding\n", ""),
        Patch("positional_encoding.py", "class PositionalEncoding(nn.Module)", "class Other(nn.Module)"),
    )
    folder = write_reference(tmp_path / "learned", patches, CANONICAL.but(positions="learned"))
    assert lines(looked_at(folder, warm)) == ['TinyTransformerLM [variant] positions = "learned"']


def test_the_report_names_it_and_stays_red(tmp_path: Path) -> None:
    folder = write_reference(tmp_path / "relu", variant=CANONICAL.but(activation="relu"))
    (folder / "conform.toml").unlink()
    report = run(RunRequest(impl=str(folder), only=("FFN",)))
    assert not report.conforms
    assert lines(report.undeclared) == ['FeedForward [variant] activation = "relu"']
    assert not run(RunRequest(impl="conformkit.reference", only=("FFN",))).undeclared


def test_a_trainable_table_of_sinusoids_is_a_mistake_and_no_choice(warm: LentFactory, tmp_path: Path) -> None:
    patches = defects()["pe-parameter"].patches
    assert looked_at(write_reference(tmp_path / "trainable", patches), warm) == []


def test_only_components_whose_clauses_fail_are_looked_at(warm: LentFactory, tmp_path: Path, monkeypatch: Any) -> None:
    asked = []
    of = Trial.of

    def noted(subject: Any, *arguments: Any, **sizes: Any) -> Trial:
        asked.append(subject.name)
        return of(subject, *arguments, **sizes)

    monkeypatch.setattr("conformkit.conformance.diagnosis.undeclared.Trial.of", noted)
    folder = write_reference(tmp_path / "relu", (UNSCALED, RELU))
    with opened(RunRequest(impl=str(folder)), warm) as (implementation, _):
        judge = Judge(implementation, registry.tests())
        found = searched(
            implementation, [judge.result(name) for name in ("SDPA-SCALE", "FFN-ACT", "MHA-GOLDEN")]
        ).entries()
    assert lines(found) == ['FeedForward [variant] activation = "relu"']
    assert set(asked) == {"FeedForward"}


def test_a_process_that_does_not_answer_is_asked_once(warm: LentFactory, tmp_path: Path, monkeypatch: Any) -> None:
    folder = write_reference(tmp_path / "lost")
    asked = []

    def lost(subject: Any, *_: Any, **__: Any) -> None:
        asked.append(subject.name)
        raise WorkerLost("timeout", "60 s")

    monkeypatch.setattr("conformkit.conformance.diagnosis.undeclared.Trial.of", lost)
    assert looked_at(folder, warm) == []
    assert asked == ["SelfAttention"]
