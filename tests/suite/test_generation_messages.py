"""What a failure of generation says about its cause."""

from __future__ import annotations

from pathlib import Path

from conformkit.conformance import check

ONCE_MORE = """
import torch
from conformkit.reference import TinyTransformerLM as Right


class TinyTransformerLM(Right):
    @torch.no_grad()
    def generate(self, idx, max_new_tokens, temperature=1.0, top_k=None, top_p=None):
        logits = self(idx)[:, -1]
        for _ in range(max_new_tokens):
            idx = torch.cat([idx, logits.argmax(-1, keepdim=True)], 1)
            logits = self(idx)[:, -1]
        return idx
"""


def test_a_run_of_the_model_after_the_last_id_is_told_as_such(tmp_path: Path) -> None:
    path = tmp_path / "once_more.py"
    path.write_text(ONCE_MORE, encoding="utf-8")
    [result] = check(path, only=("GEN-LAST-POS",), diagnose=False).failures()
    told = " ".join(result.details)
    assert "with tokens = block_size = " in told
    assert "no room for another run of the model after the last new id" in told
