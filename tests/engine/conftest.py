"""A small NumPy implementation, which starts quickly, and clauses made for the current test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from conformkit.conformance.engine import judge as judge_module
from conformkit.conformance.engine.implementation import Implementation
from conformkit.conformance.engine.judge import Judge
from conformkit.conformance.engine.loading import opened
from conformkit.conformance.engine.request import RunRequest
from conformkit.spec.clauses import Clause, Level

ATTENTION = """
import numpy as np


def scaled_dot_product_attention(q, k, v, mask=None):
    scores = q @ np.swapaxes(k, -1, -2) / np.sqrt(q.shape[-1])
    if mask is not None:
        scores = np.where(mask, scores, -np.inf) if mask.dtype == bool else scores + mask
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True) @ v
"""


def make_clause(clause_id: str, **changes: Any) -> Clause:
    """Return a clause about attention; `changes` replace its fields."""
    values: dict[str, Any] = {
        "id": clause_id, "title": f"the title of {clause_id}", "normative": "it MUST hold.",
        "why": "because.", "fix": "mend it.",
        "level": Level.MUST, "evidence": ("property",), "profile": "core", "since": "1.0", "source": "kit",
        "component": "ScaledDotProductAttention", "document": "attention", "line": 1, "applies": {}, "needs": (),
    }  # fmt: skip
    return Clause(**{**values, **changes})


@pytest.fixture(scope="session")
def attention_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("implementation") / "attention_only.py"
    path.write_text(ATTENTION, encoding="utf-8")
    return path


@pytest.fixture(scope="session")
def implementation(attention_file: Path) -> Iterator[Implementation]:
    with opened(RunRequest(impl=str(attention_file))) as (found, _):
        yield found


@pytest.fixture
def judging(implementation: Implementation, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Judge]:
    """Return a function that creates a judge of the given clauses, each with its test."""

    def make(*pairs: tuple[Clause, Callable[..., None]]) -> Judge:
        known = {clause.id: clause for clause, _ in pairs}
        monkeypatch.setattr(judge_module, "find", known.__getitem__)
        return Judge(implementation, {clause.id: test for clause, test in pairs})

    return make
