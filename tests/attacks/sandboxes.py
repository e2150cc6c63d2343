"""Whether a sandbox is available. Where CI promises one, its absence is a failure."""

from __future__ import annotations

import os

import pytest

from conformkit.conformance.driver.errors import IsolationUnavailable
from conformkit.conformance.driver.sandbox.bubblewrap import program

__all__ = ["sandbox"]


def _missing() -> str:
    """Return why no sandbox is available, or nothing."""
    try:
        program()
    except IsolationUnavailable as reason:
        return str(reason)
    return ""


_reason = _missing()
sandbox = pytest.mark.skipif(
    bool(_reason) and os.environ.get("CONFORM_NEEDS_SANDBOX") != "1", reason=_reason or "there is one"
)
