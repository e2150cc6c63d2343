"""`conform compare`: several implementations, or versions of one, clause by clause."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from conformkit.cli.exits import Exit, complain, fail, one_of, wrong
from conformkit.cli.options import (
    FORMATS,
    Dtype,
    Isolation,
    Only,
    ProfileName,
    Shade,
    Strictness,
    known_profiles,
    prefixes_of,
)
from conformkit.cli.reports import read_report, report_targets, write_files
from conformkit.spec.clauses import Level

if TYPE_CHECKING:
    from conformkit.conformance.apps.compare.comparison import Column, Comparison
    from conformkit.conformance.driver.client.head_start import HeadStart
    from conformkit.conformance.engine.request import RunOptions
    from conformkit.conformance.report.terminal import Color

__all__ = ["compare"]


def compare(
    impls: Annotated[
        list[str],
        typer.Argument(
            metavar="IMPL", help="Two or more implementations, path@revision, or JSON reports of runs (*.json)."
        ),
    ],
    only: Only = None,
    everything: Annotated[bool, typer.Option("--all", help="List every clause, not only those that differ.")] = False,
    profile: ProfileName = "core",
    level: Strictness = "MUST",
    seed: Annotated[int, typer.Option(metavar="N", min=0, help="Seed of the inputs, the same for all.")] = 0,
    dtype: Dtype = "",
    isolation: Isolation = "process",
    json_path: Annotated[
        str, typer.Option("--json", metavar="PATH", help="Write the comparison as JSON; - is stdout.")
    ] = "",
    markdown_path: Annotated[
        str, typer.Option("--markdown", metavar="PATH", help="Write the comparison as Markdown.")
    ] = "",
    html_path: Annotated[
        str, typer.Option("--html", metavar="PATH", help="Write the comparison as an HTML page, one file.")
    ] = "",
    color: Shade = "auto",
) -> None:
    """Show where implementations, or versions of one, differ.

    Exit code 0 when all conform, 1 when one does not, 6 when the first is worse than another on some clause, 3 when one
    could not be judged.

    Examples:
      conform compare mypkg mypkg@main
      conform compare mypkg other --only MHA --markdown differences.md
    """
    if not all(map(str.strip, impls)):
        wrong("IMPL", "one of them is empty; give a module's name, a .py file or a folder.")
    if len(impls) < 2:
        wrong("IMPL", "only one was given; name two or more.")
    profile = one_of("--profile", profile, known_profiles())
    options: RunOptions = {
        "only": prefixes_of(only or [], profile=profile), "profile": profile, "seed": seed,
        "level": Level(one_of("--level", level, list(Level))), "processes": 2, "diagnose": False, "discover": True,
        "dtype": one_of("--dtype", dtype, FORMATS) if dtype else "",
        "isolation": one_of("--isolation", isolation, ("process", "sandbox", "none")),
    }  # fmt: skip
    shade = cast("Color", one_of("--color", color, ("auto", "always", "never")))
    targets = report_targets({"--json": json_path, "--markdown": markdown_path, "--html": html_path})
    piped = "-" in targets.values()
    with contextlib.redirect_stdout(sys.stderr) if piped else contextlib.nullcontext():
        columns = tuple(_columns(impls, options))
    from conformkit.conformance.apps.compare.comparison import Comparison

    comparison = Comparison(columns)
    write_files(targets, lambda option: _text(option, comparison, everything=everything))
    _show(comparison, shade, everything=everything, piped=piped)
    if not all(column.judged for column in comparison.columns):
        raise typer.Exit(Exit.NOT_LOADED)
    if comparison.worse():
        raise typer.Exit(Exit.WORSE)
    raise typer.Exit(Exit.CONFORMS if all(column.conforms for column in comparison.columns) else Exit.DIFFERS)


def _columns(impls: Sequence[str], options: RunOptions) -> Iterator[Column]:
    """Judge one after another, in workers of one warm process: packages of the same name don't mix."""
    from conformkit.conformance.driver.client.head_start import common_start

    stored = {impl: read_report(impl, "IMPL") for impl in impls if _stored(impl)}
    code = [impl for impl in impls if impl not in stored]
    with common_start(code, options["isolation"]) as starts:
        from conformkit.conformance.apps.compare.comparison import Column

        for impl in impls:
            yield Column(impl, stored[impl]) if impl in stored else _judged(impl, options, starts[impl])


def _stored(impl: str) -> bool:
    return impl.endswith(".json") and not Path(impl).is_dir()


def _judged(impl: str, options: RunOptions, start: HeadStart) -> Column:
    from dataclasses import replace

    from conformkit.conformance.apps.compare.comparison import Column
    from conformkit.conformance.apps.compare.revisions import NoRevision, lay_out, split
    from conformkit.conformance.binding.toml_nodes import ConfigError
    from conformkit.conformance.driver.errors import IsolationUnavailable
    from conformkit.conformance.driver.scratch import held_folder
    from conformkit.conformance.engine.finding import LoadFailure
    from conformkit.conformance.engine.request import RunRequest
    from conformkit.conformance.runner import run

    path, revision = split(impl)
    if sys.stderr.isatty():
        complain(f"judging {impl}")
    with held_folder() as folder:
        try:
            named = str(lay_out(_place(path), revision, folder / "revision")) if revision else impl
            report = run(RunRequest(named, **options), early=start)
        except (LoadFailure, ConfigError, NoRevision) as error:
            return Column(impl, problem=str(getattr(error, "problem", error)))
        except IsolationUnavailable as error:
            fail(Exit.NO_ISOLATION, str(error), *error.advice)
    if not report.complete:
        raise typer.Exit(Exit.INTERRUPTED)
    return Column(impl, replace(report, implementation=impl))


def _place(path: str) -> Path:
    """Return where an implementation is now; a path that no longer exists may be in the revision."""
    from conformkit.conformance.driver.location import locate

    try:
        return locate(path).path or Path(path)
    except FileNotFoundError:
        return Path(path)


def _text(option: str, comparison: Comparison, *, everything: bool) -> str:
    from conformkit.conformance.apps.compare.comparison import as_object
    from conformkit.conformance.apps.compare.rendering import as_html, as_markdown
    from conformkit.conformance.report.json_text import json_text

    if option == "--json":
        return json_text(as_object(comparison))
    form = as_html if option == "--html" else as_markdown
    return form(comparison, everything=everything)


def _show(comparison: Comparison, color: Color, *, everything: bool, piped: bool) -> None:
    from conformkit.conformance.apps.compare.rendering import write
    from conformkit.conformance.report import terminal

    with contextlib.suppress(BrokenPipeError):
        write(comparison, terminal.console(sys.stderr if piped else sys.stdout, color), everything=everything)
