"""Optional parts: without one its tests skip, unless CONFORM_NEEDS_<PART>=1 says that it must be there.

`.ci/run` sets all of them, so that nothing is left out in silence.
"""

from __future__ import annotations

import importlib
import os
import warnings
from typing import Any

import pytest

__all__ = ["PARTS", "needed", "optional", "without"]

MODULES = {"transformers": "PEERS", "x_transformers": "PEERS", "sklearn": "DIGITS", "sacrebleu": "TRANSLATION"}
"""Packages, with the part that they are."""
PARTS = frozenset({*MODULES.values(), "BROWSER", "GHOST", "GIT", "SANDBOX", "SECCOMP"})


def needed(part: str) -> bool:
    """Return whether a part must be there."""
    assert part in PARTS, part
    return os.environ.get(f"CONFORM_NEEDS_{part}") == "1"


def optional(module: str) -> Any:
    """Import a package, or skip the test. Raises ImportError where its part is needed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # it is not our code that is out of date
        return importlib.import_module(module) if needed(MODULES[module]) else pytest.importorskip(module)


def without(part: str, reason: str) -> pytest.MarkDecorator:
    """Return a mark that skips a test for this reason; for none where there is no reason, or the part is needed."""
    return pytest.mark.skipif(bool(reason) and not needed(part), reason=reason or "it is there")
