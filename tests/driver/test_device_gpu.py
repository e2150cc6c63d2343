"""On a GPU: right code conforms there, code that makes its tensors elsewhere does not, and models converge."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformkit.conformance.binding.config import Config
from conformkit.conformance.results import Report, Verdict
from conformkit.conformance.run_request import RunRequest
from conformkit.conformance.runner import run

pytestmark = pytest.mark.gpu


def judged(impl: str, **options: object) -> Report:
    return run(RunRequest(impl=impl, device="cuda", **options))


@pytest.mark.parametrize("dtypes", [("float64", "float32"), ("float32",)], ids=["float64", "float32"])
def test_the_reference_conforms_there(dtypes: tuple[str, ...]) -> None:
    report = judged("conformkit.reference", config=Config(dtypes=dtypes))
    assert report.conforms, [(r.clause.id, r.message) for r in report.failures()]


@pytest.mark.parametrize("impl", ["examples/handout", "examples/single_file.py", "tests/right/nano_gpt"])
def test_right_implementations_conform_there(impl: str) -> None:
    report = judged(impl)
    assert report.conforms, [(r.clause.id, r.message) for r in report.failures()]


def test_a_mask_that_is_made_on_the_cpu_is_found(tmp_path: Path) -> None:
    file = tmp_path / "stubborn.py"
    file.write_text(
        "import torch\n"
        "def scaled_dot_product_attention(q, k, v, mask=None):\n"
        "    scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5\n"
        "    seen = torch.ones(scores.shape[-2:], dtype=torch.bool, device='cpu') if mask is None else mask\n"
        "    return torch.softmax(scores.masked_fill(~seen, -1e9), dim=-1) @ v\n"
    )
    report = judged(str(file), only=("SDPA-OUT-SHAPE",))
    assert [result.verdict for result in report.results] == [Verdict.ERROR]


def test_models_converge_there() -> None:
    report = judged("conformkit.reference", profile="lm", only=("TRAIN",))
    assert report.conforms, [(r.clause.id, r.message) for r in report.failures()]
