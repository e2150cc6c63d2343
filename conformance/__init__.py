"""The suite and what runs it: driver, binding, judge, report.

Importing this package is light; `check` and `parametrize_with_clauses` are fetched when asked for. The worker that
holds the code under test imports from here too, and must not pull in the oracle.
"""

from __future__ import annotations

from typing import Any

__all__ = ["check", "clause", "parametrize_with_clauses"]


def __getattr__(name: str) -> Any:
    if name in {"check", "parametrize_with_clauses"}:
        from conformkit.conformance.api import embed

        return getattr(embed, name)
    if name == "clause":
        from conformkit.conformance.suite.registry import clause

        return clause
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
