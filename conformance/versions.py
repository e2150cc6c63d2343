"""Which kit and which law a report was made with."""

from __future__ import annotations

from functools import cache
from importlib import metadata

from conformkit.spec.clauses import SPEC_VERSION

__all__ = ["SPEC_VERSION", "kit_version"]


@cache
def kit_version() -> str:
    """Return the version of the installed distribution; a source tree without installation has none."""
    try:
        return metadata.version("conformkit")
    except metadata.PackageNotFoundError:
        return "unknown"
