"""Templates of arguments as Python."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from keyword import iskeyword
from typing import Any, ClassVar

from conformkit.conformance.apps.repro.helpers import STRIDED_NUMPY, STRIDED_TORCH
from conformkit.conformance.apps.repro.page import Page

__all__ = ["Filled"]


def _named(name: str, value: str) -> str:
    """Return a named argument; the implementation chooses the name, which may not be an identifier."""
    return f"{name}={value}" if name.isidentifier() and not iskeyword(name) else f"**{{{name!r}: {value}}}"


@dataclass(frozen=True, slots=True)
class Filled:
    """Writes arguments: arrays by `inputs`, their variables, and the object by `component`."""

    page: Page
    inputs: Mapping[str, str]
    component: str

    def arguments(self, header: Mapping[str, Any]) -> str:
        """Return the text between the parentheses."""
        given = [self.text(item) for item in header.get("args") or []]
        named = [_named(name, self.text(item)) for name, item in (header.get("kwargs") or {}).items()]
        return ", ".join(given + named)

    def text(self, template: Any) -> str:
        """Return the expression that a template stands for."""
        if isinstance(template, list):
            return f"[{', '.join(map(self.text, template))}]"
        if not isinstance(template, dict):
            return repr(template)
        for key, write in self._WRITERS.items():
            if key in template:
                return write(self, template)
        return f"{{{', '.join(f'{key!r}: {self.text(value)}' for key, value in template.items())}}}"

    def _tensor(self, template: Mapping[str, Any]) -> str:
        text = self.inputs[template["$tensor"]]
        if template.get("cast"):
            text += f".{'to' if self.page.torch else 'astype'}({self.page.library}.{template['cast']})"
        if template.get("strided"):
            self.page.helpers[STRIDED_TORCH if self.page.torch else STRIDED_NUMPY] = None
            text = f"strided({text})"
        return text

    def _object(self, template: Mapping[str, Any]) -> str:
        return f"{self.page.imports.name(template['$object'])}({self.arguments(template)})"

    _WRITERS: ClassVar[dict[str, Callable[[Filled, Mapping[str, Any]], str]]] = {
        "$tensor": _tensor,
        "$object": _object,
        "$name": lambda self, template: self.page.imports.name(template["$name"]),
        "$dtype": lambda self, template: f"{self.page.library}.{template['$dtype']}",
        "$self": lambda self, _: self.component,
    }
