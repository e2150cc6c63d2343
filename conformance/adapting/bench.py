"""Tables of conform.toml tried in the worker: what is built and called as they say, and what it gives."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from conformkit.conformance.adapting.toml_text import table_text
from conformkit.conformance.binding.config import parse_config
from conformkit.conformance.binding.exports import ExportMismatch, bind_export
from conformkit.conformance.binding.rules import PatternError
from conformkit.conformance.binding.sizes import NoSizeError
from conformkit.conformance.binding.toml_nodes import ConfigError
from conformkit.conformance.driver.errors import DriverError, ImplementationFailure, WorkerLost
from conformkit.conformance.evidence.checks import ClauseFailure, NotApplicable
from conformkit.conformance.evidence.draws import Draw
from conformkit.conformance.implementation import Implementation, Link
from conformkit.conformance.subject import Instance, Subject, example_inputs
from conformkit.spec.components import COMPONENTS

__all__ = ["TROUBLE", "Bench", "Shown", "missing_setting"]

TROUBLE = (
    DriverError, ClauseFailure, NotApplicable, NoSizeError, PatternError, ExportMismatch, ConfigError, ValueError,
)  # fmt: skip
"""What may come of trying something that need not be right."""
_TRIES = 60


@dataclass(frozen=True, slots=True)
class Shown:
    """What one call returned: the shape of what was taken of it, the shape that is wanted, and the whole in words."""

    shape: tuple[int, ...]
    wanted: tuple[int, ...]
    structure: str

    @property
    def fits(self) -> bool:
        """Whether it has the contract's shape."""
        return self.shape == self.wanted

    def keys(self) -> list[int | str]:
        """Return the names or numbers of what is in it; none where it is one array."""
        kind, _, inside = self.structure.partition("(")
        if not inside:
            return []
        parts = _top_level(inside.removesuffix(")"))
        named = [re.match(r"(\w+): ", part) for part in parts]
        if kind not in {"tuple", "list"} and all(named):
            return [match[1] for match in named if match]
        return list(range(len(parts)))


class Bench:
    """Tries tables of components in the worker of an implementation that binds nothing yet."""

    def __init__(self, implementation: Implementation) -> None:
        self.implementation = implementation
        self.link: Link = implementation
        """What subjects ask: the implementation, or what stands before it."""
        self.parts: dict[str, Mapping[str, Any]] = {}
        """Tables of the components that were chosen, by their names."""
        self.sizes: Mapping[str, Any] = {}
        """Sizes to try with, where others than the usual ones are needed."""
        self.refusals: list[str] = []
        """What came of what could not be built and called."""
        self._exports: dict[str, Mapping[str, Any]] = {}

    def subject(self, component: str, table: Mapping[str, Any]) -> Subject:
        """Return the component that a table declares, not yet built. Raises what is in TROUBLE."""
        config = parse_config(table_text(component, table))
        free = table.get("generate", {}).get("path", "")
        described = self.export(component, free) if ":" in free else None
        bound = bind_export(COMPONENTS[component], self.export(component, table["path"]), config, described)
        bound.offers["gradients"] = self.link.is_torch
        subject = Subject(bound, self.link)
        subject.tries = _TRIES
        subject.declared = config.rules_for(component)
        return subject

    def taken(self) -> list[str]:
        """Return where the components are that were chosen."""
        return [table["path"] for table in self.parts.values()]

    def export(self, component: str, path: str) -> Mapping[str, Any]:
        """Describe what is at a path. Raises DriverError."""
        if path not in self._exports:
            name = COMPONENTS[component].export
            request = {"op": "describe", "targets": {name: path}, "module": None}
            self._exports[path] = self.implementation.request(request).header["exports"][name]
        return self._exports[path]

    def shown(self, component: str, table: Mapping[str, Any], **sizes: Any) -> Shown:
        """Build, call once, and say what came back, in the first number format that it takes."""
        subject = self.subject(component, table)
        sizes = {**self.sizes, **sizes}
        try:
            return _called(subject, sizes)
        except ImplementationFailure:
            subject.bound.dtype, subject.bound.precision = "float32", "float32"
            try:
                return _called(subject, sizes)
            except ImplementationFailure:
                subject.bound.dtype = "float64"
            raise

    def is_causal(self, component: str, table: Mapping[str, Any]) -> bool:
        """Whether what comes later leaves earlier outputs as they are, with the causality that the table asks for."""
        subject = self.subject(component, table)
        instance = self._instance(subject)
        inputs = example_inputs(instance, Draw(0, "causal"), further=0)[0]
        changed = inputs.copy()
        changed[:, -1] = example_inputs(instance, Draw(1, "causal"), further=0)[0][:, -1]  # no shift: norms hide it
        before, after = instance(inputs)[:, :-1], instance(changed)[:, :-1]
        return bool(np.isfinite(before).all() and np.allclose(before, after, rtol=1e-6, atol=1e-7))

    def mixes_rows(self, component: str, table: Mapping[str, Any]) -> bool:
        """Whether rows of a batch depend on one another, or on their place: then the first axis may be another one."""
        try:
            instance = self._instance(self.subject(component, table))
            inputs = example_inputs(instance, Draw(0, "rows"), further=0)[0]
            other = example_inputs(instance, Draw(1, "rows"), further=0)[0]
            changed = np.concatenate([other[:1], inputs[1:]])
            before, turned, after = instance(inputs), instance(inputs[::-1])[::-1], instance(changed)
        except WorkerLost:
            raise
        except TROUBLE:
            return True
        return not (np.allclose(before, turned, atol=1e-6) and np.allclose(before[1:], after[1:], atol=1e-6))

    def extents(self, component: str, table: Mapping[str, Any]) -> set[int]:
        """Return the extents of its parameters, as constructed with the usual sizes."""
        listing = self._instance(self.subject(component, table)).listing
        return {extent for p in listing if p["shape"] for extent in p["shape"]}

    def _instance(self, subject: Subject) -> Instance:
        try:
            return subject.build(**self.sizes)
        except ImplementationFailure:
            subject.bound.dtype, subject.bound.precision = "float32", "float32"
            return subject.build(**self.sizes)


def _called(subject: Subject, sizes: Mapping[str, Any]) -> Shown:
    tokens = sizes.get("tokens", 5)
    instance = subject.build(**{name: size for name, size in sizes.items() if name != "tokens"})
    inputs = example_inputs(instance, Draw(0, "adapt"), further=0, tokens=tokens)
    reply, out = instance.unchecked(*inputs)
    given, kind = inputs[0], subject.bound.component.inputs
    rows = given.shape if kind[0] == "ids" else given.shape[:-1]
    width = instance.sizes["vocab_size"] if kind[0] == "ids" else inputs[2].shape[-1] if kind[0] == "q" else 0
    width = width or instance.sizes.get("d_v") or instance.sizes["d_model"]
    return Shown(tuple(out.shape), (*rows, width), str(reply.get("structure", "")))


def missing_setting(failure: BaseException) -> str:
    """Return the setting that code asked for and did not find, or nothing."""
    if not isinstance(failure, ImplementationFailure):
        return ""
    pattern = {"KeyError": r"^'(\w+)'$", "AttributeError": r"has no attribute '(\w+)'"}.get(failure.type, r"(?!)")
    match = re.search(pattern, failure.message)
    return match[1] if match else ""


def _top_level(text: str) -> list[str]:
    parts, depth = [""], 0
    for letter in text:
        depth += (letter == "(") - (letter == ")")
        if letter == "," and not depth:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts if part.strip()]
