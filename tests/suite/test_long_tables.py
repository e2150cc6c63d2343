"""A table of positions whose length its caller cannot choose may refuse more: that is a limit."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformkit.conformance import check

CODE = """
import numpy as np


class PositionalEncoding:
    def __init__(self, d_model, LENGTH):
        angles = np.arange(ROWS)[:, None] / 10000.0 ** (np.arange(0, d_model, 2) / d_model)
        self.pe = np.zeros((ROWS, d_model))
        self.pe[:, 0::2], self.pe[:, 1::2] = np.sin(angles), np.cos(angles)[:, : d_model // 2]
        SPOILT

    def forward(self, x):
        if x.shape[1] > len(self.pe):
            raise ValueError(f"{x.shape[1]} positions, the table has {len(self.pe)}")
        return x + self.pe[: x.shape[1]]
"""
DECLARED = """
[components.PositionalEncoding]
construct = { d_model = "d_model" }
"""


def judged(folder: Path, length: str, rows: str, spoilt: str = "pass", declared: str = DECLARED):
    code = CODE.replace("LENGTH", length).replace("ROWS", rows).replace("SPOILT", spoilt)
    (folder / "theirs.py").write_text(code, encoding="utf-8")
    (folder / "conform.toml").write_text(declared, encoding="utf-8")
    report = check(folder / "theirs.py", only=["PE-UNIQUE", "PE-PRECISION"])
    return {result.clause.id: result.verdict.value for result in report.results}


@pytest.mark.parametrize(("length", "rows"), [("entries=1024", "entries"), ("entries=70", "entries")])
def test_a_refusal_beyond_a_table_of_its_own_is_no_error(tmp_path: Path, length: str, rows: str) -> None:
    found = judged(tmp_path, length, rows)
    assert found["PE-PRECISION"] == "not applicable"
    assert found["PE-UNIQUE"] == "pass"


def test_what_fits_into_such_a_table_is_compared(tmp_path: Path) -> None:
    """Would break if a refusal beyond it excused what its table holds."""
    assert judged(tmp_path, "entries=1024", "entries", "self.pe[301] = self.pe[300]")["PE-UNIQUE"] == "fail"


def test_a_table_that_is_shorter_than_asked_for_is_an_error(tmp_path: Path) -> None:
    assert judged(tmp_path, "max_len=5000", "1024", declared="")["PE-UNIQUE"] == "error"
