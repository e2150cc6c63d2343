"""On a GPU: right code conforms there in each format and converges, code with tensors elsewhere does not."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformkit.conformance.engine.request import RunRequest
from conformkit.conformance.engine.results import Report, Verdict
from conformkit.conformance.runner import run
from tests.gpus import on_each_gpu

pytestmark = [pytest.mark.gpu, on_each_gpu]
NARROW = ("float32", "bfloat16", "float16")


def judged(impl: str, device: str, **options: object) -> Report:
    return run(RunRequest(impl=impl, device=device, **options))


def broken(report: Report) -> list[tuple[str, str]]:
    return [(r.clause.id, r.message) for r in report.failures() if report.breaks(r)]


@pytest.mark.parametrize("dtype", ["", *NARROW], ids=["declared", *NARROW])
def test_the_reference_conforms_there(device: str, dtype: str) -> None:
    report = judged("conformkit.reference", device, dtype=dtype)
    assert report.complete
    assert report.device == device
    assert not broken(report)


@pytest.mark.parametrize("dtype", NARROW)
def test_the_reference_conforms_to_lm_there(device: str, dtype: str) -> None:
    """Models are trained in float32 until they converge; half precision alone is too coarse, and reported as such."""
    report = judged("conformkit.reference", device, profile="lm", dtype=dtype)
    assert not broken(report)
    trained = {r.verdict for r in report.results if r.clause.prefix == "TRAIN"}
    assert (Verdict.PASS in trained) == (dtype == "float32")


@pytest.mark.parametrize("impl", ["examples/handout", "examples/single_file.py", "tests/right/nano_gpt"])
def test_right_implementations_conform_there(device: str, impl: str) -> None:
    assert not broken(judged(impl, device))


def test_a_mask_that_is_made_on_the_cpu_is_found(device: str, tmp_path: Path) -> None:
    file = tmp_path / "stubborn.py"
    file.write_text(
        "import torch\n"
        "def scaled_dot_product_attention(q, k, v, mask=None):\n"
        "    scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5\n"
        "    seen = torch.ones(scores.shape[-2:], dtype=torch.bool, device='cpu') if mask is None else mask\n"
        "    return torch.softmax(scores.masked_fill(~seen, -1e9), dim=-1) @ v\n"
    )
    report = judged(str(file), device, only=("SDPA-OUT-SHAPE",))
    assert [result.verdict for result in report.results] == [Verdict.ERROR]
