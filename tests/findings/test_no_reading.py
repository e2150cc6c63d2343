"""Nothing is decided by the words of a finding: with other words the same mistakes have the same names."""

from __future__ import annotations

import ast
from pathlib import Path

import conformkit.conformance
from conformkit.conformance.engine.request import RunRequest
from conformkit.conformance.findings import words
from conformkit.conformance.runner import run

HOME = Path(conformkit.conformance.__file__).parent
_PRINTS = ("report/", "findings/", "apps/", "api/", "driver/", "diagnosis/measuring.py")
"""What shows results: the last says which patch of a known mistake is no good."""
WRONG = """
from conformkit.reference import *
import torch

def scaled_dot_product_attention(q, k, v, mask=None):
    scores = q @ k.transpose(-2, -1)
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    return torch.softmax(scores, -1) @ v
"""


def judged(folder: Path) -> dict[str, object]:
    (folder / "mypkg.py").write_text(WRONG)
    report = run(RunRequest(impl=str(folder / "mypkg.py"), only=("SDPA",)))
    return {r.clause.id: (r.verdict, [(k.defect, k.certainty) for k in r.looks_like]) for r in report.results}


def test_other_words_change_no_verdict_and_no_name(tmp_path, monkeypatch):
    """Would break if a message were compared: "expected" in place of "want" once changed what was named."""
    before = judged(tmp_path)
    assert any(named for _, named in before.values())
    monkeypatch.setattr(words, "message", lambda found: "blah 7 draws, expected 0.4321 as constructed")
    monkeypatch.setattr(words, "details", lambda found: ("8 of 8 entries differ",))
    assert judged(tmp_path) == before


def readers() -> list[tuple[str, int]]:
    """Return where words of findings are made or imported outside of what prints."""
    found = []
    for file in sorted(HOME.rglob("*.py")):
        place = file.relative_to(HOME).as_posix()
        if place.startswith(_PRINTS):
            continue
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.ImportFrom) and "findings" in (node.module or ""):
                names = [node.module.rpartition(".")[2], *(alias.name for alias in node.names)]
                found += [(place, node.lineno)] if "words" in names else []
    return found


def test_words_are_imported_where_a_result_shows_itself_and_nowhere_else():
    """Would break if a test or the diagnosis looked for a word in a sentence of the kit's own."""
    assert {place for place, _ in readers()} == {"assertions/checks.py", "engine/results.py"}


def test_no_message_of_a_finding_is_read_below_what_prints():
    """Would break if `result.message` were searched anywhere but in `report/` and what shows a result.

    What an implementation raised has a message of its own, which is its author's: `failure`, `refusal`, `refused`.
    """
    found = [
        f"{place}:{node.lineno} {ast.unparse(node)}"
        for file in sorted(HOME.rglob("*.py"))
        if not (place := file.relative_to(HOME).as_posix()).startswith(_PRINTS)
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.Attribute) and node.attr in {"message", "details"}
        and ast.unparse(node.value) not in {"failure", "refusal", "refused", "self", "words"}
    ]  # fmt: skip
    assert not found


def test_a_run_makes_no_words_before_it_prints(tmp_path, monkeypatch):
    """Would break if a verdict, a name or a hint came from a sentence, wherever it is made."""

    def made(found):
        raise AssertionError(found)

    for name in ("message", "details", "begins"):
        monkeypatch.setattr(words, name, made)
    assert any(named for _, named in judged(tmp_path).values())
