"""Exit codes, and how a command prints what is wrong, why, and what to do."""

from __future__ import annotations

import contextlib
import difflib
import errno
import sys
from collections.abc import Sequence
from enum import IntEnum
from typing import NoReturn

import typer

__all__ = ["Exit", "complain", "fail", "no_room", "one_of", "wrong"]


class Exit(IntEnum):
    """The meaning of a command's exit code."""

    CONFORMS = 0
    DIFFERS = 1
    USAGE = 2
    NOT_LOADED = 3
    NO_ISOLATION = 4
    KIT_FAILED = 5
    WORSE = 6
    INTERRUPTED = 130


_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


def no_room(error: OSError) -> bool:
    """Whether the disk, or the user's quota on it, is full."""
    return error.errno in _FULL


def complain(problem: str, *advice: str) -> None:
    """Print one sentence to stderr, and indented below it what to do."""
    from conformkit.conformance.text import plain

    with contextlib.suppress(OSError):
        print(f"conform: {plain(problem)}", *(f"  {plain(line)}" for line in advice if line), sep="\n", file=sys.stderr)


def fail(code: Exit, problem: str, *advice: str) -> NoReturn:
    """Print what is wrong and exit with that code."""
    complain(problem, *advice)
    raise typer.Exit(code)


def wrong(option: str, problem: str) -> NoReturn:
    """Exit with the code for wrong usage, after a usage line that names the option."""
    from conformkit.conformance.text import plain

    raise typer.BadParameter(plain(problem), param_hint=f"'{option}'")


def one_of(option: str, value: str, allowed: Sequence[str]) -> str:
    """Return the allowed value that is meant, ignoring case; suggest the nearest if there is none."""
    by_lower = {item.lower(): item for item in allowed}
    if value.lower() in by_lower:
        return by_lower[value.lower()]
    near = difflib.get_close_matches(value.lower(), by_lower, n=1, cutoff=0.5)
    hint = f"; nearest: {by_lower[near[0]]}" if near else ""
    wrong(option, f"{value!r} is not one of {', '.join(allowed)}{hint}.")
