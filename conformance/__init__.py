"""The suite and what runs it: driver, binding, judge, report.

Importing this package is light; what programs call (`check`, `judge`, `port`, …) is fetched when asked for. The worker
that holds the code under test imports from here too, and must not pull in the oracle.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from conformkit.conformance.api.checking import check
    from conformkit.conformance.api.embed import parametrize_with_clauses
    from conformkit.conformance.api.judging import JudgePool, judge
    from conformkit.conformance.api.judgment import Failure, Judgment
    from conformkit.conformance.api.porting import port
    from conformkit.conformance.engine.finding import LoadFailure
    from conformkit.conformance.engine.request import RunRequest
    from conformkit.conformance.suite.registry import clause

__all__ = [
    "Failure",
    "JudgePool",
    "Judgment",
    "LoadFailure",
    "RunRequest",
    "check",
    "clause",
    "judge",
    "parametrize_with_clauses",
    "port",
]  # fmt: skip

_PLACES = {
    "Failure": "api.judgment", "JudgePool": "api.judging", "Judgment": "api.judgment", "LoadFailure": "engine.finding",
    "RunRequest": "engine.request", "check": "api.checking", "clause": "suite.registry", "judge": "api.judging",
    "parametrize_with_clauses": "api.embed", "port": "api.porting",
}  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_PLACES[name]}"), name)
