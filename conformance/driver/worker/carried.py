"""Find the worker's half of the kit in memory: in a sandbox no file of it can be seen.

The text of this module is the program that a sandbox starts. It gets the modules by a descriptor, and closes that
before anything else is loaded.
"""

from __future__ import annotations

import importlib
import marshal
import os
import sys
from collections.abc import Mapping, Sequence
from importlib.abc import InspectLoader
from importlib.machinery import ModuleSpec
from types import CodeType, ModuleType

__all__ = ["Carried", "CarriedModule", "main"]

CarriedModule = tuple[bool, str, CodeType]
"""Whether it is a package, its text, and what that is compiled to."""


class Carried(InspectLoader):
    """Finds and loads modules by their full names."""

    def __init__(self, modules: Mapping[str, CarriedModule]) -> None:
        self._modules = modules

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return what loads a module, if it was carried here."""
        del path, target
        known = fullname in self._modules
        return ModuleSpec(fullname, self, is_package=self.is_package(fullname)) if known else None

    def is_package(self, fullname: str) -> bool:
        """Whether it holds other modules."""
        return self._modules[fullname][0]

    def get_source(self, fullname: str) -> str:
        """Return its text."""
        return self._modules[fullname][1]

    def get_code(self, fullname: str) -> CodeType:
        """Return what is executed."""
        return self._modules[fullname][2]


def main(arguments: Sequence[str]) -> None:
    """Run a module's `main`. Arguments: the descriptor with all modules, the module's name, its own arguments."""
    descriptor, name, *own = arguments
    with os.fdopen(int(descriptor), "rb") as stream:
        modules = marshal.load(stream)  # noqa: S302 - the harness wrote it
    sys.meta_path.append(Carried(modules))
    importlib.import_module(name).main(own)
    os._exit(0)  # taking torch apart would keep the harness waiting


if __name__ == "__main__":
    main(sys.argv[1:])
