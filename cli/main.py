"""The command `conform`: a clean start, its streams, and the handling of unexpected errors.

The modules imported at the top are already loaded when Python starts: before the clean start, any other module could be
a foreign one.
"""

import gc
import os
import sys

from conformkit.cli import clean_start

__all__ = ["main"]

_WRONG_USAGE = 2
_KIT_FAILED = 5
_STOPPED = 130


def main() -> int:
    """Run the command of this process and return its exit code."""
    try:
        return _ended()
    except KeyboardInterrupt:  # before typer answers it, or after
        return _STOPPED


def _ended() -> int:
    _open_closed_streams()
    try:
        os.getcwd()  # noqa: PTH109 - pathlib is not imported before the start is clean
    except OSError as error:
        sys.stderr.write(f"conform: the current folder does not exist: {error.strerror}\n  change to another one, or")
        sys.stderr.write(' if it was created again: cd "$PWD"\n')
        return _WRONG_USAGE
    clean_start.ensure(sys.argv[1:])
    _show_what_the_locale_can()
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # oracles are small: more threads only take time from workers
    gc.set_threshold(20_000, 20, 20)  # imports make many small objects, and almost none of them is garbage
    code = _begun_early(sys.argv[1:])
    gc.freeze()  # or Python looks through all that there is once more when it exits
    try:
        sys.stdout.flush()
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or Python complains again when it exits
        if not isinstance(error, BrokenPipeError) and code != _KIT_FAILED:  # else a reader left, or it is reported
            return _unwritten(error)
    return code


def _open_closed_streams() -> None:
    """Redirect streams that a shell closed (`>&-`) to the null device, or the next file takes their number."""
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


def _begun_early(arguments: list[str]) -> int:
    from conformkit.cli import early

    try:
        early.begin(arguments)
        return _outcome()
    finally:
        early.end()


def _outcome() -> int:
    try:
        from conformkit.cli.app import app

        app(prog_name="conform")
    except SystemExit as error:
        if isinstance(error.__context__, BrokenPipeError):  # typer exits with 1 if a reader has left
            return 0
        return error.code if isinstance(error.code, int) else int(error.code is not None)
    except BrokenPipeError:
        return 0
    except Exception as error:  # noqa: BLE001 - the last place where an error becomes a sentence
        return _failed(error)
    return 0


def _failed(error: Exception) -> int:
    import errno

    from conformkit.cli.exits import complain, no_room

    if isinstance(error, OSError) and error.errno == errno.ENAMETOOLONG:
        complain(f"{str(error.filename)[:80]}… is too long for the name of a file")
        return _WRONG_USAGE
    if isinstance(error, ModuleNotFoundError) and error.name == "torch":
        return _without_torch()
    return _unwritten(error) if isinstance(error, OSError) and no_room(error) else _kit_failed(error)


def _without_torch() -> int:
    """Say what to install: this command needs torch itself, whatever is judged."""
    from conformkit.cli.exits import Exit, complain
    from conformkit.conformance.text import INSTALL_TORCH

    complain("PyTorch is not installed for the Python that runs conform, and this command needs it", INSTALL_TORCH)
    return Exit.NOT_LOADED


def _unwritten(error: OSError) -> int:
    """Report a full disk, or another reason why output could not be written: not a mistake of the kit."""
    from conformkit.cli.exits import Exit, complain

    what = error.filename or "what this command prints"
    complain(
        f"{what} could not be written completely: {error.strerror or error}",
        "free some space, or write to another place, and run it again; do not use the partial output",
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
