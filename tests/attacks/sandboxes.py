"""Whether a sandbox is available. Where CI promises one, its absence is a failure."""

from __future__ import annotations

from conformkit.conformance.driver.errors import IsolationUnavailable
from conformkit.conformance.driver.sandbox.bubblewrap import program
from tests.needs import without

__all__ = ["sandbox"]


def _missing() -> str:
    """Return why no sandbox is available, or nothing."""
    try:
        program()
    except IsolationUnavailable as reason:
        return str(reason)
    return ""


sandbox = without("SANDBOX", _missing())
