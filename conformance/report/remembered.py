"""What is remembered from run to run, in the user's cache and never next to the judged code."""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from conformkit.conformance.driver.scratch import cache_folder
from conformkit.conformance.report.files import write

__all__ = ["keep", "recall"]


def recall(kind: str, about: Sequence[str]) -> Any:
    """Return what was kept of a kind about the same; None if nothing was, or it can't be read."""
    try:
        return json.loads(_file(kind, about).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


def keep(kind: str, about: Sequence[str], value: Any) -> None:
    """Keep a value, as JSON; if it can't be written, it is not kept."""
    path = _file(kind, about)
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        write(path, json.dumps(value))


def _file(kind: str, about: Sequence[str]) -> Path:
    return cache_folder() / kind / f"{hashlib.sha256(json.dumps([*about]).encode()).hexdigest()[:32]}.json"
