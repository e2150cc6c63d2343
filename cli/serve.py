"""`conform serve`: verdicts for other programs, as lines of JSON or as tools of a model."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from conformkit.cli.exits import Exit, complain, fail, one_of, wrong

if TYPE_CHECKING:
    from mcp.server.mcpserver import MCPServer

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
    mcp: Annotated[
        bool, typer.Option("--mcp", help="Be a server of the Model Context Protocol on stdin and stdout.")
    ] = False,
    hints: Annotated[
        int, typer.Option(metavar="1|2|3", min=1, max=3, help="What --mcp tells: as conform run has it.")
    ] = 3,
) -> None:
    """Judge what other programs send: a JSON object a line comes in, a verdict a line goes out.

    Answers come as they are ready. Docs: docs/judge.md.

    Examples:
      conform serve --isolation process < requests.jsonl
      conform serve --socket judge.sock -n 4
      conform serve --mcp
    """
    how = one_of("--isolation", isolation, ("process", "sandbox"))
    if mcp and socket is not None:
        wrong("--mcp", "speaks on stdin and stdout; leave out --socket.")
    if socket is not None and (socket.exists() or socket.is_symlink()):
        wrong("--socket", f"{str(socket)!r} exists; name a new file, or remove it if no server uses it.")
    from conformkit.conformance.api.judging import JudgePool
    from conformkit.conformance.driver.errors import IsolationUnavailable

    try:
        judges = JudgePool(workers, isolation=how, hidden=mcp, hints=hints)
    except IsolationUnavailable as error:
        fail(Exit.NO_ISOLATION, str(error), *error.advice)
    try:
        with judges:
            if mcp:
                _tools_of(judges, how).run("stdio")
            else:
                _serve(judges, socket)
    except KeyboardInterrupt:
        raise typer.Exit(Exit.INTERRUPTED) from None


def _tools_of(judges: JudgePool, isolation: str) -> MCPServer[Any]:
    try:
        from conformkit.cli.mcp_tools import tools_of
    except ModuleNotFoundError as error:
        if error.name is None or error.name.startswith("conformkit"):
            raise
        wrong("--mcp", f"needs {error.name}: pip install 'conformkit[mcp]'.")
    return tools_of(judges, isolation)


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
