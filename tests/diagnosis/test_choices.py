"""What was chosen but not declared costs one red line; all else is judged as if it had been declared."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformkit.conformance.defects import Patch
from conformkit.conformance.diagnosis.choices import _one_each
from conformkit.conformance.diagnosis.patching import write_reference
from conformkit.conformance.driver.spawn.shared import LentFactory
from conformkit.conformance.engine.request import RunRequest
from conformkit.conformance.engine.results import Report, Result, Undeclared, Verdict
from conformkit.conformance.runner import run
from conformkit.spec.clauses import Level, clause, clauses
from conformkit.spec.variants import Variant

DROPOUT = "        self.dropout = nn.Dropout(dropout)\n"
BIASED = Variant(qkv_bias=True, output_bias=True)
RELU = Undeclared("FeedForward", "activation", "gelu", "relu", "variant", 'activation = "relu"')
POST = Undeclared("TransformerBlock", "placement", "pre", "post", "variant", 'placement = "post"')


def judged(folder: Path, warm: LentFactory, *only: str, toml: str = "", processes: int = 1) -> Report:
    (folder / "conform.toml").write_text(toml)
    return run(RunRequest(impl=str(folder), only=only, processes=processes), trusted=lambda: warm)


def red(report: Report) -> list[str]:
    return [result.clause.id for result in report.results if result.verdict.red]


def test_undeclared_biases_are_one_red_line_each_and_block_nothing(warm: LentFactory, tmp_path: Path) -> None:
    report = judged(write_reference(tmp_path / "biased", variant=BIASED), warm, "SA", "MHA", "BLOCK", processes=2)
    assert not report.conforms
    assert sorted(choice.line for choice in report.undeclared) == ["output_bias = true", "qkv_bias = true"]
    assert red(report) == ["SA-PARAM-COUNT", "MHA-PARAM-COUNT"]
    told = [" ".join(r.details) for r in report.results if r.verdict.red]
    assert ["`qkv_bias = true` under [variant]" in text for text in told] == [True, False]
    assert {result.verdict for result in report.results} == {Verdict.PASS, Verdict.FAIL, Verdict.NOT_APPLICABLE}


def test_keys_without_a_bias_beside_biases_are_found(warm: LentFactory, tmp_path: Path) -> None:
    """Would break if Whisper's attention, right as it is, were told that its parameters are wrong."""
    folder = write_reference(tmp_path / "whisper", variant=BIASED.but(key_bias=False))
    report = judged(folder, warm, "MHA", toml="[variant]\nqkv_bias = true\noutput_bias = true\n")
    assert [choice.line for choice in report.undeclared] == ["key_bias = false"]
    assert red(report) == ["MHA-PARAM-COUNT"]


@pytest.mark.parametrize(
    ("variant", "line"),
    [
        (Variant(sinusoid_frequencies="tensor2tensor"), 'sinusoid_frequencies = "tensor2tensor"'),
        (Variant(position_offset=2), "position_offset = 2"),
        (Variant(positions="learned", position_offset=2), "position_offset = 2"),
        (Variant(positions_scale=True), "positions_scale = true"),
    ],
    ids=["frequencies", "offset", "rows", "factor"],
)
def test_positions_as_fairseq_has_them_are_found(
    warm: LentFactory, tmp_path: Path, variant: Variant, line: str
) -> None:
    """Would break if right tables of fairseq, BART or OPT were told that they are wrong."""
    toml = f'[variant]\npositions = "{variant.positions}"\n'
    report = judged(write_reference(tmp_path / "fairseq", variant=variant), warm, "PE", "LPE", toml=toml)
    assert [choice.line for choice in report.undeclared] == [line]
    assert len(red(report)) == 1


SHARED = Variant(experts=5, experts_active=3, expert_weights="all", shared_expert=True)
ALL_FOUR = {"experts = 5", "experts_active = 3", 'expert_weights = "all"', "shared_expert = true"}


@pytest.mark.parametrize(
    ("variant", "declared", "lines"),
    [
        pytest.param(Variant(experts=4), "", {"experts = 4"}, id="experts"),
        pytest.param(Variant(gated=True), "gated = true\nexperts = 4", {"experts = 0"}, id="none"),
        pytest.param(SHARED, "", ALL_FOUR, id="shared"),
        pytest.param(Variant(experts=3, expert_weights="all"), "experts = 3", {'expert_weights = "all"'}, id="weights"),
    ],
)
def test_experts_are_found(warm: LentFactory, tmp_path: Path, variant: Variant, declared: str, lines: set[str]) -> None:
    """Would break if a right mixture of experts were told that its parameters are wrong."""
    folder = write_reference(tmp_path / "mixture", variant=variant)
    report = judged(folder, warm, "FFN-SIZES", toml=f"[variant]\n{declared}\n")
    assert {choice.line for choice in report.undeclared} == lines
    assert [result.verdict for result in report.results] == [Verdict.PASS]


@pytest.mark.full(guard="test_experts_are_found")
def test_a_block_of_experts_is_found_where_its_parts_are_not_exported(warm: LentFactory, tmp_path: Path) -> None:
    folder = write_reference(tmp_path / "block_of_experts", variant=Variant(experts=4, gated=True))
    hidden = ["MultiHeadAttention", "FeedForward", "SelfAttention", "ScaledDotProductAttention", "TinyTransformerLM"]
    toml = "".join(f"[components.{name}]\nskip = true\n" for name in hidden)
    report = judged(folder, warm, "BLOCK-ORACLE", toml=f"[variant]\ngated = true\n{toml}")
    assert [choice.line for choice in report.undeclared] == ["experts = 4"]


def test_counting_from_1_is_a_mistake_and_no_choice(warm: LentFactory, tmp_path: Path) -> None:
    shifted = Patch(
        "positional_encoding.py", "positions = torch.arange(length,", "positions = 1 + torch.arange(length,"
    )
    report = judged(write_reference(tmp_path / "from_one", (shifted,)), warm, "PE")
    assert not report.undeclared
    assert "PE-POS-ZERO" in red(report)


@pytest.mark.full(guard="test_undeclared_biases_are_one_red_line_each_and_block_nothing")
def test_a_mistake_beside_a_choice_is_still_found(warm: LentFactory, tmp_path: Path) -> None:
    """Would break if a choice excused what is wrong besides it."""
    doubled = Patch("feed_forward.py", "y: Tensor = self.down(", "y: Tensor = 2.0 * self.down(")
    folder = write_reference(tmp_path / "relu", (doubled,), Variant(qkv_bias=True))
    report = judged(folder, warm, "MHA", "FFN")
    assert [choice.line for choice in report.undeclared] == ["qkv_bias = true"]
    found = red(report)
    assert "MHA-PARAM-COUNT" in found
    assert any(name.startswith("FFN") for name in found)


@pytest.mark.full(guard="test_undeclared_biases_are_one_red_line_each_and_block_nothing")
def test_a_mistake_in_the_component_that_chose_is_judged_under_the_choice(warm: LentFactory, tmp_path: Path) -> None:
    long_rows = Patch(
        "feed_forward.py", "y: Tensor = self.down(", "y: Tensor = (1.0 + (x.shape[-2] > 90)) * self.down("
    )
    report = judged(write_reference(tmp_path / "relu", (long_rows,), Variant(activation="relu")), warm, "FFN")
    assert [choice.line for choice in report.undeclared] == ['activation = "relu"']
    assert red(report) == ["FFN-ACT", "FFN-SIZES"]


@pytest.mark.full(guard="test_undeclared_biases_are_one_red_line_each_and_block_nothing")
def test_biases_are_seen_in_the_parameters_where_the_numbers_are_wrong_besides(
    warm: LentFactory, tmp_path: Path
) -> None:
    """Would break if a missing scale beside default layers left all of attention and the model unjudged."""
    unscaled = Patch("attention.py", "(q / math.sqrt(q.shape[-1]))", "q")
    report = judged(write_reference(tmp_path / "biased", (unscaled,), BIASED), warm, "SDPA-SCALE", "MHA")
    assert sorted(choice.line for choice in report.undeclared) == ["output_bias = true", "qkv_bias = true"]
    assert {"SDPA-SCALE", "MHA-PARAM-COUNT"} <= {*red(report)}
    assert {r.blocked_by for r in report.results if r.blocked_by} <= {"SDPA-SCALE", "SDPA-FORMULA"}


@pytest.mark.full(guard="test_undeclared_biases_are_one_red_line_each_and_block_nothing")
def test_a_vector_that_is_called_otherwise_is_no_bias(warm: LentFactory, tmp_path: Path) -> None:
    """Would break if one vector too many were taken for a bias because it has the length of one."""
    made = "        self.shift = nn.Parameter(torch.zeros(d_model))\n"
    offset = Patch("multi_head_attention.py", DROPOUT, made + DROPOUT)
    unscaled = Patch("attention.py", "(q / math.sqrt(q.shape[-1]))", "q")
    report = judged(write_reference(tmp_path / "shifted", (unscaled, offset)), warm, "MHA")
    assert not report.undeclared
    assert "MHA-PARAM-COUNT" in red(report)


def test_a_clause_that_was_blocked_alone_does_not_make_it_conform(warm: LentFactory, tmp_path: Path) -> None:
    report = judged(write_reference(tmp_path / "biased", variant=BIASED), warm, "MHA-ORACLE")
    assert not red(report)
    assert [result.verdict for result in report.results] == [Verdict.PASS]
    assert report.undeclared
    assert not report.conforms


def test_a_component_that_the_choice_makes_needless_is_not_missing(warm: LentFactory, tmp_path: Path) -> None:
    patches = (
        Patch("__init__.py", "from conformkit.reference.positional_encoding import PositionalEncoding\n", ""),
        Patch("positional_encoding.py", "class PositionalEncoding(nn.Module)", "class Other(nn.Module)"),
    )
    folder = write_reference(tmp_path / "learned", patches, Variant(positions="learned"))
    report = judged(folder, warm, "LM-PARAM-COUNT", "LM-BUFFERS", "PE-SHAPE")
    assert [choice.line for choice in report.undeclared] == ['positions = "learned"']
    assert not report.missing
    verdicts = {result.clause.id: result.verdict for result in report.results}
    assert verdicts["PE-SHAPE"] is Verdict.NOT_APPLICABLE


def result(name: str, verdict: Verdict = Verdict.FAIL) -> Result:
    return Result(clause(name), verdict)


def test_the_red_line_of_a_choice_is_of_its_component_and_binding() -> None:
    should = next(name for name, found in clauses().items() if found.level is Level.SHOULD)
    assert list(_one_each([RELU], [result("MHA-SHAPE"), result(should), result("FFN-ACT")])) == ["FFN-ACT"]
    assert list(_one_each([RELU], [result(should), result("MHA-SHAPE")])) == ["MHA-SHAPE"]
    assert list(_one_each([RELU], [result(should)])) == [should]


def test_a_clause_about_something_else_is_no_line_of_a_choice() -> None:
    assert _one_each([RELU, POST], [result("FFN-ACT"), result("FFN-ORACLE")]) == {"FFN-ACT": (RELU,)}
    assert _one_each([RELU, POST], [result("LM-ORACLE")]) == {"LM-ORACLE": (RELU, POST)}
