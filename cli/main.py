"""The command `conform`: a clean start, its streams, and what becomes of an error nobody expected.

What is imported at the top is loaded already when Python starts: until the start is clean, a module of any other name
could be anyone's.
"""

import os
import sys

from conformkit.cli import clean_start

__all__ = ["main"]

_WRONG_USAGE = 2
_KIT_FAILED = 5


def main() -> int:
    """Run the command of this process and return its exit code."""
    _open_closed_streams()
    try:
        os.getcwd()  # noqa: PTH109 - pathlib is not imported before the start is clean
    except OSError as error:
        sys.stderr.write(f"conform: the current folder is not to be found: {error.strerror}\n  go into another one, or")
        sys.stderr.write(' where it was made anew: cd "$PWD"\n')
        return _WRONG_USAGE
    clean_start.ensure(sys.argv[1:])
    _show_what_the_locale_can()
    code = _outcome()
    try:
        sys.stdout.flush()
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or Python complains once more at its end
        if not isinstance(error, BrokenPipeError) and code != _KIT_FAILED:  # else a reader left, or it is said already
            return _unwritten(error)
    return code


def _open_closed_streams() -> None:
    """Lead what a shell closed (`>&-`) to nowhere: else the next file or socket that is opened takes its number."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            nowhere = os.open(os.devnull, os.O_RDWR)
            if nowhere != number:
                os.dup2(nowhere, number)
                os.close(nowhere)
            setattr(sys, name, os.fdopen(number, "w" if number else "r", closefd=False))


def _show_what_the_locale_can() -> None:
    import io

    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def _outcome() -> int:
    try:
        from conformkit.cli.app import app

        app(prog_name="conform")
    except SystemExit as error:
        if isinstance(error.__context__, BrokenPipeError):  # typer ends with 1 where a reader has left
            return 0
        return error.code if isinstance(error.code, int) else int(error.code is not None)
    except BrokenPipeError:
        return 0
    except Exception as error:  # noqa: BLE001 - the last place where an error becomes a sentence
        return _failed(error)
    return 0


def _failed(error: Exception) -> int:
    from conformkit.cli.exits import no_room

    return _unwritten(error) if isinstance(error, OSError) and no_room(error) else _kit_failed(error)


def _unwritten(error: OSError) -> int:
    """Say that the disk is full, or what else keeps the output from where it should go: no mistake of the kit."""
    from conformkit.cli.exits import Exit, complain

    what = error.filename or "what this command prints"
    complain(
        f"{what} could not be written whole: {error.strerror or error}",
        "free some space, or write to another place, and run it again; what is there by now says nothing",
    )
    return Exit.KIT_FAILED


def _kit_failed(error: Exception) -> int:
    import traceback

    from conformkit.cli.exits import Exit, complain

    if os.environ.get("CONFORM_DEBUG") == "1":
        traceback.print_exception(error)
        return Exit.KIT_FAILED
    frames = traceback.extract_tb(error.__traceback__)
    place = f" ({frames[-1].filename}:{frames[-1].lineno})" if frames else ""
    complain(
        f"the kit itself failed, which says nothing about the implementation: {type(error).__name__}: {error}{place}",
        "please report it with what the same command prints when CONFORM_DEBUG=1 is set",
    )
    return Exit.KIT_FAILED
