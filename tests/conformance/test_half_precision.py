"""The suite in half precision: right code conforms, mistakes are found, unjudged clauses are reported."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from conformkit.conformance.api.checking import check
from conformkit.conformance.assertions.checks import NotApplicable
from conformkit.conformance.assertions.formats import HALF
from conformkit.conformance.binding.config import Config
from conformkit.conformance.defects import defects
from conformkit.conformance.diagnosis.patching import write_reference
from conformkit.conformance.engine.results import Report, Verdict
from conformkit.conformance.evidence import copying, learning
from conformkit.spec.copying import COPY
from conformkit.spec.variants import CANONICAL
from tests.tiers import sampled

WRONG = {
    "sdpa-temperature": "SDPA-SCALE", "emb-grad-freq": "EMB-GRAD-ACCUM", "lm-future-embedding": "LM-CAUSAL",
    "ln-no-sqrt": "LN-SCALE-INV", "mask-fill-zero": "MASK-ZERO-WEIGHT",
}  # fmt: skip
"""Mistakes that a careless tolerance would let pass, and the clause that finds each."""


def judged(impl: str, form: str, *only: str) -> Report:
    return check(impl, dtype=form, only=only, diagnose=False)


@pytest.mark.full(guard="test_parameters_with_uninformative_names_are_distinguished")
@pytest.mark.parametrize("form", HALF)
def test_the_reference_conforms(form: str) -> None:
    report = judged("conformkit.reference", form)
    assert report.conforms, [(r.clause.id, r.message) for r in report.failures()]
    unjudged = {r.clause.id for r in report.results if form in r.reason}
    too_large = {"GRAD-FINITE", "NUM-NORM-ZERO-GRAD"} if form == "float16" else set()
    assert unjudged == {"GRAD-CHECK", "GRAD-DROPOUT", "GRAD-SIZES", *too_large}
    assert any(form in note for note in report.notes)


@pytest.mark.parametrize("name", sampled(WRONG, always=["mask-fill-zero"]))
def test_a_mistake_is_found(name: str, tmp_path: Path) -> None:
    package = write_reference(tmp_path / "wrong", defects()[name].patches, CANONICAL)
    report = judged(str(package), "bfloat16", WRONG[name])
    assert [r.verdict for r in report.results if r.clause.id == WRONG[name]] == [Verdict.FAIL]


def test_parameters_with_uninformative_names_are_distinguished(tmp_path: Path) -> None:
    package = write_reference(tmp_path / "renamed", (), CANONICAL)
    for file in package.glob("*.py"):
        text = file.read_text(encoding="utf-8")
        for old, new in {"self.q(": "self.a(", "self.k(": "self.q(", "self.a(": "self.k("}.items():
            text = text.replace(old, new)
        file.write_text(text, encoding="utf-8")
    report = judged(str(package), "bfloat16", "SA-ORACLE", "MHA-ORACLE")
    assert report.conforms, [(r.clause.id, r.message) for r in report.failures()]
    assert any("is used as" in note for note in report.notes)


def test_the_format_that_is_requested_replaces_the_declared_one() -> None:
    report = check("conformkit.reference", dtype="float32", config=Config(dtypes=("bfloat16",)), only=("DT-FLOAT32",))
    assert [r.verdict for r in report.results] == [Verdict.PASS]
    assert report.dtype == "float32"


@pytest.mark.parametrize(
    "teach", [lambda model: learning.pupil(model, {}, 0), lambda model: copying.pupil(model, COPY, 0)],
    ids=["language-model", "encoder-decoder"],
)  # fmt: skip
def test_no_model_is_trained_in_half_precision_alone(teach: Callable[[Any], object]) -> None:
    model = SimpleNamespace(
        requires=lambda _: None, offers=lambda _: False, half=True, precision="bfloat16", build=lambda **_: None
    )  # fmt: skip
    model.as_asked = model
    with pytest.raises(NotApplicable, match="lost in the rounding of bfloat16 weights; declare float32 as well"):
        teach(model)
