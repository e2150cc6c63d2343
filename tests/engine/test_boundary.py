"""Whatever an implementation says or does costs a component or a clause; nothing of it ends a run."""

import pytest

from conformkit.conformance.diagnosis import choices
from conformkit.conformance.engine import implementation
from conformkit.conformance.engine.finding import LoadFailure
from conformkit.conformance.engine.request import RunRequest
from conformkit.conformance.runner import run

_ATTENTION = """import torch


def scaled_dot_product_attention(q, k, v, mask=None):
    scores = q @ k.transpose(-2, -1) / k.size(-1) ** 0.5
    return scores.softmax(-1) @ v
"""
_HEADS = """

class MultiHeadAttention(torch.nn.Module):
    def __init__(self, d_model, num_heads, dropout=0.0, causal=True):
        super().__init__()
        self.q = torch.nn.Linear(d_model, d_model)

    def forward(self, x):
        return self.q(x)
"""


def test_a_component_about_which_nothing_can_be_said_leaves_the_others(tmp_path, monkeypatch):
    # any exception over what an implementation says once ended the whole run, with exit code 5
    def stumbles(subject, *args, **options):
        if subject.name == "MultiHeadAttention":
            raise AssertionError("no shape that anybody foresaw")
        return probed(subject, *args, **options)

    probed = implementation.probe
    monkeypatch.setattr(implementation, "probe", stumbles)
    (tmp_path / "both.py").write_text(_ATTENTION + _HEADS)
    report = run(RunRequest(impl=str(tmp_path / "both.py"), only=("SDPA-SCALE", "MHA-SHAPE"), diagnose=False))
    assert {r.clause.id: r.verdict.value for r in report.results} == {"SDPA-SCALE": "pass", "MHA-SHAPE": "not run"}
    assert "cannot be interpreted" in report.unusable["MultiHeadAttention"].problem
    assert not report.conforms


def test_causes_that_cannot_be_looked_for_are_a_note_and_no_end(tmp_path, monkeypatch):
    def stumbles(*args, **options):
        raise RecursionError("deep")

    monkeypatch.setattr(choices, "searched", stumbles)
    (tmp_path / "wrong.py").write_text(_ATTENTION.replace(" / k.size(-1) ** 0.5", ""))
    report = run(RunRequest(impl=str(tmp_path / "wrong.py"), only=("SDPA-SCALE",)))
    assert [r.verdict.value for r in report.results] == ["fail"]
    assert "RecursionError" in report.notes[-1]


def test_time_that_is_up_while_it_is_loaded_is_told_as_that(tmp_path):
    (tmp_path / "late.py").write_text("import time\ntime.sleep(30)\n" + _ATTENTION)
    with pytest.raises(LoadFailure, match=r"took over 0\.|within 0\.5 s") as caught:
        run(RunRequest(impl=str(tmp_path / "late.py"), only=("SDPA-SCALE",), seconds=0.5))
    assert caught.value.late
