"""Code of profile core that refuses positions (T,) is called without them, where they have a default."""

from __future__ import annotations

import textwrap
from pathlib import Path

from conformkit.conformance import check

CODE = """
    import numpy as np


    class MultiHeadAttention:
        def __init__(self, d_model, num_heads, dropout=0.0):
            self.heads = num_heads
            self.wq, self.wk, self.wv, self.wo = (np.random.randn(d_model, d_model) for _ in range(4))

        def __call__(self, x, positions=None):
            batch, length, width = x.shape
            if positions is None:
                positions = np.broadcast_to(np.arange(length), (batch, length))
            if positions.shape != (batch, length):
                raise ValueError(f"the positions have shape {positions.shape}, expected {(batch, length)}")
            q, k, v = ((x @ w.T).reshape(batch, length, self.heads, -1).swapaxes(1, 2)
                       for w in (self.wq, self.wk, self.wv))
            scores = q @ k.swapaxes(2, 3) / np.sqrt(q.shape[-1])
            scores = np.where(positions[:, None, :, None] SEES positions[:, None, None, :], scores, -np.inf)
            weights = np.exp(scores - scores.max(-1, keepdims=True))
            weights /= weights.sum(-1, keepdims=True)
            return (weights @ v).swapaxes(1, 2).reshape(x.shape) @ self.wo.T
"""


def judged(folder: Path, sees: str):
    (folder / "theirs.py").write_text(textwrap.dedent(CODE).replace("SEES", sees), encoding="utf-8")
    return check(folder / "theirs.py", only=["MHA-SHAPE", "MHA-CAUSAL", "MHA-ORACLE"])


def test_attention_that_takes_positions_of_each_row_conforms(tmp_path: Path) -> None:
    """Would break if what nobody passes by the contract had to be taken in one shape."""
    report = judged(tmp_path, ">=")
    assert report.conforms, report.failures()


def test_positions_that_are_left_out_excuse_no_mistake(tmp_path: Path) -> None:
    """Would break if code without them were taken for right: this sees later positions."""
    assert not judged(tmp_path, "<=").conforms
