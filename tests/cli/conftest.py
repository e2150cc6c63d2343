import os
import subprocess
import sys
from contextlib import nullcontext
from dataclasses import dataclass, field

import pytest
from typer.testing import CliRunner

from conformkit.cli.app import app
from conformkit.conformance import runner
from conformkit.conformance.driver.client.head_start import HeadStart
from conformkit.conformance.engine.request import RunRequest
from conformkit.conformance.engine.results import Report, Result, Verdict
from conformkit.spec import clauses as law
from conformkit.spec.clauses import parse

PROSE = """Component: ScaledDotProductAttention.

### SDPA-SHAPE
one row of output for each query
Normative: the output MUST have one row for each query.
Why: a query asks once.
Fix: multiply the weights by the values.
Evidence: property. Level: MUST. Profile: core. Since: 1.0. Source: Vaswani et al. 2017, §3.2.1.

### SDPA-SCALE
scores are divided by the square root of the key width
Normative: every score MUST be divided by √d_k.
Why: unscaled, the softmax saturates.
Fix: divide by math.sqrt(k.shape[-1]).
Evidence: oracle, golden. Level: MUST. Profile: core. Since: 1.0. Source: Vaswani et al. 2017,
§3.2.1. Private: handout §4.2.
Applies: gradients = yes.
Needs: SDPA-SHAPE.

### MASK-NONE
a query that sees no key gives finite numbers
Normative: the output SHOULD be finite.
Why: NaN spreads.
Fix: replace NaN by zero.
Evidence: property. Level: SHOULD. Profile: core. Since: 1.0. Source: Vaswani et al. 2017, §3.2.1.
"""


@pytest.fixture(autouse=True)
def small_law(monkeypatch):
    """Three clauses, so that no test here depends on the documents."""
    found = {clause.id: clause for clause in parse("attention", PROSE)}
    monkeypatch.setattr(law, "clauses", lambda: found)
    return found


@pytest.fixture(autouse=True)
def own_cache(monkeypatch, tmp_path_factory):
    """Keep what runs leave in the user's cache out of the cache of whoever runs these tests."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))


@dataclass
class FakeRun:
    """Replaces conformance.runner.run: records the request, returns the report or raises the error set before."""

    results: list[Result] = field(default_factory=list)
    error: BaseException | None = None
    complete: bool = True
    late: str = ""
    prints: str = ""
    requests: list[RunRequest] = field(default_factory=list)

    def __call__(self, request, on_progress=None, *, early=None):
        assert early == HeadStart()
        self.requests.append(request)
        if self.prints:
            sys.stdout.write(self.prints)
        if self.error:
            raise self.error
        del on_progress
        return Report(
            request.impl, "/home/me/mypkg", "torch", results=self.results, complete=self.complete, late=self.late,
            **request.asked(),
        )  # fmt: skip


def _no_starts(impls, _):
    return nullcontext({impl: HeadStart() for impl in impls})


@pytest.fixture
def fake_run(monkeypatch, small_law):
    fake = FakeRun([Result(clause, Verdict.PASS) for clause in small_law.values()])
    monkeypatch.setattr(runner, "run", fake)
    monkeypatch.setattr("conformkit.conformance.driver.client.head_start.head_start", lambda *_: HeadStart())
    monkeypatch.setattr("conformkit.conformance.driver.client.head_start.common_start", _no_starts)
    return fake


@pytest.fixture
def conform(monkeypatch):
    """Run a command line in this process; the result has exit_code, stdout and stderr."""
    monkeypatch.setenv("COLUMNS", "120")

    def call(*arguments):
        return CliRunner().invoke(app, list(arguments), prog_name="conform")

    return call


@pytest.fixture
def process():
    """Run a command line as a separate process, as users do."""

    def call(*arguments, python=("-P",), **options):
        environment = {**os.environ, **options.pop("env", {})}
        command = [sys.executable, *python, "-m", "conformkit.cli", *arguments]
        return subprocess.run(
            command, capture_output=True, text=True, env=environment, timeout=60, check=False, **options
        )

    return call
