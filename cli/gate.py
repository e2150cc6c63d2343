"""What of a run counts: a baseline of known failures, the failures of the last run, what changed, the exit code."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from conformkit.cli.exits import Exit, complain, fail, wrong

if TYPE_CHECKING:
    from conformkit.conformance.engine.results import Report

__all__ = ["BASELINE_FILE", "Gate", "changed_parts", "gate_of", "still_failing"]

BASELINE_FILE = "conform-baseline.json"
"""The file of a baseline, if none is named."""


@dataclass(frozen=True, slots=True)
class Gate:
    """Which failures are known, and what the command's exit code says."""

    path: Path | None
    known: Mapping[str, str] | None
    update: bool
    exit_zero: bool

    def against(self, report: Report) -> Report:
        """Return the report with the baseline in it, written anew from it if that is asked for."""
        if self.path is None:
            return report
        found = replace(report, known=self.known or {}, baseline=str(self.path))
        if self.update and found.complete:
            return self._written(found)
        if self.update:
            complain(f"{self.path} was not written: the run did not end")
        return found

    def code(self, report: Report) -> Exit:
        """Return the exit code."""
        from conformkit.conformance.report.score import RunOutcome, outcome

        codes = {
            RunOutcome.CONFORMS: Exit.CONFORMS, RunOutcome.NOT_JUDGED: Exit.NOT_LOADED,
            RunOutcome.INTERRUPTED: Exit.INTERRUPTED,
            RunOutcome.FAILS: self._failed(report),
        }  # fmt: skip
        return codes[outcome(report)]

    def _failed(self, report: Report) -> Exit:
        """Return the code where something is wrong: known failures excuse nothing that could not be judged."""
        new = any(result.verdict.red for result in report.fresh())
        if (report.unusable and (self.exit_zero or not new)) or (report.late and not new):
            return Exit.NOT_LOADED
        return Exit.CONFORMS if report.settled or self.exit_zero else Exit.DIFFERS

    def _written(self, report: Report) -> Report:
        from conformkit.conformance.report.baseline import read_baseline, updated
        from conformkit.conformance.report.files import write

        assert self.path is not None
        try:
            write(self.path, updated(report))
            known = read_baseline(self.path)
        except OSError as error:
            fail(Exit.KIT_FAILED, f"the baseline could not be written to {self.path}: {error.strerror or error}")
        complain(f"{self.path} lists {len(known)} {'clause' if len(known) == 1 else 'clauses'}; commit it")
        return replace(report, known=known)


def gate_of(baseline: Path | None, *, update: bool, partial: bool, exit_zero: bool) -> Gate:
    """Read the baseline, before anything runs; exit with the code for wrong usage if it can't be used."""
    if update and partial:
        wrong("--update-baseline", "contradicts --stop-at-first: what is not run cannot be listed; choose one.")
    path = baseline or (Path(BASELINE_FILE) if update else None)
    if path is None:
        return Gate(None, None, update, exit_zero)
    from conformkit.conformance.report.baseline import NotABaseline, read_baseline
    from conformkit.conformance.report.files import obstacle

    if update and (problem := obstacle(path)):
        wrong("--baseline", f"{problem}.")
    try:
        known = read_baseline(path)
    except FileNotFoundError:
        if not update:
            wrong("--baseline", f"there is no file {path}; --update-baseline writes it.")
        known = {}
    except OSError as error:
        wrong("--baseline", f"{path} cannot be read: {error.strerror or error}.")
    except NotABaseline as error:
        wrong("--baseline", f"{path} cannot be used: {error}.")
    return Gate(path, known, update, exit_zero)


def still_failing(impl: str, only: tuple[str, ...], profile: str) -> tuple[str, ...]:
    """Return the clauses that did not pass in the last run, of those asked for; all of these if none is known.

    Without a profile, those of whichever the last run judged.
    """
    from conformkit.conformance.report.last_failed import failed_last
    from conformkit.spec.clauses import select

    profiles = profile.split(",") if profile else [None]
    asked = {clause.id for name in profiles for clause in select(only, name and name.strip())}
    found = tuple(name for name in failed_last(impl, Path.cwd()) if name in asked)
    if not found:
        complain("no failure is known from an earlier run here, so all clauses are judged")
    return found or only


def changed_parts(impl: str, revision: str) -> Callable[[Mapping[str, str]], Collection[str]]:
    """Return what tells which exports a change since a revision can affect; end here if nothing changed."""
    from conformkit.conformance.apps.compare.revisions import NoRevision, lay_out
    from conformkit.conformance.apps.watch.since import changed_since, reached_parts
    from conformkit.conformance.driver.location import locate
    from conformkit.conformance.driver.scratch import held_folder

    try:
        place = locate(impl).path
    except FileNotFoundError as error:
        fail(Exit.NOT_LOADED, f"{impl} cannot be judged: {error}")
    if place is None:
        wrong("--changed", f"the files of {impl} are unknown; name its folder.")
    place = place.resolve()
    with held_folder() as folder:
        try:
            then = lay_out(place, revision, folder.resolve() / "revision")
        except NoRevision as error:
            wrong("--changed", f"{error}.")
        changed, files = changed_since(place, then)
    if not changed.files or changed.silent:
        complain(f"nothing to judge: no code of {impl} has changed since {revision}")
        raise typer.Exit(Exit.CONFORMS)
    return partial(reached_parts, changed, home=place.parent, files=files)
