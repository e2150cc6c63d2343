"""No false alarm in profile paths, and what a call takes is found: in right models, and in some with one mistake."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from conformkit.conformance.driver.client.head_start import HeadStart
from conformkit.conformance.driver.spawn.shared import LentFactory
from conformkit.conformance.engine.request import RunRequest
from conformkit.conformance.engine.results import Report, Verdict
from conformkit.conformance.runner import run
from conformkit.spec.clauses import Level
from tests.right.false_alarms import alarms, right_ones

HERE = Path(__file__).parent
OTHERS = [Path(impl) for impl in right_ones("paths") if impl != "conformkit.reference"]
JUDGED = {
    "like_gpt2": {
        "PATH-PAD-LEFT",
        "PATH-PAD-UNEQUAL",
        "PATH-PAD-PROMPTS",
        "PATH-POSITIONS-ROWS",
        "PATH-CACHE-CHUNKS",
        "PATH-LOSS-ROW-ENDS",
        "PATH-EXPORTED-PADDED",
    },
    "like_nanogpt": {
        "PATH-COMPILED",
        "PATH-EXPORTED",
        "PATH-LOSS-SHIFT",
        "PATH-LOSS-LOGITS",
        "PATH-LOSS-IGNORE",
        "PATH-LOSS-PIECES",
        "PATH-KERNELS",
        "PATH-KERNELS-CAUSAL",
    },
    "like_llama": {
        "PATH-PAD-LEFT",
        "PATH-PAD-PROMPTS",
        "PATH-CACHE-CHUNKS",
        "PATH-CACHE-CROP",
        "PATH-CACHE-RESET",
        "PATH-CACHE-REORDER",
    },
}


def judged(impl: Path, warm: LentFactory, *only: str) -> Report:
    request = RunRequest(impl=str(impl), profile="paths", only=only, level=Level.SHOULD)
    return run(request, early=HeadStart(warm=warm))


@pytest.mark.parametrize("impl", OTHERS, ids=lambda impl: impl.stem)
def test_right_code_breaks_no_binding_clause(impl: Path, warm: LentFactory) -> None:
    once = ("PATH-COMPILED", "PATH-EXPORTED")  # they take as long as all others
    found = [
        f"{result.clause.id}: {result.message}"
        for seeds, without in (([0], "-"), ([3], once))
        for _, result in alarms(str(impl), seeds, "paths", without, warm=warm)
    ]
    assert not found, "\n".join(found)


@pytest.mark.parametrize("name", JUDGED)
def test_what_a_call_takes_is_found(name: str, warm: LentFactory) -> None:
    """Would break if a name, a form of masks or a way to make a cache were no longer understood: nothing is judged then."""
    report = judged(HERE / name, warm, *JUDGED[name])
    assert {result.clause.id for result in report.results if result.verdict is Verdict.PASS} >= JUDGED[name]


INSIDE = ("PATH-PAD-UNEQUAL", "PATH-POSITIONS-ROWS", "PATH-CACHE-CHUNKS", "PATH-LOSS-ROW-ENDS")
NAMES = ("past_key_values", "attention_mask", "position_ids", "labels", "use_cache", "output_attentions")


def test_names_inside_kwargs_are_judged(tmp_path: Path, warm: LentFactory) -> None:
    """Would break if what a call takes as `**kwargs` were taken for not there."""
    shutil.copytree(HERE / "like_gpt2", tmp_path / "inside")
    source = tmp_path / "inside" / "__init__.py"
    text = source.read_text(encoding="utf-8")
    before, after = text.split("        past_key_values=None,\n", 1)
    after = after.split("    ):\n        B, T = input_ids.shape\n", 1)[1]
    taken = "".join(f"        {name} = kwargs.get({name!r})\n" for name in NAMES)
    text = f"{before}        **kwargs,\n    ):\n{taken}        B, T = input_ids.shape\n{after}"
    passed = ", ".join(f"{name}={value}" for name, value in zip(NAMES, ("past", *NAMES[1:3]), strict=False))
    text = text.replace("self(step, past, attention_mask, position_ids, ", f"self(step, {passed}, ")
    source.write_text(text, encoding="utf-8")
    report = judged(tmp_path / "inside", warm, *INSIDE)
    assert {result.clause.id for result in report.results if result.verdict is Verdict.PASS} >= {*INSIDE}


def test_a_term_that_balances_experts_is_taken_off_the_loss(tmp_path: Path, warm: LentFactory) -> None:
    """Would break if what is added to the cross-entropy of mixtures of experts were taken for a wrong mean."""
    shutil.copytree(HERE / "like_nanogpt", tmp_path / "balanced")
    source = tmp_path / "balanced" / "__init__.py"
    text = source.read_text(encoding="utf-8")
    added = "ignore_index=-1) + logits.softmax(-1).mean((0, 1)).square().sum()"
    assert "ignore_index=-1)\n" in text
    source.write_text(text.replace("ignore_index=-1)\n", f"{added}\n"), encoding="utf-8")
    mean = ("PATH-LOSS-MEAN", "PATH-LOSS-IGNORE", "PATH-LOSS-PIECES")
    report = judged(tmp_path / "balanced", warm, *mean)
    assert {result.clause.id for result in report.results if result.verdict is Verdict.PASS} >= {*mean}
    assert any("that no target changes" in note for note in report.notes)


def test_weights_computed_in_float32_are_padded_in_float32(tmp_path: Path, warm: LentFactory) -> None:
    """Would break if the least number of float64, which is -inf in float32, made right code red for NaN."""
    shutil.copytree(HERE / "like_gpt2", tmp_path / "single")
    source = tmp_path / "single" / "__init__.py"
    text = source.read_text(encoding="utf-8")
    assert "F.softmax(scores, dim=-1)\n" in text
    single = "F.softmax(scores, dim=-1, dtype=torch.float32).to(scores.dtype)\n"
    source.write_text(text.replace("F.softmax(scores, dim=-1)\n", single), encoding="utf-8")
    left = ("PATH-PAD-LEFT", "PATH-PAD-LEFT-FINITE")
    report = judged(tmp_path / "single", warm, *left)
    assert {result.clause.id for result in report.results if result.verdict is Verdict.PASS} == {*left}


MISTAKES = {
    "a compiled model without a mask": (
        "like_nanogpt",
        "is_causal=True",
        "is_causal=not torch.compiler.is_compiling()",
        "PATH-COMPILED-CAUSAL",
        "pcomp-not-causal",
    ),
    "a kernel without a mask": (
        "like_nanogpt",
        "torch.ones(T, T, dtype=torch.bool).triu(1)",
        "torch.zeros(T, T, dtype=torch.bool)",
        "PATH-KERNELS-CAUSAL",
        "pkern-plain-not-causal",
    ),
    "a kernel without a scale": (
        "like_nanogpt",
        "k.transpose(-2, -1) * k.size(-1) ** -0.5",
        "k.transpose(-2, -1)",
        "PATH-KERNELS",
        "pmode-weights-unscaled",
    ),
    "targets shifted by both": (
        "like_gpt2",
        "loss = F.cross_entropy(logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten())",
        "loss = F.cross_entropy(logits[:, :-2].flatten(0, 1), labels[:, 2:].flatten())",
        "PATH-LOSS-SHIFT",
        "ploss-shifted-twice",
    ),
    "a mean of means": (
        "like_nanogpt",
        "F.cross_entropy(logits.view(-1, logits.size(-1)), targets.view(-1), ignore_index=-1)",
        "sum(F.cross_entropy(z, y, ignore_index=-1) for z, y in zip(logits, targets)) / len(targets)",
        "PATH-LOSS-PIECES",
        "ploss-mean-of-means",
    ),
    "one position for all rows": (
        "like_gpt2",
        "x = self.wte(input_ids) + self.wpe(position_ids)",
        "x = self.wte(input_ids) + self.wpe(position_ids[:1])",
        "PATH-POSITIONS-ROWS",
        "ppad-first-rows-positions",
    ),
    "a mask in place of causality": (
        "like_gpt2",
        "bias = bias.masked_fill((attention_mask == 0)",
        "bias = torch.zeros_like(bias).masked_fill((attention_mask == 0)",
        "PATH-PAD-CAUSAL",
        "ppad-not-causal",
    ),
    "chunks aligned with the first key": (
        "like_llama",
        "seen = torch.ones(T, done + T, dtype=torch.bool).tril(done)",
        "seen = torch.ones(T, done + T, dtype=torch.bool).tril(done if T == 1 else 0)",
        "PATH-CACHE-CHUNKS",
        "pcache-chunk-top-left",
    ),
    "a cache in which padding has positions": (
        "like_gpt2",
        "position_ids = (attention_mask.cumsum(-1) - 1).clamp(min=0)[:, -step.size(1) :]",
        "position_ids = (attention_mask.cumsum(-1) * 0 + torch.arange(attention_mask.size(1)))[:, -step.size(1) :]",
        "PATH-PAD-PROMPTS",
        "ppad-prompts-places-of-the-row",
    ),
    "the first new id read from padding": (
        "like_llama",
        "[torch.arange(B), ends + step - 1]",
        "[:, -1]",
        "PATH-PAD-PROMPTS",
        "ppad-prompts-last-place",
    ),
    "values that are not reordered": (
        "like_llama",
        "self.values = [v[rows] for v in self.values]",
        "self.values = list(self.values)",
        "PATH-CACHE-REORDER",
        "pcache-reorder-keys-only",
    ),
}


@pytest.mark.parametrize("case", MISTAKES)
def test_a_mistake_in_other_code_is_named(case: str, tmp_path: Path, warm: LentFactory) -> None:
    """Would break if the reference's arguments were needed to see a mistake, or to say which it is."""
    name, right, wrong, clause, mistake = MISTAKES[case]
    shutil.copytree(HERE / name, tmp_path / name)
    source = tmp_path / name / "__init__.py"
    text = source.read_text(encoding="utf-8")
    assert right in text
    source.write_text(text.replace(right, wrong), encoding="utf-8")
    report = judged(tmp_path / name, warm, clause)
    (result,) = [result for result in report.results if result.clause.id == clause]
    assert result.verdict is Verdict.FAIL
    assert mistake in [like.defect for like in result.looks_like]
