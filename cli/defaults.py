"""Defaults of options, from the table [tool.conformkit] of the pyproject.toml in the current folder.

[tool.conform] is something else: it holds what an implementation declares about itself.

The folder may belong to the code under test. So the table cannot name a file, single clauses, or a weaker isolation;
the defaults it sets are printed, and the verdict names the profile; `conform grade` does not read it. A CI gate in such
a folder should pass `--impl` and `--profile` itself.
"""

from __future__ import annotations

import difflib
import os
import tomllib
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import typer

from conformkit.cli.exits import complain

__all__ = ["COMMANDS", "KEYS", "defaults"]

COMMANDS = ("run", "watch", "compare", "repro", "inspect")
KEYS: Mapping[str, type] = {
    "impl": str, "profile": str, "level": str, "seed": int, "isolation": str, "processes": int, "hints": int,
    "color": str,
}  # fmt: skip
_FILE, _TABLE = "pyproject.toml", "[tool.conformkit]"
_MAX_BYTES = 1 << 20


def defaults(command: str | None, options: Collection[str] = tuple(KEYS)) -> dict[str, dict[str, Any]]:
    """Return defaults for options that are not given, by command, as click expects them; print what was found.

    A command uses those entries of the table that it has an option for.
    """
    if command not in COMMANDS:
        return {}
    found = {name: value for name, value in _table().items() if name in options}
    if found:
        complain(f"defaults from {_FILE}: {', '.join(f'{name} = {value}' for name, value in found.items())}")
    return {command: found}


def _table() -> dict[str, Any]:
    path = Path(_FILE)
    try:
        text = path.read_text(encoding="utf-8") if path.is_file() and path.stat().st_size <= _MAX_BYTES else ""
        table = tomllib.loads(text) if "conformkit" in text else {}
    except (OSError, UnicodeDecodeError):
        return {}
    except tomllib.TOMLDecodeError as error:
        raise _wrong(f"is not valid TOML: {error}") from None
    for name in ("tool", "conformkit"):
        table = table.get(name, {})
        if not isinstance(table, dict):
            raise _wrong(f"{_TABLE} is not a table")
    return {name: _checked(name, value) for name, value in table.items()}


def _checked(name: str, value: Any) -> Any:
    if name not in KEYS:
        near = difflib.get_close_matches(name, KEYS, n=1)
        raise _wrong(
            f"{_TABLE} has {name!r}, expected one of {', '.join(KEYS)}{f'; nearest: {near[0]}' if near else ''}"
        )
    if type(value) is not KEYS[name]:
        kind = "a string" if KEYS[name] is str else "a whole number"
        raise _wrong(f"{_TABLE}: {name} is {value!r}, expected {kind}")
    if name == "isolation" and value not in {"process", "sandbox"}:
        raise _wrong(f"{_TABLE}: isolation is {value!r}, expected process or sandbox (none: command line only)")
    return value


def _wrong(problem: str) -> typer.BadParameter:
    return typer.BadParameter(f"{problem}.", param_hint=f"'{os.curdir}/{_FILE}'")
