"""`conform watch`: judge again whenever a file is saved."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from conformkit.cli.exits import Exit, complain, one_of
from conformkit.cli.options import (
    FORMATS,
    Config,
    Dtype,
    Impl,
    Only,
    Profile,
    Shade,
    check_named,
    known_profiles,
    prefixes_of,
)

if TYPE_CHECKING:
    from rich.console import Console

    from conformkit.conformance.apps.watch.affected import Change
    from conformkit.conformance.apps.watch.session import Judged, Session
    from conformkit.conformance.report.terminal import Color

__all__ = ["watch"]


def watch(
    impl: Impl,
    only: Only = None,
    profile: Profile = "core",
    seed: Annotated[int, typer.Option(metavar="N", min=0, help="Draws other inputs.")] = 0,
    dtype: Dtype = "",
    config: Config = None,
    color: Shade = "auto",
) -> None:
    """Judge it, and again whenever a file is saved.

    What changed comes first, then the rest; it says what is mended and what broke. Ctrl-C ends it.

    Example: conform watch --impl mypkg
    """
    check_named(impl)
    settings: dict[str, Any] = {
        "only": prefixes_of(only or []), "profile": one_of("--profile", profile, known_profiles()), "seed": seed,
        "config": config, "dtype": one_of("--dtype", dtype, FORMATS) if dtype else "", "processes": 2,
    }  # fmt: skip
    shade = cast("Color", one_of("--color", color, ("auto", "always", "never")))
    try:
        _watch(impl, settings, shade)
    except KeyboardInterrupt:
        raise typer.Exit(Exit.INTERRUPTED) from None


def _watch(impl: str, settings: dict[str, Any], shade: Color) -> None:
    from contextlib import closing

    from conformkit.cli.failures import explained
    from conformkit.conformance.apps.watch.session import Session
    from conformkit.conformance.engine.loading import WHERE_NAMES_ARE, LoadFailure
    from conformkit.conformance.engine.request import RunRequest
    from conformkit.conformance.report import terminal

    page = terminal.console(sys.stdout, shade)
    with explained(impl):
        try:
            session = Session(RunRequest(impl=impl, **settings))
        except FileNotFoundError as error:
            raise LoadFailure(str(error), advice=(WHERE_NAMES_ARE,)) from None
        if session.path is None:
            raise LoadFailure("its files are not known, so nothing can be watched; name its folder")
    with closing(session):
        changed = None
        while True:
            _once(session, changed, page, repeat=["--config", str(settings["config"])] if settings["config"] else [])
            sys.stdout.flush()
            changed = session.wait()
            _announce(session, changed, page)


def _once(session: Session, changed: Change | None, page: Console, *, repeat: Sequence[str]) -> None:
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


def _announce(session: Session, changed: Change, page: Console) -> None:
    from conformkit.conformance.apps.watch.changes import write_change, write_verdict

    home = session.path.parent if session.path is not None else None
    names = [str(path.relative_to(home)) if home and path.is_relative_to(home) else str(path) for path in changed.files]
    page.print()
    write_change(page, time.strftime("%H:%M:%S"), names, changed.definitions)
    if changed.silent and session.last is not None:
        page.print("nothing that runs differs from what was judged last:", style="dim")
        write_verdict(page, session.last)
