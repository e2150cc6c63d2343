"""What conform.toml says about unusual styles excuses no mistake: right packages, each with a mistake in it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from conformkit.conformance.driver.spawn.shared import LentFactory
from conformkit.conformance.engine.judge import Judge
from conformkit.conformance.engine.loading import opened
from conformkit.conformance.engine.request import RunRequest
from conformkit.conformance.engine.results import Verdict
from conformkit.conformance.suite.registry import tests as registered
from tests.tiers import sampled

RIGHT = Path(__file__).resolve().parents[1] / "right"
TWINS = {
    "required-mask-ignored": (
        "required_mask/model.py", "bias=attn_mask)", "bias=torch.zeros_like(attn_mask))", "BLOCK-ORACLE",
    ),
    "required-mask-turned": ("required_mask/model.py", "bias[None, None]", "bias.mT[None, None]", "MHA-CAUSAL"),
    "sampler-reads-the-first-position": ("flat_list/model.py", ")[:, -1].softmax", ")[:, 0].softmax", "GEN-LAST-POS"),
    "sampler-keeps-the-wrong-end": (
        "flat_list/model.py", "ids[:, -self.window :]", "ids[:, : self.window]", "GEN-CROP",
    ),
    "sampler-that-never-samples": (
        "flat_list/model.py", "torch.multinomial(chances, 1)", "chances.argmax(-1, keepdim=True)", "GEN-SAMPLES",
    ),
    "sampler-samples-twice": (
        "flat_list/model.py", ".softmax(-1)\n", ".softmax(-1).softmax(-1)\n", "GEN-TEMP",
    ),
    "flat-list-in-another-order": (
        "flat_list/model.py", "zip(pairs[::2], pairs[1::2])", "zip(pairs[::2], pairs[-1::-2])", "LM-ORACLE",
    ),
    "tables-exchanged": (
        "handed_tables/decoder.py", "x * cos + torch.cat([-far, near], -1) * sin",
        "x * sin + torch.cat([-far, near], -1) * cos", "MHA-ORACLE",
    ),
    "tables-not-used-for-keys": ("handed_tables/decoder.py", "rotate(k, cos, sin)", "k", "MHA-ORACLE"),
    "rows-of-places-exchanged": (
        "rows_alone/words.py", "list(self.places)[:t]", "list(self.places)[-t:]", "LM-ORACLE",
    ),
    "rows-of-words-exchanged": (
        "rows_alone/words.py", "torch.stack(list(self.words))", "torch.stack(list(self.words)).flip(0)", "LM-ORACLE",
    ),
    "one-sequence-sees-the-future": (
        "one_sequence/matrices.py", "device=X.device).tril()", "device=X.device).tril(1)", "MHA-CAUSAL",
    ),
    "one-sequence-turned": ("one_sequence/matrices.py", ".softmax(dim=1) @ v", ".softmax(dim=0) @ v", "SDPA-FORMULA"),
}  # fmt: skip
"""A file of a right package, what stands there, the mistake, and a clause that it breaks."""
QUICK = ["required-mask-turned", "sampler-reads-the-first-position", "tables-exchanged", "one-sequence-turned"]


@pytest.mark.parametrize("name", sampled(TWINS, always=QUICK))
def test_a_mistake_in_an_unusual_style_is_still_caught(name: str, tmp_path: Path, warm: LentFactory) -> None:
    file, text, mistake, clause = TWINS[name]
    right = RIGHT / Path(file).parts[0]
    wrong = tmp_path / right.name
    shutil.copytree(right, wrong, ignore=shutil.ignore_patterns("__pycache__"))
    source = (tmp_path / file).read_text(encoding="utf-8")
    assert source.count(text) == 1
    (tmp_path / file).write_text(source.replace(text, mistake), encoding="utf-8")
    assert _verdict(right, clause, warm) is Verdict.PASS
    assert _verdict(wrong, clause, warm).red


def _verdict(package: Path, clause: str, warm: LentFactory) -> Verdict:
    with opened(RunRequest(impl=str(package)), warm) as (implementation, _):
        judge = Judge(implementation, registered("core"), seed=0)
        result = judge.result(clause)
        while result.verdict is Verdict.BLOCKED:  # what blocks it is red
            result = judge.result(result.blocked_by)
        return result.verdict
