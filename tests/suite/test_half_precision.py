"""What roundings explain in half precision is right, and no more: no false alarm, and mistakes that 4 % let through."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformkit.conformance.driver.spawn.shared import LentFactory
from conformkit.conformance.engine.judge import Judge
from conformkit.conformance.engine.loading import opened
from conformkit.conformance.engine.request import RunRequest
from conformkit.conformance.engine.results import Verdict
from conformkit.conformance.suite import registry
from tests.tiers import sampled

RIGHT = ["conformkit.reference", str(Path(__file__).parents[1] / "right" / "cut_masks.py")]
"""Of all others, tests/right/test_right.py tries the same."""
JUDGED = {Verdict.PASS, Verdict.NOT_APPLICABLE, Verdict.NOT_IMPLEMENTED}


@pytest.mark.parametrize("impl", sampled(RIGHT, lambda impl: Path(impl).stem, always=["cut_masks"], most=1))
def test_right_code_is_off_by_roundings_only(impl: str, warm: LentFactory) -> None:
    with opened(RunRequest(impl=impl), warm) as (implementation, _):
        for seed in range(5):
            result = Judge(implementation, registry.tests(), seed=seed).alone("NUM-HALF-ERROR")
            assert result.verdict in JUDGED, (seed, result)


def test_a_table_in_half_precision_is_no_rounding(warm: LentFactory) -> None:
    impl = Path(__file__).parents[1] / "right" / "log_softmax.py"
    with opened(RunRequest(impl=str(impl), only=("NUM-HALF-ERROR",)), warm) as (implementation, _):
        result = Judge(implementation, registry.tests()).alone("NUM-HALF-ERROR")
    assert result.verdict is Verdict.FAIL
    assert "PositionalEncoding" in result.message


@pytest.mark.full(guard="test_right_code_is_off_by_roundings_only")
def test_a_stack_of_narrow_norms_is_right_in_bfloat16(warm: LentFactory) -> None:
    """With 4 features a norm makes roundings larger than the tolerance that holds for others."""
    request = RunRequest(impl="conformkit.reference", profile="seq2seq", dtype="bfloat16")
    with opened(request, warm, components=("Decoder",)) as (implementation, _):
        result = Judge(implementation, registry.tests("seq2seq"), seed=0).alone("DEC-STACK-SIZES")
    assert result.verdict is Verdict.PASS, result


def test_gradients_at_sizes_are_not_compared_in_half_precision(warm: LentFactory) -> None:
    request = RunRequest(impl="conformkit.reference", profile="seq2seq", dtype="bfloat16")
    with opened(request, warm, components=("CrossAttention",)) as (implementation, _):
        result = Judge(implementation, registry.tests("seq2seq"), seed=0).alone("XATTN-GRAD-SIZES")
    assert result.verdict is Verdict.NOT_APPLICABLE, result


HARD = [
    ("cut_masks.py", "float16", 13, "SDPA-SIZES"),  # weights of few large scores
    ("gemma", "bfloat16", 9, "GEN-TOPP-KEEP-ONE"),  # a batch of other rows rounds otherwise
    ("grouped_qkv", "bfloat16", 0, "GEN-SAMPLE-SIZES"),  # ids that are equally probable there
    ("mixtral", "bfloat16", 2, "FFN-SIZES"),  # experts that are equally probable there
    ("mixtral", "bfloat16", 3, "MOE-CHOICE"),
    ("torch_layers", "bfloat16", 1, "GRAD-ORACLE"),  # ReLU bends between two roundings
    ("torch_layers", "bfloat16", 1, "GRAD-BATCH-MEAN"),
]


@pytest.mark.parametrize(
    "case", sampled(HARD, lambda case: f"{case[0]}-{case[3]}", always=["torch_layers-GRAD-ORACLE"], most=1)
)
def test_right_code_passes_in_half_precision(case: tuple[str, str, int, str], warm: LentFactory) -> None:
    name, form, seed, clause = case
    impl = Path(__file__).parents[1] / "right" / name
    with opened(RunRequest(impl=str(impl), dtype=form, only=(clause,)), warm) as (implementation, _):
        result = Judge(implementation, registry.tests(), seed=seed).alone(clause)
    assert result.verdict in JUDGED, result


@pytest.mark.full(guard="test_right_code_passes_in_half_precision")
def test_positions_in_the_model_s_own_format_are_wrong_from_257_on(warm: LentFactory) -> None:
    rope = Path(__file__).parents[1] / "right" / "rope32"
    with opened(RunRequest(impl=str(rope), dtype="bfloat16", only=("MHA-SIZES",)), warm) as (implementation, _):
        result = Judge(implementation, registry.tests(), seed=0).alone("MHA-SIZES")
    assert result.verdict is Verdict.FAIL, result
    assert "wrong from T = 2" in result.threshold
