"""Run the commands in the README and update their output there: `python docs/tour.py`; `--check` only compares.

A block of ```console with one command and a following block of ```text are a command and its output, in a terminal of
100 columns. The picture, docs/run.svg, shows a whole run; the README shows a part of it.
"""

from __future__ import annotations

import io
import os
import re
import shlex
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import DIMMED_MONOKAI
from rich.text import Text

__all__ = ["DRAWN", "commands", "drawn", "outdated", "shown"]

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
PICTURE = ROOT / "docs" / "run.svg"
COLUMNS = 100
DRAWN = "conform run --impl examples/three_mistakes"
"""The command whose output is drawn."""

_PAIR = re.compile(r"(```console\n(?P<command>conform [^\n]*)\n```\n\n```text\n)(?P<text>.*?)(```\n)", re.DOTALL)
_FONTS = re.compile(r"\s*@font-face \{.*?\}", re.DOTALL)


@cache
def colored(command: str) -> str:
    """Run a command from the README in the project's folder; return its output, with colors."""
    _, *arguments = shlex.split(command)
    environment = {**os.environ, "COLUMNS": str(COLUMNS), "PYTHONUTF8": "1", "FORCE_COLOR": "1"}
    environment.pop("NO_COLOR", None)
    with tempfile.TemporaryDirectory() as cache:  # a first run: nothing is known of the one before
        done = subprocess.run(
            [sys.executable, "-P", "-m", "conformkit.cli", *arguments], cwd=ROOT,
            env=environment | {"XDG_CACHE_HOME": cache}, capture_output=True, text=True, encoding="utf-8", check=False,
        )  # fmt: skip
    if done.stderr.strip():
        raise RuntimeError(f"{command}: {done.stderr.strip()}")
    return done.stdout


def output(command: str) -> str:
    """Return a command's output without colors."""
    return "".join(f"{line.rstrip()}\n" for line in Text.from_ansi(colored(command)).plain.splitlines())


def shown(readme: str) -> str:
    """Return the README with the current output of its commands."""
    return _PAIR.sub(lambda match: f"{match[1]}{output(match['command'])}{match[4]}", readme)


def commands(readme: str) -> list[str]:
    """Return the commands whose output the README shows."""
    return [match["command"] for match in _PAIR.finditer(readme)]


def outdated(readme: str) -> list[str]:
    """Return the commands whose output differs from the README."""
    return [match["command"] for match in _PAIR.finditer(readme) if output(match["command"]) != match["text"]]


def drawn(command: str) -> str:
    """Return a picture of a terminal in which a command has run. It loads no fonts from the network."""
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True)
    console.print(Text.assemble(f"$ {command}\n", Text.from_ansi(colored(command))))
    svg = console.export_svg(title=command, theme=DIMMED_MONOKAI, unique_id="run")
    return "".join(f"{line.rstrip()}\n" for line in _FONTS.sub("", svg).splitlines())


def main(arguments: list[str]) -> int:
    """Write the README and the picture, or with --check report what would change; return the exit code."""
    readme = README.read_text(encoding="utf-8")
    if arguments == ["--check"]:
        old = outdated(readme)
        for command in old:
            print(f"README.md shows outdated output of `{command}`: run python docs/tour.py", file=sys.stderr)
        return int(bool(old))
    README.write_text(shown(readme), encoding="utf-8")
    PICTURE.write_text(drawn(DRAWN), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
