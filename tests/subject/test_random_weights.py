"""Random weights reach a component whose weights could not be bound, too."""

import numpy as np

from conformkit.conformance.assertions.draws import Draw
from conformkit.conformance.engine.loading import opened
from conformkit.conformance.engine.request import RunRequest

SOURCE = """
import torch


class FeedForward(torch.nn.Module):
    def __init__(self, d_model, d_ff, dropout=0.0):
        super().__init__()
        self.up, self.down = torch.nn.Linear(d_model, d_ff), torch.nn.Linear(d_ff, d_model)
        self.more = torch.nn.Linear(d_ff, 3)

    def forward(self, x):
        return self.down(torch.nn.functional.gelu(self.up(x)))
"""


def test_weights_that_are_not_bound_are_drawn_all_the_same(tmp_path):
    """Would break if weights were drawn by the binding alone: every clause about it would fail for its count."""
    (tmp_path / "mine.py").write_text(SOURCE)
    with opened(RunRequest(impl=str(tmp_path / "mine.py"))) as (found, _):
        subject = found.subject("FeedForward")
        assert subject.bound.rules is None
        instance = subject.build()
        before = instance.read_raw()
        after = instance.scatter(Draw(0, "noise")).read_raw()
    assert before.keys() == after.keys() == {f"{n}.{p}" for n in ("up", "down", "more") for p in ("weight", "bias")}
    assert not any(np.array_equal(before[name], after[name]) for name in before)
