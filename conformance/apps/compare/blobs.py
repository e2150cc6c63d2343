"""Read the objects of a git repository as bytes: nothing is checked out, and nothing that is configured runs.

One `git cat-file --batch` answers, in an empty repository of our own that borrows the other's objects. It knows no
configuration, attributes or filters, fetches nothing, and says the size of an object before its content.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from conformkit.conformance.driver.scratch import held_folder

__all__ = ["ALONE", "Blobs", "NoRevision", "TreeEntry", "blobs_of", "entries_of"]

ALONE = {
    "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull, "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_ATTR_NOSYSTEM": "1", "GIT_ALLOW_PROTOCOL": "", "GIT_NO_LAZY_FETCH": "1", "GIT_TERMINAL_PROMPT": "0",
    "GIT_NO_REPLACE_OBJECTS": "1",
}  # fmt: skip
"""Variables with which git reads no settings of the user or the system, and fetches nothing."""
_SECONDS = 60
_MOST_BYTES = 256 << 20
_MOST_OBJECTS = 20_000
_LONGEST_NAME = 255


class NoRevision(LookupError):
    """There is no such revision, or it does not contain that path, or more than is read; the text says which."""


@dataclass(frozen=True, slots=True)
class TreeEntry:
    """One line of a tree: `mode` is git's, 0o040000 for a folder, 0o120000 for a link."""

    mode: int
    name: str
    id: str


@dataclass(slots=True)
class Blobs:
    """Answers of one running git. What is read of all objects together is bounded in number and in bytes."""

    process: subprocess.Popen[bytes]
    objects: int = 0
    size: int = 0
    late: threading.Event = field(default_factory=threading.Event)

    def read(self, name: str) -> tuple[str, bytes] | None:
        """Return the kind and the content of an object, by id or as `commit:path`; None if there is none.

        Raises NoRevision beyond the limits, before the content is read.
        """
        if "\n" in name or self.process.stdin is None:
            return None
        self.objects += 1
        if self.objects > _MOST_OBJECTS:
            raise NoRevision(f"it holds more than {_MOST_OBJECTS} files and folders at that revision")
        try:
            self.process.stdin.write(os.fsencode(name) + b"\n")
            self.process.stdin.flush()
        except OSError:
            raise self._lost() from None
        words = self._line().split()
        if len(words) != 3:
            return None
        kind, size = words[1].decode(), int(words[2])
        self.size += size
        if self.size > _MOST_BYTES:
            raise NoRevision(f"it holds more than {_MOST_BYTES >> 20} MiB at that revision, which is the limit")
        return kind, self._exactly(size + 1)[:-1]

    def end(self) -> None:
        """Kill git, since it took too long."""
        self.late.set()
        self.process.kill()

    def _line(self) -> bytes:
        assert self.process.stdout is not None
        line = self.process.stdout.readline(4096)
        if not line.endswith(b"\n"):
            raise self._lost()
        return line

    def _exactly(self, size: int) -> bytes:
        assert self.process.stdout is not None
        content = self.process.stdout.read(size)
        if len(content) < size:
            raise self._lost()
        return content

    def _lost(self) -> NoRevision:
        return NoRevision(
            f"git did not answer in {_SECONDS} s" if self.late.is_set() else "git cannot read its objects"
        )


@contextlib.contextmanager
def blobs_of(objects: Path, form: str) -> Iterator[Blobs]:
    """Read from a folder of objects whose ids have a format, sha1 or sha256; git is ended in any case."""
    with held_folder() as own:
        environment = {**os.environ, **ALONE, "HOME": str(own)}
        for name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_CONFIG_PARAMETERS", "GIT_CONFIG_COUNT"):
            environment.pop(name, None)
        init = ["git", "init", "--bare", "--quiet", "--template=", f"--object-format={form}", str(own)]
        subprocess.run(init, check=True, capture_output=True, timeout=_SECONDS, env=environment)  # noqa: S603 - git, no shell
        environment |= {"GIT_DIR": str(own), "GIT_OBJECT_DIRECTORY": str(objects)}
        process = subprocess.Popen(
            ["git", "cat-file", "--batch"], env=environment, cwd=own, stdin=subprocess.PIPE, stdout=subprocess.PIPE,  # noqa: S607
            stderr=subprocess.DEVNULL,
        )  # fmt: skip
        found = Blobs(process)
        timer = threading.Timer(_SECONDS, found.end)
        timer.start()
        try:
            yield found
        finally:
            timer.cancel()
            process.kill()
            process.communicate()


def entries_of(tree: bytes, width: int) -> Iterator[TreeEntry]:
    """Yield the entries of a tree whose ids have that many bytes. Raises NoRevision where it is none."""
    at = 0
    while at < len(tree):
        blank, end = tree.find(b" ", at), tree.find(b"\0", at)
        if not at < blank < end <= len(tree) - 1 - width or not tree[at:blank].isdigit():
            raise NoRevision("a folder of that revision cannot be read")
        name = os.fsdecode(tree[blank + 1 : end])
        if name in {"", ".", ".."} or "/" in name or "\\" in name or end - blank - 1 > _LONGEST_NAME:
            raise NoRevision("it holds a name that no file can have")
        yield TreeEntry(int(tree[at:blank], 8), name, tree[end + 1 : end + 1 + width].hex())
        at = end + 1 + width
