"""The names of the user's own code, and how a script imports them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from conformkit.conformance.apps.repro.scene import Irreproducible
from conformkit.conformance.driver.client.interface import Driver

__all__ = ["Imports"]

_STAND_IN = "implementation_"
"""Prefix of a module's name if its file's name is taken, or is not an identifier."""


class Imports:
    """The names that a script takes from the user's modules, and the lines that import them."""

    def __init__(self, driver: Driver, module: str, folder: Path) -> None:
        self._driver = driver
        self._module = module
        self._folder = folder
        self._found: dict[str, Mapping[str, Any]] = {}
        self._names: dict[str, list[str]] = {}

    def export(self, path: str) -> Mapping[str, Any]:
        """Describe what is exported there: `path` in full, its `kind`, its `methods`."""
        if path not in self._found:
            self._found[path] = self._describe(path)
        return self._found[path]

    def name(self, path: str) -> str:
        """Return the expression for `module:attribute`, or for an attribute of the implementation."""
        module, _, attribute = str(self.export(path)["path"]).rpartition(":")
        if not all(part.isidentifier() for part in [*module.split("."), *attribute.split(".")]):
            raise Irreproducible("its name cannot be imported by a line of Python")
        first = attribute.partition(".")[0]
        names = self._names.setdefault(module, [])
        if first not in names:
            names.append(first)
        return attribute

    @property
    def taken(self) -> frozenset[str]:
        """The names that are imported."""
        return frozenset(name for names in self._names.values() for name in names)

    def lines(self) -> Iterator[str]:
        """Yield the lines that import; `sys` must be there already."""
        for entry in self.folders:
            yield f"sys.path.insert(0, {str(entry)!r})"
        for module, names in self._names.items():
            if module.startswith(_STAND_IN) and self._driver.location.path is not None:
                yield from _of_file(module, self._driver.location.path, names)
            else:
                yield f"from {module} import {', '.join(sorted(names))}"

    @property
    def folders(self) -> list[Path]:
        """Yield the import paths to add; a script's own folder and installed packages are known to Python."""
        entries = dict.fromkeys(self._driver.location.sys_path)
        known = {"site-packages", "dist-packages"}
        return [e for e in reversed(entries) if e != self._folder and e.name not in known]

    def _describe(self, path: str) -> Mapping[str, Any]:
        """Ask the worker; a bare name is searched for in the same way as when it was loaded."""
        asked: list[Mapping[str, str | None]] = [{path: path}]
        if ":" not in path:
            asked = [{path: None}, {path: f"{self._module}:{path}"}]
        for targets in asked:
            reply = self._driver.request({"op": "describe", "targets": targets, "module": None}, {})
            export: Mapping[str, Any] = reply.header["exports"][path]
            if export["found"]:
                return export
        raise Irreproducible("the called object is not found in a second search")


def _of_file(module: str, path: Path, names: Sequence[str]) -> Iterator[str]:
    yield f"spec = importlib.util.spec_from_file_location({module!r}, {str(path)!r})"
    yield "module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)"
    yield "spec.loader.exec_module(module)"
    for name in names:
        yield f"{name} = module.{name}"
