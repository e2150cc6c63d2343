"""Mistakes that were found in real libraries, each in a small package of our own: caught, and most of them named."""

from __future__ import annotations

import importlib
import re
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from conformkit.conformance import port
from conformkit.conformance.apps.port.mistake import mistakes
from conformkit.conformance.defects import defects
from conformkit.conformance.driver.spawn.shared import LentFactory
from conformkit.conformance.engine.judge import Judge
from conformkit.conformance.engine.loading import opened
from conformkit.conformance.engine.request import RunRequest
from conformkit.conformance.engine.results import Report, Verdict
from conformkit.conformance.runner import run
from conformkit.conformance.suite.registry import tests as suite
from conformkit.spec.clauses import Level, clauses_of
from tests.apps.port.test_porting import checkpoint
from tests.outcomes import Inputs, product
from tests.real_bugs import table
from tests.tiers import sampled

HERE = Path(__file__).parent
BUGS = table.bugs()
DEVICES = [bug for bug in BUGS if "line" in bug]
PORTS = [bug for bug in BUGS if "like" in bug]
OTHERS = [bug for bug in BUGS if "line" not in bug and "like" not in bug]


def named(bug: dict[str, Any]) -> str:
    return str(bug["folder"].name)


def files(bug: dict[str, Any]) -> list[Path]:
    return [bug["folder"]]


@pytest.mark.parametrize("bug", DEVICES, ids=named)
def test_a_tensor_elsewhere_is_caught_and_named_with_its_line(bug: dict[str, Any], warm: LentFactory) -> None:
    folder = bug["folder"]
    with opened(RunRequest(impl=str(folder), only=tuple(bug["clauses"])), warm) as (implementation, _):
        judge = Judge(implementation, suite("core"), seed=0)
        found = [judge.result(name) for name in bug["clauses"]]
    for result in found:
        assert result.verdict.red, result
        assert bug["names"] in result.message
        assert f"{folder.name}/{bug['line']} in " in result.message


COMPILED = ("PATH-COMPILED", "PATH-EXPORTED")
"""Clauses that compile a model: seconds each, where all others of their prefix take one together."""


def judged(bug: dict[str, Any]) -> Report:
    """Return the run on the clauses that catch it, those of their prefixes that do not compile, and what these need."""
    law = clauses_of(bug.get("profile", "core"))
    wanted: set[str] = set()
    prefixes = {name.partition("-")[0] for name in bug["clauses"]}
    waiting = [name for name in law if name.partition("-")[0] in prefixes and not name.startswith(COMPILED)]
    waiting += bug["clauses"]
    while waiting:
        name = waiting.pop()
        if name in law and name not in wanted:
            wanted.add(name)
            waiting += law[name].needs
    request = RunRequest(
        impl=str(bug["folder"]), profile=bug.get("profile", "core"), only=tuple(sorted(wanted)), processes=1
    )
    return run(request)


def inputs(bug: dict[str, Any]) -> Inputs:
    """Return what a run and its names depend on: all of the product."""
    return Inputs(files=(*product(), *sorted(HERE.glob("*.py")), bug["folder"]))


@pytest.mark.stored(inputs=inputs)
@pytest.mark.parametrize("bug", sampled(OTHERS, named, always=["row_65_exact_gelu_for_tanh"], files=files, most=1))
def test_a_mistake_is_caught_and_named(bug: dict[str, Any]) -> None:
    results = {result.clause.id: result for result in judged(bug).results}
    assert [name for name in bug["clauses"] if not results[name].verdict.red] == []
    shown = {like.defect for result in results.values() if result.verdict.red for like in result.looks_like}
    assert not bug["named"] or shown.intersection(bug["named"]), shown
    related = [str(results[name].finding.relation) for name in bug["clauses"]]
    assert all(bug.get("relation", "") in sentence for sentence in related), related


@pytest.mark.full(guard="test_a_mistake_is_caught_and_named")
@pytest.mark.stored(inputs=inputs)
@pytest.mark.parametrize("bug", PORTS, ids=named)
def test_a_wrong_conversion_is_caught_and_named(bug: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    folder = bug["folder"]
    monkeypatch.syspath_prepend(str(HERE))
    weights = checkpoint(bug["like"], kv_heads=bug["kv_heads"], d_model=bug.get("d_model", 24))
    weights = {name: array for name, array in weights.items() if name not in bug.get("lacks", ())}
    converted = importlib.import_module(folder.name).convert(dict(weights))
    settings = folder / "config.json"
    report = port("", str(folder), weights, like=bug["like"], config=settings, converted=converted)
    assert not report.proved
    if bug["named"]:
        assert report.mistakes[0].id in bug["named"], report.mistakes


@pytest.mark.full(guard="test_a_mistake_is_caught_and_named")
@pytest.mark.parametrize("style", ["canonical", "modern"])
def test_the_code_that_packages_change_is_right(style: str, tmp_path: Path) -> None:
    modern = style == "modern"
    names = {"MultiHeadAttention": "ModernAttention", "FeedForward": "ModernNetwork", "TransformerBlock": "ModernBlock"}
    names["TinyTransformerLM"] = "ModernLM"
    lines = [f"from right_code import {names[name] if modern else name} as {name}" for name in names]
    package = tmp_path / "right_package"
    package.mkdir()
    (tmp_path / "right_code.py").write_text((HERE / "right_code.py").read_text(encoding="utf-8"), encoding="utf-8")
    (package / "__init__.py").write_text("\n".join([*lines, "from right_code import beam_search"]), encoding="utf-8")
    if modern:
        declared = (HERE / "row_39_cached_step_from_zero" / "conform.toml").read_text(encoding="utf-8")
        (package / "conform.toml").write_text(declared, encoding="utf-8")
    prefixes = ("MHA", "FFN", "BLOCK", "LM", "GEN", "KV", "BEAM", "GQA", "ROPE", "LN", "RMS")
    report = run(RunRequest(impl=str(package), profile="lm", only=prefixes, diagnose=False))
    assert [result for result in report.results if result.verdict.red and result.clause.level is Level.MUST] == []


@pytest.mark.full(guard="test_a_mistake_is_caught_and_named")
def test_the_code_that_packages_of_profile_paths_change_is_right(tmp_path: Path) -> None:
    package = tmp_path / "right_package"
    shutil.copytree(HERE / "row_8_second_piece_sees_the_first_key", package)
    shutil.copy(HERE / "right_paths.py", tmp_path)
    (package / "__init__.py").write_text("from right_paths import CausalLM", encoding="utf-8")
    report = run(RunRequest(impl=str(package), profile="paths", diagnose=False))
    assert report.conforms
    wanted = {"PATH-CACHE-CHUNKS", "PATH-PACK-APART", "PATH-POSITIONS-ROWS", "PATH-PAD-LEFT", "PATH-LOSS-SHIFT"}
    assert wanted <= {result.clause.id for result in report.results if result.verdict is Verdict.PASS}


@pytest.mark.full(guard="test_a_mistake_is_caught_and_named")
def test_the_attention_that_packages_change_is_right(tmp_path: Path) -> None:
    package = tmp_path / "right_package"
    package.mkdir()
    shutil.copy(HERE / "right_attention.py", tmp_path)
    source = "import torch\nfrom right_attention import Attention\nscaled_dot_product_attention = Attention().__call__"
    (package / "__init__.py").write_text(source, encoding="utf-8")
    report = run(RunRequest(impl=str(package), profile="paths", only=("PATH-ATTN",), diagnose=False))
    assert {result.verdict for result in report.results} == {Verdict.PASS}


def test_each_names_its_row_its_threads_and_things_that_exist() -> None:
    assert BUGS
    for bug in BUGS:
        assert named(bug).startswith(f"row_{bug['row']}_")
        assert all(re.fullmatch(r"[\w.-]+/[\w.-]+ #\d+", thread) for thread in bug["threads"]), bug
        law = clauses_of(bug.get("profile", "core"))
        assert set(bug.get("clauses", ())) <= law.keys(), bug
        known = mistakes() if "like" in bug else defects()
        assert set(bug.get("named", ())) <= known.keys(), bug
    assert not [row for row, count in Counter(row for bug in BUGS for row in table.rows_of(bug)).items() if count > 1]


def test_the_table_says_what_the_folders_say() -> None:
    shown = (HERE / "README.md").read_text(encoding="utf-8")
    assert shown == table.page(), "python -m tests.real_bugs.table writes it anew"


def test_most_rows_are_covered_by_a_binding_clause_and_named() -> None:
    covered = {row: bug for bug in BUGS for row in table.rows_of(bug)}
    assert len(covered) >= 55
    assert sum(table.binding(bug) for bug in covered.values()) >= 45
    assert 4 * sum(table.is_named(bug) for bug in covered.values()) >= 3 * len(covered)
    assert set(covered).isdisjoint(table.LEFT_OUT)
    assert set(covered) | set(table.LEFT_OUT) >= set(np.arange(1, 108).tolist())  # a second list goes on from there
