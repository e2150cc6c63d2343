"""`conform run`: judge an implementation and report."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from conformkit.cli.exits import Exit, fail, one_of, wrong
from conformkit.cli.options import Config, Impl, Isolation, check_named
from conformkit.spec.clauses import Level, UnknownClauseError, clauses, select

if TYPE_CHECKING:
    from conformkit.conformance.report.terminal import Color
    from conformkit.conformance.results import Report

__all__ = ["run"]

_STDOUT = "-"


def run(
    impl: Impl,
    json_path: Annotated[
        str, typer.Option("--json", metavar="PATH", help="Write the report as JSON; - is stdout.")
    ] = "",
    junit_path: Annotated[
        str, typer.Option("--junit", metavar="PATH", help="Write it as JUnit XML; - is stdout.")
    ] = "",
    only: Annotated[
        list[str] | None, typer.Option(metavar="PREFIX", help="Only these clauses; repeat it, or separate by commas.")
    ] = None,
    profile: Annotated[str, typer.Option(metavar="NAME", help="The named set of clauses that must hold.")] = "core",
    level: Annotated[
        str, typer.Option(metavar="MUST|SHOULD|MAY", help="SHOULD makes these clauses binding too.")
    ] = "MUST",
    seed: Annotated[
        int, typer.Option(metavar="N", min=0, help="Draws other inputs; the same seed draws the same ones.")
    ] = 0,
    device: Annotated[str, typer.Option(metavar="cpu", help="Where the implementation computes.")] = "cpu",
    isolation: Isolation = "process",
    processes: Annotated[
        int | None, typer.Option("-n", metavar="N", min=1, help="Judge with N workers; 2 where there are 2 cores.")
    ] = None,
    config: Config = None,
    hints: Annotated[
        int, typer.Option(metavar="1|2|3", min=1, max=3, help="Tell the symptom; where to look, too; the mistake.")
    ] = 3,
    verbose: Annotated[bool, typer.Option("-v", "--verbose", help="List every clause with its distance.")] = False,
    quiet: Annotated[bool, typer.Option("-q", "--quiet", help="Print the verdict line only.")] = False,
    color: Annotated[
        str, typer.Option(metavar="auto|always|never", help="auto respects NO_COLOR, FORCE_COLOR.")
    ] = "auto",
) -> None:
    """Judge an implementation, and report.

    Exit code 0 when it conforms, 1 when it does not; conform --help lists the others.
    """
    check_named(impl)
    if verbose and quiet:
        wrong("--quiet", "contradicts --verbose; choose one.")
    prefixes = _prefixes(only or [])
    known = list(dict.fromkeys(["core", *(clause.profile for clause in clauses().values())]))
    how = one_of("--isolation", isolation, ("process", "none", "sandbox"))
    shade = cast("Color", one_of("--color", color, ("auto", "always", "never")))
    settings: dict[str, Any] = {
        "profile": one_of("--profile", profile, known), "level": Level(one_of("--level", level, list(Level))),
        "only": prefixes, "seed": seed, "isolation": _isolation(how), "device": _device(device), "config": config,
        "hints": hints, "processes": processes or min(2, os.cpu_count() or 1),
    }  # fmt: skip
    targets = _targets({"--json": json_path, "--junit": junit_path})
    piped = _STDOUT in targets.values()
    report = _judge(impl, settings, shade, bar=not quiet, piped=piped)
    _write_files(report, targets)
    _show(report, shade, verbose=verbose, quiet=quiet, piped=piped, repeat=["--config", str(config)] if config else [])
    raise typer.Exit(_code(report))


def _prefixes(only: Sequence[str]) -> tuple[str, ...]:
    words = tuple(word.strip().upper() for item in only for word in item.split(",") if word.strip())
    if only and not words:
        wrong("--only", "is empty; name a clause or a prefix.")
    try:
        select(words)
    except UnknownClauseError as error:
        wrong("--only", f"{error}.")
    return words


def _device(device: str) -> str:
    if device != "cpu":
        wrong("--device", f"{device!r} is not available in this version; available: cpu.")
    return device


def _isolation(isolation: str) -> str:
    if isolation == "sandbox":
        fail(
            Exit.NO_ISOLATION,
            "isolation sandbox is not available in this version",
            "for code that you trust: --isolation process (the default), which is a process of its own, not a jail",
            "for code that you do not trust: run conform inside a container or a virtual machine",
        )
    return isolation


def _targets(paths: dict[str, str]) -> dict[str, str]:
    """Return where reports go, by option; end with code 2, before anything runs, where they can't."""
    from conformkit.conformance.report.files import obstacle

    wanted = {option: path for option, path in paths.items() if path}
    for option, path in wanted.items():
        problem = obstacle(Path(path)) if path != _STDOUT else ""
        if problem:
            wrong(option, f"{problem}.")
    places = [path if path == _STDOUT else str(Path(path).resolve()) for path in wanted.values()]
    if len(set(places)) < len(places):
        wrong("--junit", f"and --json would both write to {wanted['--junit']}; name two places.")
    return wanted


def _judge(impl: str, settings: dict[str, Any], color: Color, *, bar: bool, piped: bool) -> Report:
    from conformkit.conformance.driver.head_start import head_start

    # torch takes a second to import: let it begin before the harness imports its own parts
    early = head_start(impl) if settings["isolation"] == "process" else None
    from conformkit.cli.failures import explained
    from conformkit.conformance import runner
    from conformkit.conformance.report import progress, terminal

    request = runner.RunRequest(impl=impl, **settings)
    page = terminal.console(sys.stderr, color)
    aside = contextlib.redirect_stdout(sys.stderr) if piped else contextlib.nullcontext()
    with explained(impl), aside, progress.bar(page, visible=bar and sys.stderr.isatty()) as step:
        return runner.run(request, step, early=early)


def _write_files(report: Report, targets: dict[str, str]) -> None:
    from conformkit.conformance.report.files import write
    from conformkit.conformance.report.json_report import as_json
    from conformkit.conformance.report.junit import as_junit

    forms = {"--json": as_json, "--junit": as_junit}
    for option, path in targets.items():
        text = forms[option](report)
        if path == _STDOUT:
            _print(text)
            continue
        try:
            write(Path(path), text)
        except OSError as error:
            fail(Exit.KIT_FAILED, f"the report could not be written to {path}: {error.strerror or error}")


def _print(text: str) -> None:
    """Print UTF-8 whatever the locale: a machine reads it. A reader who left changes no verdict."""
    with contextlib.suppress(BrokenPipeError):
        sys.stdout.flush()
        sys.stdout.buffer.write(text.encode())
        sys.stdout.flush()


def _show(report: Report, color: Color, *, verbose: bool, quiet: bool, piped: bool, repeat: Sequence[str]) -> None:
    from conformkit.conformance.report import terminal

    page = terminal.console(sys.stderr if piped else sys.stdout, color)
    with contextlib.suppress(BrokenPipeError):
        terminal.write(report, page, verbose=verbose, quiet=quiet or piped, repeat=repeat)


def _code(report: Report) -> Exit:
    if not report.complete:
        return Exit.INTERRUPTED
    return Exit.CONFORMS if report.conforms else Exit.DIFFERS
