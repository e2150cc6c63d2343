"""`conform serve`: verdicts for other programs, as lines of JSON."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from conformkit.cli.exits import Exit, complain, fail, one_of, wrong

if TYPE_CHECKING:
    from conformkit.conformance.api.judging import JudgePool

__all__ = ["serve"]


def serve(
    workers: Annotated[int, typer.Option("-n", "--workers", metavar="N", min=1, help="Codes judged at a time.")] = 1,
    isolation: Annotated[
        str, typer.Option(metavar="process|sandbox", help="Where codes run; sandbox is for what nobody has read.")
    ] = "sandbox",
    socket: Annotated[
        Path | None, typer.Option(metavar="PATH", help="Listen at a new socket file of yours; by default, stdin.")
    ] = None,
) -> None:
    """Judge what other programs send: a JSON object a line comes in, a verdict a line goes out.

    Answers come as they are ready. Docs: docs/judge.md.

    Examples:
      conform serve --isolation process < requests.jsonl
      conform serve --socket judge.sock -n 4
    """
    how = one_of("--isolation", isolation, ("process", "sandbox"))
    if socket is not None and (socket.exists() or socket.is_symlink()):
        wrong("--socket", f"{str(socket)!r} exists; name a new file, or remove it if no server uses it.")
    from conformkit.conformance.api.judging import JudgePool
    from conformkit.conformance.driver.errors import IsolationUnavailable

    try:
        judges = JudgePool(workers, isolation=how)
    except IsolationUnavailable as error:
        fail(Exit.NO_ISOLATION, str(error), *error.advice)
    try:
        with judges:
            _serve(judges, socket)
    except KeyboardInterrupt:
        raise typer.Exit(Exit.INTERRUPTED) from None


def _serve(judges: JudgePool, socket: Path | None) -> None:
    from conformkit.conformance.api.serving import answer_lines, lines_of, listen

    if socket is None:
        answer_lines(lines_of(sys.stdin.buffer), _write, judges)
        return
    try:
        listen(socket, judges, lambda: complain(f"listening at {socket}; Ctrl-C ends it"))
    except OSError as error:
        fail(Exit.USAGE, f"{socket} can't be listened at: {error.strerror or error}")


def _write(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()
