"""Public libraries, bound by a conform.toml alone: what holds, and the deviations that docs/found.md writes up.

Each list of deviations is exact: a clause that starts to hold, or to fail, is news.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from conformkit.conformance import check
from conformkit.conformance.results import Report
from conformkit.spec.clauses import Level

HERE = Path(__file__).parent
GENERAL = ("GRAD", "NUM", "DET", "DT", "ERRH", "INIT")

PEERS = {
    "torch_mha": (("MHA", *GENERAL), set()),
    "torch_encoder_layer": (("BLOCK", *GENERAL), set()),
    "gpt2": (("LM", "GEN", *GENERAL), {"GEN-ZERO", "GEN-CROP", "GEN-EVAL-MODE"}),
    "llama": (("LM", "GEN", "FFN", *GENERAL), {"LM-OVERLONG", "GEN-ZERO", "GEN-CROP"}),
}  # fmt: skip


@pytest.mark.parametrize("name", PEERS)
def test_a_library_deviates_where_it_is_known_to_and_nowhere_else(name: str) -> None:
    if name in {"gpt2", "llama"}:
        pytest.importorskip("transformers")
    only, deviations = PEERS[name]
    report = check(HERE / name, only=only)
    assert broken(report) == deviations, "\n".join(f"{r.clause.id}: {r.message}" for r in report.failures())
    assert report.ledger()["pass"] > 50


def broken(report: Report) -> set[str]:
    return {r.clause.id for r in report.failures() if r.clause.level is Level.MUST}
