"""Common mistakes, planted in implementations very different from the reference, are named first."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from zlib import crc32

import pytest

from conformkit.conformance.defects import defects
from conformkit.conformance.defects.kills import kills
from conformkit.conformance.diagnosis.diagnose import diagnose
from conformkit.conformance.diagnosis.patching import write_reference
from conformkit.conformance.diagnosis.witness import witness
from conformkit.conformance.driver.spawn.shared import LentFactory
from conformkit.conformance.engine.judge import Judge
from conformkit.conformance.engine.loading import opened
from conformkit.conformance.engine.request import RunRequest
from conformkit.conformance.engine.results import Certainty, LooksLike
from conformkit.conformance.runner import run
from conformkit.conformance.suite import registry
from conformkit.spec.clauses import Level, clauses
from tests.shares import left_out
from tests.tiers import sampled

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Case:
    """An implementation, a mistake in it as (file, from, to), clauses to judge, and the correct defects."""

    base: str
    edit: tuple[str, str, str]
    clauses: tuple[str, ...]
    right: tuple[str, ...]
    sure: bool = True


CASES = {
    "a-loop-over-heads": Case(
        "tests/right/head_loop.py", ("", "/ math.sqrt(k.size(-1))", "/ k.size(-1)"), ("SDPA-SCALE",), ("sdpa-scale-dk",)
    ),
    "numpy": Case(
        "examples/numpy_only", ("attention.py", "heads.transpose(0, 2, 1, 3).reshape", "heads.reshape"),
        ("MHA-SPLIT-POSITIONS", "MHA-SPLIT-MERGE"), ("mha-merge-no-transpose",),
    ),
    "numbers-of-its-own-weights": Case(
        "tests/right/fused_kernel.py", ("", "is_causal=self.causal", "is_causal=False"),
        ("MHA-CAUSAL", "LM-CAUSAL"), ("mask-not-passed", "mha-never-causal"),
    ),
    "einsum": Case(
        "examples/single_file.py", ("", "d_k=None, d_v=None, causal=True", "d_k=None, d_v=None, causal=False"),
        ("SA-CAUSAL-DEFAULT", "SA-CAUSAL-OFF"), ("sa-not-causal-by-default",),
    ),
    "another-variant-within-limits": Case(
        "tests/right/nano_gpt", ("__init__.py", "math.sqrt(k.size(-1)))\n        att = att.masked_fill(self",
                                 "math.sqrt(C))\n        att = att.masked_fill(self"),
        ("MHA-SCALE-DHEAD",), ("mha-scale-dmodel",),
    ),
    "grouped-heads-and-root-mean-squares": Case(
        "tests/right/llama", ("__init__.py", "return hidden_states + self.mlp(", "return self.mlp("),
        ("BLOCK-RESIDUAL-FFN", "BLOCK-ZERO-IDENTITY"), ("block-no-residual-ffn",),
    ),
    "the-frameworks-words": Case(
        "tests/right/kv_cache.py", ("", "k.reshape(math.prod(k.shape[:-2])", "k.view(math.prod(k.shape[:-2])"),
        ("SDPA-NONCONTIG",), ("sdpa-view-of-keys", "sdpa-view-input"),
    ),
    "its-own-words": Case(
        "examples/handout", ("model.py", "self(idx[:, -self.block_size :])[:, -1, :]", "self(idx)[:, -1, :]"),
        ("GEN-CROP", "GEN-LENGTH"), ("gen-no-crop",),
    ),
    "one-of-three-lengths": Case(
        "examples/handout", ("model.py", "range(max_new_tokens)", "range(max_new_tokens - 1)"),
        ("GEN-LENGTH",), ("gen-off-by-one",),
    ),
    "its-own-draws": Case(
        "tests/right/head_loop.py", ("", "logits = logits / temperature", "logits = logits * temperature"),
        ("GEN-TEMP",), ("gen-temp-multiplied",),
    ),
    "other-parts-than-the-reference": Case(
        "tests/right/fused_kernel.py", ("", "v, attn_mask=mask)", "v, attn_mask=mask).squeeze(0)"),
        ("SDPA-LEADING", "SDPA-2D"), ("sdpa-batch-of-one-squeezed",),
    ),
}  # fmt: skip


def copied(base: Path, folder: Path) -> Path:
    target = folder / base.name
    return Path(shutil.copytree(base, target) if base.is_dir() else shutil.copy(base, target))


def changed(case: Case, folder: Path) -> Path:
    """Copy the implementation and plant the mistake."""
    target = copied(ROOT / case.base, folder)
    file, found, replaced = case.edit
    path = target / file if file else target
    text = path.read_text()
    assert text.count(found) == 1
    path.write_text(text.replace(found, replaced))
    return target


def named(case: Case, impl: Path, warm: LentFactory) -> list[LooksLike]:
    """Return the named mistake of the first failure that has one."""
    with opened(RunRequest(impl=str(impl)), warm) as (implementation, _):
        judge = Judge(implementation, registry.tests())
        results = [judge.result(clause) for clause in case.clauses]
        variant = implementation.config.variant_for("TinyTransformerLM")
        judged_by = partial(witness, variant=variant, warm=warm, like=implementation.bounds())
        return next((list(r.looks_like) for r in diagnose(results, variant, judged_by) if r.looks_like), [])


QUICK = [
    "a-loop-over-heads",
    "numpy",
    "grouped-heads-and-root-mean-squares",
    "its-own-words",
    "numbers-of-its-own-weights",
]


@pytest.mark.parametrize("name", sampled(CASES, always=QUICK, files=lambda name: [CASES[name].base]))
def test_the_mistake_is_named_first(name: str, warm: LentFactory, tmp_path: Path) -> None:
    case = CASES[name]
    found = named(case, changed(case, tmp_path), warm)
    assert [like.defect for like in found][:1] == [like.defect for like in found if like.defect in case.right][:1] != []
    assert case.sure == (found[0].certainty is not Certainty.UNSURE)


BINDING = sorted(
    name
    for name, defect in defects().items()
    if any(clauses()[c].level is Level.MUST and clauses()[c].profile == "core" for c in defect.clauses)
)
"""Known mistakes that keep a run from conforming; causes of warnings are not searched for."""


@pytest.mark.full(guard="test_an_inverted_mask_is_one_red_line_with_its_name_though_rows_end_in_nan")
@pytest.mark.parametrize("name", [name for name in BINDING if crc32(name.encode()) % 110 == 7 or name == "moe-by-rank"])
def test_a_run_on_the_reference_names_the_mistake_in_it(name: str, tmp_path: Path) -> None:
    defect = defects()[name]
    impl = write_reference(tmp_path / "witness", defect.patches, defect.variant)
    others = tuple(clause for clause in left_out(name, "core") if clause not in defect.clauses)
    report = run(RunRequest(impl=str(impl), without=others))
    twins = {other for other, red in kills().items() if red == kills()[name]}  # same clauses
    assert twins & {like.defect for result in report.failures() for like in result.looks_like}


def test_a_mistake_that_float32_alone_shows_is_named(warm: LentFactory, tmp_path: Path) -> None:
    defect = defects()["pe-upcast"]
    impl = write_reference(tmp_path / "witness", defect.patches, defect.variant)
    case = Case("", ("", "", ""), ("PE-DTYPE",), ("pe-upcast",))
    assert [like.defect for like in named(case, impl, warm)] == ["pe-upcast"]


INVERTED = """
import math
import torch


def scaled_dot_product_attention(q, k, v, mask=None):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
    if mask is not None:
        scores = scores.masked_fill(mask, -math.inf) if mask.dtype is torch.bool else scores + mask
    return torch.softmax(scores, -1) @ v
"""


def test_an_inverted_mask_is_one_red_line_with_its_name_though_rows_end_in_nan(tmp_path: Path) -> None:
    file = tmp_path / "inverted.py"
    file.write_text(INVERTED)
    failures = run(RunRequest(impl=str(file), only=("SDPA", "MASK"))).failures()
    binding = [result for result in failures if result.clause.level is Level.MUST]
    assert [result.clause.id for result in binding] == ["MASK-BOOL-POLARITY"]
    assert [like.defect for like in binding[0].looks_like] == ["mask-polarity"]
