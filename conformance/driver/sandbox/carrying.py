"""Pack the worker's half of the driver for a sandbox, in which no file of the kit can be seen."""

from __future__ import annotations

import functools
import marshal
import os
from importlib.machinery import SourceFileLoader
from pathlib import Path

from conformkit.conformance.driver.worker import carried

__all__ = ["packed", "starter"]

_DRIVER = Path(__file__).parents[1]
_ABOVE = ("conformkit", "conformkit.conformance")
_WORKER_HALF = (
    "__init__.py", "allocation.py", "errors.py", "import_roots.py", "location.py", "notebooks.py", "syntax.py",
    "wire/*.py", "worker/*.py", "worker/frameworks/*.py", "worker/ghost/*.py",
)  # fmt: skip
"""The modules of the driver that a worker needs."""


def packed() -> int:
    """Return a descriptor from which all modules can be read, once. Close it."""
    descriptor = os.memfd_create("modules")
    with os.fdopen(os.dup(descriptor), "wb") as stream:
        stream.write(_modules())
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor


def starter() -> str:
    """Return the program that reads them, as text."""
    return Path(carried.__file__).read_text(encoding="utf-8")


@functools.cache
def _modules() -> bytes:
    found: dict[str, carried.CarriedModule] = {name: (True, "", compile("", name, "exec")) for name in _ABOVE}
    for file in sorted(file for pattern in _WORKER_HALF for file in _DRIVER.glob(pattern)):
        steps = file.relative_to(_DRIVER).with_suffix("").parts
        is_package = steps[-1] == "__init__"
        name = ".".join((_ABOVE[-1], _DRIVER.name, *(steps[:-1] if is_package else steps)))
        loader = SourceFileLoader(name, str(file))
        code = loader.get_code(name)
        if code is not None:
            found[name] = is_package, loader.get_source(name) or "", code
    return marshal.dumps(found)
