"""Keep the kit's own modules out of an implementation's reach, in the worker that imports it."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

__all__ = ["keep_apart"]

_OWN = "conformkit"
_NEEDED = f"{_OWN}.conformance.driver"


class _Refusing(MetaPathFinder):
    """Finds only the worker's half of the driver, and keeps other finders from looking for the kit."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        del path, target
        needed = f"{_NEEDED}.".startswith(f"{fullname}.") or fullname.startswith(f"{_NEEDED}.")
        if fullname.startswith(f"{_OWN}.") and not needed:
            raise ModuleNotFoundError(f"No module named {fullname!r}", name=fullname)
        return None


def keep_apart() -> None:
    """Refuse imports of the reference, the law and the judging code; their files can still be read."""
    sys.meta_path.insert(0, _Refusing())
