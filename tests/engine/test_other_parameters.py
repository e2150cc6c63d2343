"""What has other parameters than its definition fails the clause that counts them: the others find nothing."""

from __future__ import annotations

from pathlib import Path

from conformkit.conformance import check

CODE = """
from torch import nn

from conformkit.reference import CrossAttention as Right


class CrossAttention(nn.Module):
    def __init__(self, d_model, num_heads, dropout=0.0):
        super().__init__()
        self.inner = Right(d_model, num_heads, dropout)
        self.more = nn.Linear(d_model, d_model)

    def forward(self, query, key, value, mask=None):
        return self.more(self.inner(query, key, value, mask))
"""


def test_a_clause_on_dropout_waits_for_the_one_that_counts(tmp_path: Path) -> None:
    """Would break if a rate of dropout were called unused for a matrix that the definition does not have."""
    (tmp_path / "theirs.py").write_text(CODE, encoding="utf-8")
    only = ["XATTN-PARAM-COUNT", "XATTN-DROPOUT-TRAIN"]
    found = {r.clause.id: r for r in check(tmp_path / "theirs.py", profile="seq2seq", only=only).results}
    assert found["XATTN-PARAM-COUNT"].verdict.value == "fail"
    assert found["XATTN-DROPOUT-TRAIN"].blocked_by == "XATTN-PARAM-COUNT"
