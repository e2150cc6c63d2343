"""Judge a submission as its attack specifies, and collect everything that a reader would see."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import unicodedata
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from rich.console import Console

from conformkit.conformance import runner
from conformkit.conformance.binding.toml_nodes import ConfigError
from conformkit.conformance.driver.client.session import Limits
from conformkit.conformance.engine.finding import LoadFailure
from conformkit.conformance.engine.results import Report
from conformkit.conformance.report import terminal
from conformkit.conformance.report.json_report import as_json
from conformkit.conformance.report.junit import as_junit

from .attack import Attack
from .world import World

__all__ = ["Ending", "outcome"]

USUAL = {"memory_bytes": 1 << 30, "output_bytes": 1 << 18}
HIDDEN = {"Cc", "Cf", "Cs", "Zl", "Zp"}
WORKFLOW_COMMAND = re.compile(r"^\s*::[\w-]+|##\[", re.MULTILINE)
COMMAND = Path(sys.executable).with_name("conform")
BOUNDED = ("sh", "-c", 'ulimit -v 4194304 && exec "$@"', "sh")
"""A harness that reads without end must not bring the machine down."""
ENDS = {0: "judged", 1: "judged", 2: "refused", 3: "not loaded"}


@dataclass
class Ending:
    """The outcome of an attack: a report, or the reason why there is none; and all texts about it."""

    ends: str
    told: str
    verdicts: Mapping[str, str] = field(default_factory=dict)
    conforms: bool = False
    exit: int | None = None
    summary: str = ""
    """One line per clause, for the message of a failed test."""


def outcome(attack: Attack, target: Path, level: str, world: World) -> Ending:
    """Judge a submission in the way that its attack specifies."""
    return _by_command(attack, target, level) if attack.run != "here" else _here(attack, target, level, world)


def _here(attack: Attack, target: Path, level: str, world: World) -> Ending:
    options: dict[str, Any] = {"only": attack.only, "profile": attack.profile, "dtype": attack.dtype}
    options |= {
        "strict": attack.strict,
        "seed": attack.seed,
        "processes": attack.processes,
        "diagnose": attack.diagnose,
    }
    options |= {"limits": Limits(**{**USUAL, **attack.limits})}
    try:
        with _unexplained(attack):
            report = world.judge(target, level=level, torch=attack.torch, **options)
    except LoadFailure as failure:
        told = "\n".join([failure.problem, failure.where, failure.output, *failure.advice])
        return Ending("not loaded", told, summary=told)
    except ConfigError as error:
        return Ending("refused", str(error), summary=str(error))
    told, page = as_json(report), _page(report)
    ET.fromstring(as_junit(report))
    _check_shown(told)
    _check_shown(page)
    _check_logged(page)
    return _of_report(json.loads(told), told + page)


@contextmanager
def _unexplained(attack: Attack) -> Iterator[None]:
    """Leave out the causes of what an excuse breaks: half of its time. Grading looks for them (test_excuses.py)."""
    with pytest.MonkeyPatch.context() as patch:
        if attack.kind == "excuses" and not attack.diagnose:
            patch.setattr(runner, "_explain", lambda *_, **__: None)
        yield


def _by_command(attack: Attack, target: Path, level: str) -> Ending:
    impl, folder = (target.name, target.parent) if attack.run == "beside" else (".", target)
    path = target.parent / "report.json"
    options = ["--impl", impl, "--only", ",".join(attack.only), "-n", "1", "--isolation", level, "--json", str(path)]
    options += ["--profile", attack.profile]
    done = subprocess.run([*BOUNDED, COMMAND, "run", *options], cwd=folder, capture_output=True, text=True, check=False)
    told = done.stdout + done.stderr
    _check_shown(told)
    _check_logged(told)
    if not path.exists():
        return Ending(ENDS.get(done.returncode, "died"), told, exit=done.returncode, summary=told)
    ending = _of_report(json.loads(path.read_text(encoding="utf-8")), told + path.read_text(encoding="utf-8"))
    path.unlink()
    ending.exit = done.returncode
    return ending


def _of_report(report: Mapping[str, Any], told: str) -> Ending:
    clauses = report["clauses"]
    summary = "\n".join(f"{c['id']} {c['verdict']}: {c['message']}{c['reason']}" for c in clauses)
    return Ending("judged", told, {c["id"]: c["verdict"] for c in clauses}, report["conforms"], summary=summary)


def _page(report: Report) -> str:
    page = StringIO()
    terminal.write(report, Console(file=page, width=120, force_terminal=False), verbose=True)
    return page.getvalue()


def _check_shown(text: str) -> None:
    """Check that a terminal shows it and does nothing else."""
    assert not {character for character in text if unicodedata.category(character) in HIDDEN and character != "\n"}


def _check_logged(page: str) -> None:
    """Check that the log of a workflow shows it and does nothing else."""
    assert not (found := WORKFLOW_COMMAND.search(page)), found
