"""What a script needs before its first step: imports, small helpers, arrays."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from conformkit.conformance.apps.repro.literals import array_text, nested
from conformkit.conformance.apps.repro.naming import Imports
from conformkit.spec.arrays import Array

__all__ = ["Page"]


_INLINE = 200
"""Maximum count of numbers in the script; if there are more, they go into a file next to it."""
_STANDARD = ("copy", "importlib.util", "pathlib", "sys")


@dataclass(slots=True)
class Page:
    """Names, arrays and helpers, collected while the steps are written. Nothing is stored under two names."""

    imports: Imports
    torch: bool
    arrays: dict[str, Array] = field(default_factory=dict)
    weights: dict[str, dict[str, Array]] = field(default_factory=dict)
    helpers: dict[str, None] = field(default_factory=dict)
    modules: set[str] = field(default_factory=set)

    @property
    def library(self) -> str:
        """The library of arrays."""
        return "torch" if self.torch else "np"

    def free(self, name: str) -> str:
        """Return a name for a variable that shadows no import."""
        while name in self.imports.taken:
            name += "_"
        return name

    def array(self, array: Array, name: str) -> str:
        """Return the variable of an input; a new one with a similar name if there is none yet."""
        for known, other in self.arrays.items():
            if not known.startswith("want") and _identical(array, other):
                return known
        return self.keep(array, name)

    def keep(self, array: Array, name: str) -> str:
        """Return a new variable for an array."""
        own, number = self.free(name), 1
        while own in self.arrays:
            number += 1
            own = self.free(f"{name}{number}")
        self.arrays[own] = array
        return own

    def named_weights(self, arrays: Mapping[str, Array]) -> str:
        """Return the variable of a dictionary of parameters."""
        for name, known in self.weights.items():
            if known.keys() == arrays.keys() and all(_identical(known[key], arrays[key]) for key in known):
                return name
        name = self.free("weights" if not self.weights else f"weights{len(self.weights) + 1}")
        self.weights[name] = dict(arrays)
        return name

    @property
    def inline(self) -> bool:
        """Whether the numbers are few enough for the script."""
        return sum(a.size for a in self.stored().values() if a.size and not (a == a.flat[0]).all()) <= _INLINE

    def stored(self) -> dict[str, Array]:
        """Return all arrays by their names in the file."""
        weights = {f"{name}: {key}": array for name, own in self.weights.items() for key, array in own.items()}
        return {**self.arrays, **weights}

    def heading(self) -> Iterator[str]:
        """Yield the lines that import."""
        own = list(self.imports.lines())
        modules = self.modules | {name for name in ("sys", "importlib.util") if any(f"{name}." in o for o in own)}
        modules |= set() if self.inline else {"pathlib"}
        yield from (f"import {name}" for name in _STANDARD if name in modules)
        yield from ["", "import numpy as np", *(["import torch"] if self.torch else []), ""]
        yield from own

    def data(self) -> Iterator[str]:
        """Yield the lines that give the arrays their names."""
        yield from self._written() if self.inline else self._read()

    def _written(self) -> Iterator[str]:
        for name, array in self.arrays.items():
            yield f"{name} = {array_text(array, torch=self._is_native(name))}"
        for name, arrays in self.weights.items():
            yield f"{name} = {{"
            yield from (f"    {key!r}: {self._indented(array)}," for key, array in arrays.items())
            yield "}"

    def _indented(self, array: Array) -> str:
        rows = nested(array, self.library)
        return array_text(array, torch=self.torch).replace(rows, rows.replace("\n", "\n    "))

    def _read(self) -> Iterator[str]:
        yield 'arrays = np.load(pathlib.Path(__file__).with_suffix(".npz"))'
        native = "torch.from_numpy({})" if self.torch else "{}"
        for name in self.arrays:
            yield f"{name} = {(native if self._is_native(name) else '{}').format(f'arrays[{name!r}]')}"
        for name in self.weights:
            start, item = f"{name}: ", native.format("arrays[key]")
            yield f"{name} = {{key[{len(start)}:]: {item} for key in arrays if key.startswith({start!r})}}"

    def _is_native(self, name: str) -> bool:
        """Whether it is passed to the implementation, rather than compared with its output."""
        return self.torch and not name.startswith("want")


def _identical(one: Array, other: Array) -> bool:
    return one.dtype == other.dtype and np.array_equal(one, other, equal_nan=one.dtype.kind == "f")
