"""What right packages declare is told in the head of their report, takes nothing from them, and --strict says why it counts."""

from __future__ import annotations

from dataclasses import replace
from io import StringIO
from pathlib import Path

import pytest

from conformkit.conformance import runner
from conformkit.conformance.engine.request import RunRequest
from conformkit.conformance.engine.results import Report
from conformkit.conformance.report import terminal
from conformkit.conformance.report.wording import obstacles, verdict_line
from tests.peers.test_peers import PEERS
from tests.needs import optional
from tests.tiers import sampled

from .false_alarms import ROOT, right_ones

OWN = sorted(
    path for impl in right_ones() if (path := Path(impl)).is_dir() and list(path.rglob("conform.toml"))
)  # fmt: skip
"""Right packages with a conform.toml."""
THIRD_PARTY = [ROOT / "tests" / "peers" / name for name in PEERS]
"""Public libraries, bound by a conform.toml alone; most of them are transformers', which may not be installed."""
SOME = ("SDPA-SCALE", "MHA-SHAPE", "MHA-SIZES", "FFN-SHAPE", "FFN-SIZES", "LM-ORACLE", "GEN-GREEDY-ARGMAX")
"""Clauses of each part, some of them about every size: a declaration does not depend on what is asked."""
QUICK = ["tests/right/local_layers", "tests/right/oss_experts"]
"""Of our own; the others are looked at where test_right.py has opened them."""
NAMES = [Path(path).name for path in QUICK]


def head(report: Report) -> str:
    """Return the lines of a report above its first empty one, joined."""
    text = StringIO()
    page = terminal.console(text, "never")
    terminal.write(report, page)
    return " ".join(text.getvalue().partition("\n\n")[0].split())


@pytest.mark.parametrize(
    "impl",
    sampled(
        [*map(ROOT.joinpath, QUICK), *THIRD_PARTY], lambda path: path.name, always=NAMES, files=lambda path: [path]
    ),
)
def test_excuses_of_right_packages_are_shown_and_change_nothing_without_strict(impl: Path) -> None:
    if impl in THIRD_PARTY and not impl.name.startswith("torch_"):
        optional("transformers")
    report = runner.run(RunRequest(str(impl), only=SOME))
    check_excuses(report)
    assert [result.clause.id for result in report.results if result.verdict.red] == []


def check_excuses(report: Report) -> None:
    """Check that each excuse is told in the report's head, and that --strict names a declaration where it counts one."""
    told = head(report)
    for excuse in report.excuses:
        assert excuse.kind == "variant" or " ".join(excuse.words.split())[:60] in told
    strictly = replace(report, strict=True)
    more = [words for words in obstacles(strictly) if words not in obstacles(report)]
    assert bool(more) == bool(report.computed() or report.exempted())
    for words in more:
        assert "declaration" in words or "conform.toml" in words or "not judged as it stands" in words
        assert words in verdict_line(strictly)


def test_some_right_packages_have_excuses() -> None:
    assert len(OWN) > 20
    assert ROOT.joinpath("tests/right/local_layers") in OWN
    assert ROOT.joinpath("tests/peers/torch_mha") in THIRD_PARTY
