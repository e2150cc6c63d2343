"""`conform run`: judge an implementation and report."""

from __future__ import annotations

import contextlib
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from conformkit.cli import early
from conformkit.cli.exits import Exit, complain, fail, one_of, wrong
from conformkit.cli.gate import BASELINE_FILE, changed_parts, gate_of, still_failing
from conformkit.cli.options import (
    FORMATS,
    CodeArgument,
    ConfigPath,
    Dtype,
    Impl,
    Isolation,
    Only,
    ProfileName,
    Shade,
    Strictness,
    Without,
    prefixes_of,
    the_code,
)
from conformkit.cli.reports import STDOUT, report_targets, write_files
from conformkit.conformance.driver.allocation import keep_freed_memory
from conformkit.spec.clauses import Level, profiles_of
from conformkit.spec.profiles import PROFILES

if TYPE_CHECKING:
    from conformkit.conformance.engine.finding import LoadFailure
    from conformkit.conformance.engine.request import RunOptions, RunRequest
    from conformkit.conformance.engine.results import Report
    from conformkit.conformance.report.terminal import Color

__all__ = ["run"]

_MOST_EXAMPLES = 100_000
"""Of a clause: more take days."""
_SECONDS = 600.0
"""Time limit of a run: right code takes about ten on a slow machine."""


def run(
    context: typer.Context,
    code: CodeArgument = "",
    impl: Impl = "",
    json_path: Annotated[
        str, typer.Option("--json", metavar="PATH", help="Write the report as JSON; - is stdout.")
    ] = "",
    failures_path: Annotated[
        str, typer.Option("--json-failures", metavar="PATH", help="Write the failures alone as JSON; - is stdout.")
    ] = "",
    junit_path: Annotated[
        str, typer.Option("--junit", metavar="PATH", help="Write the report as JUnit XML; - is stdout.")
    ] = "",
    html_path: Annotated[
        str, typer.Option("--html", metavar="PATH", help="Write the report as an HTML page, one file.")
    ] = "",
    sarif_path: Annotated[str, typer.Option("--sarif", metavar="PATH", help="Write the report as SARIF 2.1.0.")] = "",
    markdown_path: Annotated[
        str, typer.Option("--markdown", metavar="PATH", help="Write the report as Markdown.")
    ] = "",
    github: Annotated[
        bool,
        typer.Option(
            "--github",
            help="Annotate a GitHub job and add to its summary; disable workflow commands in what the code prints.",
        ),
    ] = False,
    only: Only = None,
    without: Without = None,
    profile: ProfileName = "",
    level: Strictness = "MUST",
    seed: Annotated[
        str,
        typer.Option(
            metavar="N|drawn",
            help="Seed of the inputs, 0 by default; the same one draws the same inputs. --strict draws one itself.",
        ),
    ] = "",
    strict: Annotated[
        bool,
        typer.Option(
            "--strict/--no-strict",
            help="Treat clauses that conform.toml disables as failed, use a random seed, and repeat calls in a clean "
            "process.",
        ),
    ] = False,
    thorough: Annotated[
        int | None,
        typer.Option(
            metavar="[EXAMPLES]",
            min=1,
            max=_MOST_EXAMPLES,
            help="Let Hypothesis try EXAMPLES inputs per clause, 25 if no number is given; takes minutes.",
        ),
    ] = None,
    device: Annotated[
        str,
        typer.Option(
            metavar="cpu|cuda|mps|ghost",
            help="The device on which the implementation computes; ghost exists in name only.",
        ),
    ] = "cpu",
    dtype: Dtype = "",
    hidden: Annotated[
        bool, typer.Option("--hidden", help="Show no drawn or wanted number and no seed in any report.")
    ] = False,
    isolation: Isolation = "process",
    seconds: Annotated[
        float | None,
        typer.Option(
            metavar="N",
            min=1,
            help="Stop after N seconds, 600 by default and never with --thorough; the rest is not run.",
        ),
    ] = None,
    seconds_per_call: Annotated[
        float | None,
        typer.Option(
            metavar="N",
            min=0.1,
            help="Longest time that one call may take; by default 20 s, more on a slow machine.",
        ),
    ] = None,
    processes: Annotated[
        int | None,
        typer.Option("-n", metavar="N", min=1, help="Judge with N workers; by default 2 if there are 2 cores."),
    ] = None,
    pages: Annotated[
        str, typer.Option(metavar="URL", help="Base URL of the pages of conform spec --html; failures link to them.")
    ] = "",
    config: ConfigPath = None,
    baseline: Annotated[
        Path | None,
        typer.Option(
            metavar="PATH",
            help=f"Accept the failures that this file lists; {BASELINE_FILE} with --update-baseline.",
        ),
    ] = None,
    update_baseline: Annotated[
        bool, typer.Option("--update-baseline", help="Write what fails now into the baseline, and accept it.")
    ] = False,
    stop: Annotated[
        bool, typer.Option("-x", "--stop-at-first", help="Stop at the first failure; the rest is not run.")
    ] = False,
    last_failed: Annotated[
        bool, typer.Option("--lf", "--last-failed", help="Only what did not pass in the last run; all if it passed.")
    ] = False,
    changed: Annotated[
        str, typer.Option(metavar="REV", help="Only clauses about what changed since that git revision.")
    ] = "",
    exit_zero: Annotated[
        bool, typer.Option("--exit-zero", help="Exit with 0 also if it does not conform, but not if it wasn't judged.")
    ] = False,
    hints: Annotated[
        int,
        typer.Option(metavar="1|2|3", min=1, max=3, help="1 shows the symptom, 2 also where to look, 3 the mistake."),
    ] = 3,
    verbose: Annotated[
        bool, typer.Option("-v", "--verbose", help="List every clause, with its error relative to the tolerance.")
    ] = False,
    warnings: Annotated[
        bool, typer.Option("--warnings", help="Show clauses that are SHOULD or MAY in full, not one line each.")
    ] = False,
    quiet: Annotated[bool, typer.Option("-q", "--quiet", help="Print the verdict line only.")] = False,
    color: Shade = "auto",
) -> None:
    """Judge an implementation and print a report.

    Components may have names of their own: they are looked for, unless conform.toml says where they are or --strict is
    given. Without --profile, what is found decides which clauses are judged.

    Exit code 0 if it conforms, or if all that is wrong is in the baseline, 1 if not; conform --help lists the others.


    Examples:
      conform run mypkg
      conform run mypkg --only SDPA --html report.html
    """
    keep_freed_memory()
    impl = the_code(context, code, impl)
    if verbose and quiet:
        wrong("--quiet", "contradicts --verbose; choose one.")
    gate = gate_of(baseline, update=update_baseline, partial=stop, exit_zero=exit_zero)
    profile = profile and _profiles(profile)
    prefixes = prefixes_of(only or [], profile=profile)
    how = one_of("--isolation", isolation, ("process", "sandbox", "none"))
    shade = cast("Color", one_of("--color", color, ("auto", "always", "never")))
    number, drawn = _seed(seed, strict=strict)
    chosen = still_failing(impl, prefixes, profile) if last_failed else prefixes
    options: RunOptions = {
        "profile": profile or profiles_of(chosen),
        "widens": not (profile or chosen or changed),
        "level": Level(one_of("--level", level, list(Level))),
        "stop": stop, "accepted": [*(gate.known or ())], "about": changed_parts(impl, changed) if changed else None,
        "only": chosen,
        "without": prefixes_of(without or [], "--without"),
        "seed": number, "drawn": drawn,
        "strict": strict, "discover": not strict, "isolation": how, "config": config,
        "device": one_of("--device", device, ("cpu", "cuda", "mps", "ghost")),
        "dtype": one_of("--dtype", dtype, FORMATS) if dtype else "",
        "seconds": seconds or (None if thorough else _SECONDS),
        "thorough": thorough or 0, "hints": hints, "hidden": hidden, "pages": _pages(pages),
        "processes": processes or min(2, os.cpu_count() or 1),
    }  # fmt: skip
    targets = report_targets(
        {"--json": json_path, "--junit": junit_path, "--html": html_path, "--sarif": sarif_path,
         "--markdown": markdown_path, "--json-failures": failures_path}
    )  # fmt: skip
    piped = STDOUT in targets.values()
    repeat = [*(["--config", str(config)] if config else []), *(["--thorough", str(thorough)] if thorough else [])]
    repeat += ["--seconds-per-call", f"{seconds_per_call:g}"] if seconds_per_call else []
    with _refusal_told(impl, targets, wanted=github, piped=piped), _commands_off(wanted=github, piped=piped):
        report = _judge(impl, options, shade, bar=not quiet, piped=piped, call_seconds=seconds_per_call)
        report = gate.against(report)
        write_files(targets, lambda option: _form(option)(report))
        _show(report, shade, verbose=verbose, warnings=warnings, quiet=quiet, piped=piped, repeat=repeat)
    if github:
        _tell_github(report, piped=piped)
    raise typer.Exit(gate.code(report))


def _seed(text: str, *, strict: bool) -> tuple[int, bool]:
    """Return the seed, and whether it was drawn: whoever knows the inputs beforehand can remember the answers."""
    if text == "drawn" or (strict and not text):
        from conformkit.conformance.engine.request import drawn_seed

        return drawn_seed(), True
    if text and not (text.isascii() and text.isdecimal() and len(text) < 20):
        wrong("--seed", f"{text!r} is not a seed; give a number from 0 on, or drawn.")
    return int(text or 0), False


def _profiles(text: str) -> str:
    """Return the names of profiles, separated by commas, each once."""
    names = [one_of("--profile", name.strip(), list(PROFILES)) for name in text.split(",")]
    return ",".join(dict.fromkeys(names))


def _pages(url: str) -> str:
    if url and not re.fullmatch(r"(https?|file)://[^\s<>\"']{1,400}", url):
        wrong("--pages", f"{url!r} is not a URL; give one that begins with https://, http:// or file://.")
    return url


@contextlib.contextmanager
def _commands_off(*, wanted: bool, piped: bool) -> Iterator[None]:
    """Keep a GitHub runner from reading what the implementation prints as commands."""
    if not wanted:
        yield
        return
    from conformkit.conformance.report.github import muted

    with muted(sys.stderr if piped else sys.stdout):
        yield


@contextlib.contextmanager
def _refusal_told(impl: str, targets: Mapping[str, str], *, wanted: bool, piped: bool) -> Iterator[None]:
    """Tell what shows findings in code, GitHub and SARIF, that there was nothing to judge: there is no report."""
    try:
        yield
    except typer.Exit as stop:
        refused = _refused(stop.__context__)
        if refused and wanted:
            from conformkit.conformance.report.github import refusal

            print(refusal(impl, *refused), file=sys.stderr if piped else sys.stdout, flush=True)
        if refused and "--sarif" in targets:
            from conformkit.conformance.report.sarif import refusal_as_sarif

            write_files({"--sarif": targets["--sarif"]}, lambda _: refusal_as_sarif(impl, *refused))
        raise


def _refused(error: BaseException | None) -> tuple[str, str] | None:
    """Return why code could not be judged at all, and the line at fault; None where something else ended the run."""
    from conformkit.conformance.binding.toml_nodes import ConfigError
    from conformkit.conformance.engine.finding import LoadFailure

    match error:
        case LoadFailure():
            return error.problem, error.where
        case ConfigError():
            return str(error), f"{error.path}:{error.line or 1}"
    return None


def _tell_github(report: Report, *, piped: bool) -> None:
    from conformkit.conformance.report.github import commands, summarize

    print(*commands(report), sep="\n", file=sys.stderr if piped else sys.stdout, flush=True)
    problem = summarize(report)
    if problem:
        complain(problem)


def _judge(
    impl: str, options: RunOptions, color: Color, *, bar: bool, piped: bool, call_seconds: float | None
) -> Report:  # fmt: skip
    # torch takes a second to import: that begins before the harness imports its own parts
    start = early.begun(impl, options["isolation"], options["processes"])
    from conformkit.cli.failures import explained
    from conformkit.conformance import runner
    from conformkit.conformance.driver.client.pace import slowness
    from conformkit.conformance.driver.limits import Limits
    from conformkit.conformance.engine.finding import LoadFailure
    from conformkit.conformance.engine.request import RunRequest
    from conformkit.conformance.report import progress, terminal

    usual = Limits()
    options["limits"] = replace(usual, call_seconds=call_seconds or usual.call_seconds * slowness())
    request = RunRequest(impl, **options)
    page = terminal.console(sys.stderr, color)
    aside = contextlib.redirect_stdout(sys.stderr) if piped else contextlib.nullcontext()
    with explained(impl), aside, progress.bar(page, visible=bar and sys.stderr.isatty()) as step:
        try:
            return runner.run(request, step, early=start)
        except runner.NothingConcerned:
            fail(Exit.CONFORMS, "nothing to judge: what changed is used by no part of the contract that is there")
        except LoadFailure as failure:
            raise _with_offer(failure, request) from None


def _with_offer(failure: LoadFailure, request: RunRequest) -> LoadFailure:
    """Add what `conform adapt` would find, where nothing could be bound and nothing is declared."""
    if not failure.nowhere or request.discover:  # what was looked for was not found
        return failure
    from conformkit.conformance.apps.adapt.offer import offer

    told = offer(request)
    return failure.advised(told) if told else failure


def _form(option: str) -> Callable[[Report], str]:
    """Return the function that renders a format; the others are not imported."""
    match option:
        case "--html":
            from conformkit.conformance.report.html import as_html as form
        case "--sarif":
            from conformkit.conformance.report.sarif import as_sarif as form
        case "--markdown":
            from conformkit.conformance.report.markdown import as_markdown as form
        case "--junit":
            from conformkit.conformance.report.junit import as_junit as form
        case "--json-failures":
            from conformkit.conformance.report.json_failures import as_json_failures as form
        case _:
            from conformkit.conformance.report.json_report import as_json as form
    return form


def _show(
    report: Report, color: Color, *, verbose: bool, warnings: bool, quiet: bool, piped: bool, repeat: Sequence[str]
) -> None:
    from conformkit.conformance.report import terminal
    from conformkit.conformance.report.last_failed import remember_failed
    from conformkit.conformance.report.tally import last_time, remember

    before = last_time(report)
    if report.complete and not report.hidden:
        remember(report)
    if (report.complete or report.late) and not report.hidden:
        remember_failed(report, Path.cwd())

    page = terminal.console(sys.stderr if piped else sys.stdout, color)
    with contextlib.suppress(BrokenPipeError):
        terminal.write(
            report, page, verbose=verbose, warnings=warnings, quiet=quiet or piped, repeat=repeat, before=before
        )
