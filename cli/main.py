"""The command `conform`: a clean start, its streams, and what becomes of an error nobody expected.

What is imported at the top is loaded already when Python starts: until the start is clean, a module of any other name
could be anyone's.
"""

import os
import sys

from conformkit.cli import clean_start

__all__ = ["main"]


def main() -> int:
    """Run the command of this process and return its exit code."""
    clean_start.ensure(sys.argv[1:])
    _show_what_the_locale_can()
    code = _outcome()
    try:
        sys.stdout.flush()
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or Python complains once more at its end
        if not isinstance(error, BrokenPipeError):  # which is a reader who left, as `head` does
            return _kit_failed(error)
    return code


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
        return error.code if isinstance(error.code, int) else int(error.code is not None)
    except BrokenPipeError:
        return 0
    except Exception as error:  # noqa: BLE001 - the last place where an error becomes a sentence
        return _kit_failed(error)
    return 0


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
