"""A mistake in somebody's BERT is named by the reference's own numbers."""

from __future__ import annotations

from pathlib import Path

from conformkit.conformance.defects import defects
from conformkit.conformance.diagnosis.measuring import named_with
from conformkit.conformance.driver.client.head_start import HeadStart
from conformkit.conformance.driver.spawn.shared import LentFactory
from conformkit.conformance.engine.request import RunRequest
from conformkit.conformance.runner import run

PATHS = ("bert-residual-of-input", "bert-residual-before-norm", "bert-norm1-missing", "bert-no-residual-ffn")
RIGHT = Path(__file__).parents[1] / "right_encoder" / "torch_encoder" / "model.py"


def test_a_pooler_that_reads_the_mean_is_named(tmp_path: Path, warm: LentFactory) -> None:
    """Would break if the reference were judged in another variant than BERT's, whose numbers are others."""
    wrong = RIGHT.read_text(encoding="utf-8").replace("self.pooler(hidden[:, 0])", "self.pooler(hidden.mean(dim=1))")
    (tmp_path / "wrong_bert.py").write_text(wrong, encoding="utf-8")
    request = RunRequest(impl=str(tmp_path / "wrong_bert.py"), profile="encoder", only=("BERT-POOL",))
    report = run(request, early=HeadStart(warm=warm))
    (result,) = report.failures()
    assert [like.defect for like in result.looks_like] == ["bert-pooled-mean"]
    assert result.looks_like[0].certainty == "exact"


def test_paths_and_norms_that_go_wrong_are_told_apart(warm: LentFactory) -> None:
    """Would break if they were compared past sublayers that give 0: then a lost norm and a wrong path look alike."""
    said = {named_with(defects()[name], warm).failures for name in PATHS}
    assert len(said) == len(PATHS)
