"""The line of every key and list item of a TOML text.

`tomllib` gives values without positions. This is a second, shallow pass over a text that is known to be valid, so
that semantic errors can name their line as syntax errors do.
"""

from __future__ import annotations

import re
import tomllib

__all__ = ["BARE", "Key", "key_lines"]

Key = tuple[str | int, ...]
"""The path from the top of a document to a value."""
BARE = re.compile(r"[A-Za-z0-9_-]+")
"""A bare key (without quotes)."""


def key_lines(text: str) -> dict[Key, int]:
    """Return the line of every key and list item of a valid TOML text."""
    return _Scanner(text.replace("\r\n", "\n")).scan()


class _Scanner:
    """One pass over a valid TOML text."""

    def __init__(self, text: str) -> None:
        self.text, self.at, self.line, self.counted = text, 0, 1, 0
        self.found: dict[Key, int] = {}
        self.tables: dict[Key, int] = {}

    def scan(self) -> dict[Key, int]:
        prefix: Key = ()
        while self.skip():
            if self.text[self.at] != "[":
                self.pair(prefix)
                continue
            several = self.text.startswith("[[", self.at)
            self.at += 2 if several else 1
            prefix = self.name(())
            self.at += 2 if several else 1
            if several:
                self.tables[prefix] = self.tables.get(prefix, -1) + 1
                prefix = (*prefix, self.tables[prefix])
        return self.found

    def skip(self, extra: str = "") -> bool:
        """Skip whitespace, comments and the given punctuation; return whether anything follows."""
        pattern = re.compile(rf"(?:[ \t\n{re.escape(extra)}]+|#[^\n]*)*")
        self.at = match.end() if (match := pattern.match(self.text, self.at)) else self.at
        return self.at < len(self.text)

    def name(self, prefix: Key) -> Key:
        """Read a dotted key and note the line of each of its parts."""
        while True:
            self.skip(".")
            if self.text[self.at] in "\"'":
                start = self.at
                self.string()
                part = str(tomllib.loads(f"k={self.text[start : self.at]}")["k"])
            elif bare := BARE.match(self.text, self.at):
                part, self.at = bare[0], bare.end()
            else:
                return prefix
            prefix = (*prefix, part)
            self.note(prefix)

    def note(self, key: Key) -> None:
        self.line += self.text.count("\n", self.counted, self.at)
        self.counted = self.at
        self.found.setdefault(key, self.line)

    def pair(self, prefix: Key) -> None:
        key = self.name(prefix)
        self.skip("=")
        self.value(key)

    def value(self, key: Key) -> None:
        opening = self.text[self.at]
        if opening in "\"'":
            self.string()
        elif opening == "[":
            self.at += 1
            index = 0
            while self.skip(",") and self.text[self.at] != "]":
                self.note((*key, index))
                self.value((*key, index))
                index += 1
            self.at += 1
        elif opening == "{":
            self.at += 1
            while self.skip(",") and self.text[self.at] != "}":
                self.pair(key)
            self.at += 1
        else:
            while self.at < len(self.text) and self.text[self.at] not in ",]}#\n":
                self.at += 1

    def string(self) -> None:
        """Skip a string of any of the four kinds."""
        quote = self.text[self.at]
        fence = quote * 3 if self.text.startswith(quote * 3, self.at) else quote
        self.at += len(fence)
        while not self.text.startswith(fence, self.at):
            self.at += 2 if quote == '"' and self.text[self.at] == "\\" else 1
        self.at += len(fence)
        if len(fence) == 3:  # one or two more quotes may belong to the end of the text
            while self.text.startswith(quote, self.at):
                self.at += 1
