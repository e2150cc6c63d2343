"""The harness starts clean: nothing of the current folder or of PYTHON* variables shadows its modules.

An installed `conform` only has to remove its script's folder from the path. If a variable, or `python -m` in some
folder, adds other entries, the interpreter is started again before anything is imported from there; therefore this
module imports only `os` and `sys`.
"""

import os
import sys
from collections.abc import Mapping, Sequence

__all__ = ["IMPORT_PATH", "clean_environment", "ensure", "must_restart"]

IMPORT_PATH = "CONFORM_IMPORT_PATH"
"""Keeps the user's PYTHONPATH: the implementation is still searched for there, the kit's modules are not."""

_HARMFUL = ("PYTHONBREAKPOINT", "PYTHONHOME", "PYTHONINSPECT", "PYTHONOPTIMIZE", "PYTHONSTARTUP", "PYTHONWARNINGS")
"""Variables that load code, strip assertions or change warnings; PYTHONPATH is the seventh."""


def ensure(arguments: Sequence[str]) -> None:
    """Return only in a clean process: this one, or the one that replaces it."""
    if not sys.flags.safe_path and sys.path[:1] == [os.path.dirname(os.path.realpath(sys.argv[0]))]:
        del sys.path[0]
    if sys.executable and must_restart(os.environ, sys.path, safe=bool(sys.flags.safe_path)):
        command = [sys.executable, "-P", "-m", "conformkit.cli", *arguments]
        os.execve(sys.executable, command, clean_environment(os.environ))  # noqa: S606 - no shell is wanted
    os.environ["PYTHONSAFEPATH"] = "1"  # for the processes that this one starts


def must_restart(environment: Mapping[str, str], path: Sequence[str], *, safe: bool) -> bool:
    """Return whether foreign modules could shadow the kit's."""
    if any(environment.get(name) for name in _HARMFUL) or _foreign(environment):
        return True
    return not safe and bool(path) and path[0] in {"", os.getcwd()}


def clean_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of the new process: harmful variables gone, the user's import path under another name."""
    kept = {name: value for name, value in environment.items() if name not in {*_HARMFUL, "PYTHONPATH"}}
    foreign = _foreign(environment)
    own = [entry for entry in _entries(environment) if entry not in foreign]
    if own:
        kept["PYTHONPATH"] = os.pathsep.join(own)
    before = [entry for entry in environment.get(IMPORT_PATH, "").split(os.pathsep) if entry]
    if foreign or before:
        places = [os.path.abspath(entry) for entry in [*foreign, *before]]
        kept[IMPORT_PATH] = os.pathsep.join(dict.fromkeys(places))
    return kept


def _entries(environment: Mapping[str, str]) -> list[str]:
    return [entry for entry in environment.get("PYTHONPATH", "").split(os.pathsep) if entry]


def _foreign(environment: Mapping[str, str]) -> list[str]:
    """Entries of PYTHONPATH other than those the kit was loaded from: some machines install packages that way."""
    here = os.path.realpath(__file__)
    kit = os.path.join("conformkit", "cli", os.path.basename(here))
    return [entry for entry in _entries(environment) if os.path.realpath(os.path.join(entry, kit)) != here]
