"""Attention that refuses float masks in words is judged with Boolean ones; what is read wrongly stays red."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from conformkit.conformance import check

CODE = """
    import numpy as np


    def scaled_dot_product_attention(q, k, v, mask=None):
        scores = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])
        if mask is not None:
            CHECK
            scores = np.where(mask, scores, -np.inf)
        weights = np.exp(scores - scores.max(-1, keepdims=True))
        return weights / weights.sum(-1, keepdims=True) @ v
"""
OWN = 'if mask.dtype != bool: raise TypeError(f"a mask is Boolean, got {mask.dtype}")'
ASSERTED = 'assert mask.dtype == bool, "wrong mask"'


def judged(folder: Path, line: str):
    (folder / "theirs.py").write_text(textwrap.dedent(CODE).replace("CHECK", line), encoding="utf-8")
    return check(folder / "theirs.py", only=["SDPA-FORMULA", "MASK-BOOL-POLARITY", "MASK-FLOAT-ADD"])


@pytest.mark.parametrize("line", [OWN, ASSERTED], ids=["own-words", "own-kind"])
def test_a_float_mask_that_is_refused_in_words_is_not_missed(tmp_path: Path, line: str) -> None:
    """Would break if code for Boolean masks that says so were wrong, though nothing is computed wrongly."""
    report = judged(tmp_path, line)
    assert report.conforms, report.failures()
    assert any("refuses a mask of floats, and gets Boolean ones only" in note for note in report.notes)


@pytest.mark.parametrize("line", ["pass", "mask = mask > -1", "mask[:, :9, 99]"], ids=["read", "compared", "a-crash"])
def test_a_float_mask_that_is_misread_or_crashes_is_red(tmp_path: Path, line: str) -> None:
    """Would break if numbers read as True and False, or any error at all, passed for a refusal."""
    report = judged(tmp_path, line)
    assert "MASK-FLOAT-ADD" in {r.clause.id for r in report.results if r.verdict.red or r.blocked_by}
    assert not report.conforms


SAID = '"""Mix values.\n\n    mask: boolean, True where attention is allowed.\n    """'
BOTH = '"""mask: Boolean, or floats that are added to the scores."""'


ONES = '"""Mix values; a mask has 1 where a key may be seen and 0 elsewhere."""'
WIDE = '"""Mix values. The mask is (T, T), or (1, 1, T, T)."""'


@pytest.mark.parametrize(
    ("documented", "right"),
    [(SAID, True), (ONES, True), (BOTH, False), (WIDE, False)],
    ids=["boolean", "ones", "both", "no-kind"],
)
def test_a_mask_that_is_documented_as_boolean_gets_no_numbers(tmp_path: Path, documented: str, *, right: bool) -> None:
    """Would break if only another name than the contract's made a Boolean mask one, or if a promise were forgotten."""
    head = "def scaled_dot_product_attention(q, k, v, mask=None):\n"
    code = textwrap.dedent(CODE).replace("CHECK", "mask = mask != 0").replace(head, f"{head}    {documented}\n")
    (tmp_path / "theirs.py").write_text(code, encoding="utf-8")
    report = check(tmp_path / "theirs.py", only=["SDPA-FORMULA", "MASK-BOOL-POLARITY", "MASK-FLOAT-ADD"])
    assert report.conforms is right, report.failures()
    told = "ScaledDotProductAttention gets Boolean masks only, as its documentation says"
    assert (told in report.notes) is right
