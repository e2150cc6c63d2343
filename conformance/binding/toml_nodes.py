"""TOML values that know their line and refuse invalid contents: `conform.toml` is read with these.

ConfigError        conform.toml cannot be used; names file, line, problem and advice
"""

from __future__ import annotations

import os
import re
import stat
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from conformkit.conformance.binding.language import ExpressionError, names
from conformkit.conformance.binding.messages import hint, nearest, shown
from conformkit.conformance.binding.toml_lines import BARE, Key, key_lines
from conformkit.conformance.driver.foreign import fits

__all__ = ["ConfigError", "Node", "parse_document", "read_text"]

Option = TypeVar("Option", str, int)

MAX_BYTES = 256 * 1024
MAX_LINE = 4096
MAX_DOTS = 200
"""In one line: `tomllib` needs time quadratic in the parts of a key."""

_WORD = r"[^\W\d]\w*"
_FOLDER = r"\w(?:[\w-]*\w)?"
_MODULE = re.compile(rf"{_FOLDER}(?:\.{_FOLDER})*")
"""A folder may be called as no statement could import it: `01_gpt`, `my-gpt`."""
_PATH = re.compile(rf"(?:{_MODULE.pattern}:)?{_WORD}(?:\.{_WORD})*")


class ConfigError(ValueError):
    """The configuration cannot be used."""

    def __init__(self, path: Path, line: int | None, problem: str, advice: str = "") -> None:
        place = f"{path.name}, line {line}" if line else path.name
        super().__init__(f"{place}: {problem}{'; ' if advice else ''}{advice}")
        self.path, self.line, self.problem, self.advice = path, line, problem, advice


def read_text(path: Path, within: Path | None = None) -> str:
    """Return the text of a configuration file; refuse links that leave `within`, non-files and long files."""
    if within is not None and not path.resolve().is_relative_to(within.resolve()):
        raise ConfigError(path, None, "it is a link that leads out of its folder", "put the file itself there")
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
        with os.fdopen(descriptor, "rb") as stream:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise ConfigError(path, None, "it is not a regular file")
            content = stream.read(MAX_BYTES + 1)
    except OSError as error:
        raise ConfigError(path, None, f"it cannot be read: {error.strerror}") from None
    if len(content) > MAX_BYTES:
        raise ConfigError(path, None, f"it is larger than {MAX_BYTES // 1024} KiB")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ConfigError(path, line, "it is not UTF-8") from None


def parse_document(text: str, path: Path) -> Node:
    """Return the whole of a TOML document as a node."""
    lines = text.split("\n")
    for number, line in enumerate(lines, 1):
        if len(line) > MAX_LINE:
            raise ConfigError(path, number, f"the line is longer than {MAX_LINE} characters")
        if line.count(".") > MAX_DOTS:
            raise ConfigError(path, number, f"the line has more than {MAX_DOTS} dots")
    try:
        document = Node(tomllib.loads(text), (), path, key_lines(text))
    except RecursionError:
        raise ConfigError(path, None, "it is too deeply nested") from None
    except ValueError as error:
        message, _, place = str(error).rpartition(" (at ")
        found = re.search(r"line (\d+)", place)
        line_number = int(found[1]) if found else len(lines) if place else None
        raise ConfigError(path, line_number, f"not TOML: {shown(message or str(error), 200)[1:-1]}") from None
    _check_numbers(document)
    return document


def _check_numbers(document: Node) -> None:
    """Refuse whole numbers that TOML does not have: nobody's arithmetic has to hold for thousands of digits."""
    open_ = [document]
    for node in open_:  # grows during the loop
        if isinstance(node.value, int) and not fits(node.value):
            raise node.error("the number does not fit into 64 bits")
        if isinstance(node.value, dict | list):
            open_ += node.table().values() if isinstance(node.value, dict) else node.items()


@dataclass(frozen=True, slots=True)
class Node:
    """A TOML value, with the key it stands under and the file it comes from."""

    value: Any
    key: Key
    path: Path
    lines: Mapping[Key, int]

    @property
    def line(self) -> int | None:
        """The line of this value, or of the nearest enclosing one that has a line."""
        ends = range(len(self.key), 0, -1)
        return next((self.lines[self.key[:end]] for end in ends if self.key[:end] in self.lines), None)

    def error(self, problem: str, advice: str = "") -> ConfigError:
        """Return an error about this value."""
        dotted = ""
        for part in self.key:
            plain = part if isinstance(part, str) and BARE.fullmatch(part) else None
            dotted += f"[{part}]" if isinstance(part, int) else f".{plain or shown(part)}"
        return ConfigError(
            self.path, self.line, f"{dotted.removeprefix('.')}: {problem}" if dotted else problem, advice
        )

    def table(self, known: Iterable[str] | None = None, what: str = "key") -> dict[str, Node]:
        """Return the nodes of a table; refuse keys that are not among the known ones."""
        if not isinstance(self.value, dict):
            raise self.wrong("a table")
        nodes = {key: Node(value, (*self.key, key), self.path, self.lines) for key, value in self.value.items()}
        if known is not None:
            options = tuple(known)
            for key, node in nodes.items():
                if key not in options:
                    raise node.error(f"there is no {what} with this name", _advice(key, options))
        return nodes

    def items(self) -> list[Node]:
        """Return the nodes of a list."""
        if not isinstance(self.value, list):
            raise self.wrong("a list")
        return [Node(value, (*self.key, i), self.path, self.lines) for i, value in enumerate(self.value)]

    def text(self, limit: int = 1000) -> str:
        """Return a non-empty string."""
        if not isinstance(self.value, str):
            raise self.wrong("a string")
        if not 0 < len(self.value) <= limit:
            raise self.error(f"the string has {len(self.value)} characters, expected 1 to {limit}")
        return self.value

    def choice(self, options: Iterable[Option]) -> Option:
        """Return one of the options: a string, or a number where there are numbers among them."""
        by_text = {str(option): option for option in options}
        is_number = type(self.value) is int and any(type(option) is int for option in by_text.values())
        said = str(self.value) if is_number else self.text()
        if said not in by_text:
            problem = f"{shown(self.value)} is not one of {', '.join(by_text)}"
            raise self.error(problem, hint(nearest(said, tuple(by_text))))
        return by_text[said]

    def choices(self, options: Iterable[str]) -> tuple[str, ...]:
        """Return the strings of a list, each one of the options, without repetition."""
        options = tuple(options)
        found = tuple(item.choice(options) for item in self.items())
        if len(set(found)) < len(found):
            raise self.error("a value is listed twice")
        return found

    def flag(self) -> bool:
        """Return a boolean."""
        if not isinstance(self.value, bool):
            raise self.wrong("true or false")
        return self.value

    def whole(self, low: int, high: int) -> int:
        """Return an integer within bounds."""
        if not isinstance(self.value, int) or isinstance(self.value, bool):
            raise self.wrong("a whole number")
        if not low <= self.value <= high:
            raise self.error(f"it is {shown(self.value, 30)[1:-1]}, expected {low} to {high}")
        return self.value

    def positive(self) -> float:
        """Return a number above 0."""
        if not isinstance(self.value, (int, float)) or isinstance(self.value, bool):
            raise self.wrong("a number")
        if not 0 < self.value < float("inf"):
            raise self.error(f"it is {shown(self.value, 30)[1:-1]}, expected a finite number above 0")
        return float(self.value)

    def module(self) -> str:
        """Return a dotted name without slashes and leading dots: with those a path could leave the folder."""
        return self._dotted(_MODULE, "package.module")

    def attribute(self) -> str:
        """Return a dotted name, after that of its module or alone."""
        return self._dotted(_PATH, "package.module:name")

    def _dotted(self, pattern: re.Pattern[str], form: str) -> str:
        if not pattern.fullmatch(self.text(200)):
            raise self.error(f"{shown(self.value)} is not a dotted name", f'write "{form}", no file path')
        return self.text()

    def expression(self, known: Iterable[str], advice: str = "") -> str:
        """Return the text of an expression that uses known names only."""
        known = tuple(known)
        try:
            unknown = sorted(names(self.text()) - set(known))
        except ExpressionError as error:
            raise self.error(f"{shown(self.value)}: {error.problem}", hint(error.nearest, advice)) from None
        if unknown:
            problem = f"{shown(self.value)}: unknown name {shown(unknown[0])[1:-1]}"
            raise self.error(problem, _advice(unknown[0], known))
        return self.text()

    def wrong(self, wanted: str) -> ConfigError:
        """Return an error: this value has the wrong type."""
        words = {dict: "a table", list: "a list", str: "a string", bool: "true or false", int: "a whole number"}
        got = words.get(type(self.value), "a number" if isinstance(self.value, float) else "a date or time")
        return self.error(f"it is {got}, expected {wanted}")


def _advice(word: str, options: tuple[str, ...]) -> str:
    return hint(nearest(word, options), f"known: {', '.join(options)}")
