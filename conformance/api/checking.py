"""The suite as a function: a report for Python and for notebooks."""

from __future__ import annotations

import os
import warnings
from dataclasses import fields, replace
from typing import Unpack

from conformkit.conformance.api.live import as_argument, judged, module_of
from conformkit.conformance.engine.request import RunOptions, requested
from conformkit.conformance.engine.results import Report
from conformkit.conformance.report.fragment import as_fragment
from conformkit.conformance.report.markdown import as_markdown
from conformkit.conformance.report.terminal import render
from conformkit.conformance.report.wording import verdict_line
from conformkit.conformance.runner import run
from conformkit.spec.clauses import Level

__all__ = ["ShownReport", "check"]

_COLUMNS = 100


class ShownReport(Report):
    """A report that prints as in a terminal, and that a notebook shows as a page."""

    @classmethod
    def of(cls, report: Report) -> ShownReport:
        """Return the same report as an instance of this class."""
        return cls(**{each.name: getattr(report, each.name) for each in fields(report)})

    def text(self, *, verbose: bool = False, warnings: bool = False, width: int = _COLUMNS) -> str:
        """Return what `conform run` prints with these options, in so many columns."""
        return render(self, width, verbose=verbose, warnings=warnings).rstrip()

    def __str__(self) -> str:
        """Return what `conform run` prints."""
        return self.text()

    def __repr__(self) -> str:
        """Return the verdict: all fields of all results would be hundreds of lines."""
        return f"<{type(self).__name__}: {verdict_line(self)}>"

    def _repr_html_(self) -> str:
        """Return what a notebook shows."""
        return as_fragment(self)

    def _repr_markdown_(self) -> str:
        """Return what a notebook without HTML shows."""
        return as_markdown(self)


def check(impl: object, **options: Unpack[RunOptions]) -> ShownReport:
    """Judge an implementation and return the report; options are those of `RunRequest` (profile, only, seed, …).

    `impl` is what `conform run --impl` takes, or a class or function with a name of the contract, or a mapping from
    such names: live objects are judged in this process, in isolation `none`, as in a notebook, and without `only` by
    the clauses about them alone.

    Raises: LoadFailure if it cannot be loaded or bound, ConfigError if its conform.toml can't be used, ValueError
    for an object without a name of the contract.
    """
    options["level"] = Level(options.get("level", Level.MUST))
    if isinstance(impl, str | os.PathLike):
        return ShownReport.of(run(requested("check", os.fspath(impl), **options)))
    if options.setdefault("isolation", "none") != "none":
        raise ValueError(f"a live object can't move to isolation {options['isolation']}; put it into a file")
    whole = not options.get("only")
    with module_of(impl) as name, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a framework's, about sizes that no caller would choose
        request = requested("check", name, **options)
        found = run(replace(request, only=judged(impl, request.profile)) if whole else request)
    name = as_argument(impl)
    return ShownReport.of(replace(found, implementation=name, location=name, live=True))
