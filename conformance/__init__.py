"""The suite and what runs it: driver, binding, judge, report.

Importing this package is light; `check`, `port` and `parametrize_with_clauses` are fetched when asked for. The worker
that holds the code under test imports from here too, and must not pull in the oracle.
"""

from __future__ import annotations

from typing import Any

__all__ = ["check", "clause", "parametrize_with_clauses", "port"]


def __getattr__(name: str) -> Any:
    if name == "check":
        from conformkit.conformance.api.checking import check

        return check
    if name == "parametrize_with_clauses":
        from conformkit.conformance.api.embed import parametrize_with_clauses

        return parametrize_with_clauses
    if name == "clause":
        from conformkit.conformance.suite.registry import clause

        return clause
    if name == "port":
        from conformkit.conformance.api.porting import port

        return port
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
