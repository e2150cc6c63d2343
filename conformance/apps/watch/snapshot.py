"""The current files of an implementation, read again only if they look changed.

There are a few dozen small files: checking each of them every few milliseconds has no measurable cost, works on every
file system, and needs no library.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from conformkit.conformance.driver.location import read_source, sources

__all__ = ["Files", "Lookout"]

Files = Mapping[Path, bytes]

_PAUSE = 0.03
"""Seconds between two checks; more if a check takes long."""
_SHARE = 20
"""A check takes at most one part in this many of the time."""
_CONFIG = "conform.toml"


@dataclass(slots=True)
class Lookout:
    """Reads the sources of an implementation and its conform.toml."""

    root: Path
    config: Path | None = None
    _known: dict[Path, tuple[tuple[int, int, int], bytes]] = field(default_factory=dict)
    pause: Callable[[float], None] = time.sleep

    def look(self) -> Files:
        """Return all files with their contents. Files that are gone or unreadable are left out."""
        found: dict[Path, tuple[tuple[int, int, int], bytes]] = {}
        for path in self._paths():
            try:
                facts = path.stat()
            except OSError:
                continue
            stamp = (facts.st_mtime_ns, facts.st_size, facts.st_ino)
            known = self._known.get(path)
            content = known[1] if known is not None and known[0] == stamp else read_source(path)
            if content is not None:
                found[path] = (stamp, content)
        self._known = found
        return {path: content for path, (_, content) in found.items()}

    def wait(self, seen: Files) -> Files:
        """Return the files once they differ from `seen` and are unchanged in two checks, so that writing has ended."""
        last = self.look()
        while True:
            started = time.perf_counter()
            now = self.look()
            if now == last and now != seen:
                return now
            last = now
            self.pause(max(_PAUSE, _SHARE * (time.perf_counter() - started)))

    def _paths(self) -> Iterator[Path]:
        yield from sources(self.root)
        home = self.root if self.root.is_dir() else self.root.parent
        yield from {home / _CONFIG, self.root.parent / _CONFIG, *([self.config] if self.config else [])}
