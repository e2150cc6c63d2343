"""Code of profile core that refuses a mask (T, T) gets one in the shape that it takes."""

from __future__ import annotations

import textwrap
from pathlib import Path

from conformkit.conformance import check
from conformkit.conformance.engine.results import Verdict

CODE = """
    import numpy as np


    class MultiHeadAttention:
        def __init__(self, d_model, num_heads, dropout=0.0):
            self.heads = num_heads
            self.wq, self.wk, self.wv, self.wo = (np.random.randn(d_model, d_model) for _ in range(4))

        def __call__(self, x, mask=None):
            batch, length, width = x.shape
            q, k, v = ((x @ w.T).reshape(batch, length, self.heads, -1).swapaxes(1, 2)
                       for w in (self.wq, self.wk, self.wv))
            scores = q @ k.swapaxes(2, 3) / np.sqrt(q.shape[-1])
            if mask is not None:
                if mask.shape != (batch, length, length):
                    raise ValueError(f"the mask has shape {mask.shape}, expected {(batch, length, length)}")
                scores = np.where(MASK, scores, -np.inf)
            weights = np.exp(scores - scores.max(-1, keepdims=True))
            weights /= weights.sum(-1, keepdims=True)
            return (weights @ v).swapaxes(1, 2).reshape(x.shape) @ self.wo.T
"""


def judged(folder: Path, mask: str):
    (folder / "theirs.py").write_text(textwrap.dedent(CODE).replace("MASK", mask), encoding="utf-8")
    return check(folder / "theirs.py", only=["MHA-SHAPE", "MHA-CAUSAL", "MHA-ORACLE"])


def test_attention_that_takes_a_mask_for_each_sequence_conforms(tmp_path: Path) -> None:
    """Would break if code for masks (B, T, T) only were wrong for what it says itself."""
    report = judged(tmp_path, "mask[:, None]")
    assert report.conforms, report.failures()
    assert any("refuses a mask (T, T), and gets one of shape B T T" in note for note in report.notes)


def test_another_shape_excuses_no_mistake(tmp_path: Path) -> None:
    """Would break if whatever is accepted were taken for right: this hides the earlier positions."""
    report = judged(tmp_path, "mask[:, None].swapaxes(2, 3)")
    assert {r.clause.id: r.verdict for r in report.results}["MHA-SHAPE"] is Verdict.PASS
    assert "MHA-ORACLE" in {r.clause.id for r in report.results if r.verdict.red or r.blocked_by}
    assert not report.conforms
