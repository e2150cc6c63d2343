"""`conform watch`: judge again whenever a file is saved."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, cast

import typer

from conformkit.cli.exits import Exit, complain, one_of
from conformkit.cli.options import (
    FORMATS,
    CodeArgument,
    ConfigPath,
    Dtype,
    Impl,
    Only,
    ProfileName,
    Shade,
    known_profiles,
    prefixes_of,
    the_code,
)

if TYPE_CHECKING:
    from rich.console import Console

    from conformkit.conformance.apps.watch.affected import Change
    from conformkit.conformance.apps.watch.session import Judged, WatchSession
    from conformkit.conformance.engine.request import RunRequest
    from conformkit.conformance.report.terminal import Color

__all__ = ["watch"]


def watch(
    context: typer.Context,
    code: CodeArgument = "",
    impl: Impl = "",
    only: Only = None,
    profile: ProfileName = "core",
    seed: Annotated[int, typer.Option(metavar="N", min=0, help="Seed of the inputs.")] = 0,
    dtype: Dtype = "",
    config: ConfigPath = None,
    color: Shade = "auto",
) -> None:
    """Judge an implementation, and again whenever a file is saved.

    What changed comes first, then the rest; it prints what is fixed and what broke. Ctrl-C ends it.

    Examples:
      conform watch --impl mypkg
      conform watch mypkg --only SDPA,MHA
    """
    impl = the_code(context, code, impl)
    from conformkit.conformance.engine.request import RunRequest

    profile = one_of("--profile", profile, known_profiles())
    request = RunRequest(
        impl, only=prefixes_of(only or [], profile=profile), profile=profile, seed=seed,
        config=config, dtype=one_of("--dtype", dtype, FORMATS) if dtype else "", processes=2, discover=True,
    )  # fmt: skip
    shade = cast("Color", one_of("--color", color, ("auto", "always", "never")))
    try:
        _watch(request, shade, repeat=["--config", str(config)] if config else [])
    except KeyboardInterrupt:
        raise typer.Exit(Exit.INTERRUPTED) from None


def _watch(request: RunRequest, shade: Color, *, repeat: Sequence[str]) -> None:
    from contextlib import closing

    from conformkit.cli.failures import explained
    from conformkit.conformance.apps.watch.session import WatchSession
    from conformkit.conformance.engine.finding import WHERE_NAMES_ARE, LoadFailure
    from conformkit.conformance.report import terminal

    page = terminal.console(sys.stdout, shade)
    with explained(request.impl):
        try:
            session = WatchSession(request)
        except FileNotFoundError as error:
            raise LoadFailure(str(error), advice=(WHERE_NAMES_ARE,)) from None
        if session.path is None:
            raise LoadFailure("its files are unknown, so nothing can be watched; name its folder")
    with closing(session):
        changed = None
        while True:
            _once(session, changed, page, repeat=repeat)
            sys.stdout.flush()
            changed = session.wait()
            _announce(session, changed, page)


def _once(session: WatchSession, changed: Change | None, page: Console, *, repeat: Sequence[str]) -> None:
    from conformkit.cli.failures import explained
    from conformkit.conformance.apps.watch.changes import write_outcome
    from conformkit.conformance.apps.watch.session import Early, Superseded, broke, mended

    def early(found: Early) -> None:
        words = f"{len(found.results)} clauses about it, in {found.seconds:.1f} s"
        results = list(found.results)
        write_outcome(page, words, mended(session.last, results), broke(session.last, results))
        sys.stdout.flush()

    if changed is not None and changed.silent:
        return
    try:
        with explained(session.request.impl):
            judged = session.judge(changed, early)
    except Superseded:
        return
    except typer.Exit as ended:
        if ended.exit_code != Exit.NOT_LOADED:
            raise
        complain("waiting for the next save; Ctrl-C ends")
        return
    if not judged.report.complete:
        raise KeyboardInterrupt
    _tell(judged, page, repeat)


def _tell(judged: Judged, page: Console, repeat: Sequence[str]) -> None:
    from conformkit.conformance.apps.watch.changes import write_outcome, write_rest
    from conformkit.conformance.apps.watch.session import broke, mended
    from conformkit.conformance.report import terminal

    report = judged.report
    if judged.before is None:
        terminal.write(report, page, repeat=repeat)
        page.print("watching; Ctrl-C ends", style="dim")
    else:
        new = broke(judged.before, report.results)
        write_outcome(page, "all clauses", mended(judged.before, report.results), new)
        write_rest(page, report, new, repeat, judged.seconds)


def _announce(session: WatchSession, changed: Change, page: Console) -> None:
    from conformkit.conformance.apps.watch.changes import write_change, write_verdict

    home = session.path.parent if session.path is not None else None
    names = [str(path.relative_to(home)) if home and path.is_relative_to(home) else str(path) for path in changed.files]
    page.print()
    write_change(page, time.strftime("%H:%M:%S"), names, changed.definitions)
    if changed.silent and session.last is not None:
        page.print("no code has changed since the last run:", style="dim")
        write_verdict(page, session.last)
