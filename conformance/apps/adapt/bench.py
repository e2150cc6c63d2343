"""Tables of conform.toml tried in the worker: what is built and called as they say, and what it gives."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from conformkit.conformance.apps.adapt.toml_text import table_text
from conformkit.conformance.assertions.checks import ClauseFailure, NotApplicable
from conformkit.conformance.assertions.draws import Draw
from conformkit.conformance.binding.config import Config, parse_config
from conformkit.conformance.binding.exports import ExportMismatch, bind_export
from conformkit.conformance.binding.rules import PatternError
from conformkit.conformance.binding.sizes import NoSizeError
from conformkit.conformance.binding.toml_nodes import ConfigError
from conformkit.conformance.driver.errors import DriverError, ImplementationFailure, WorkerLost
from conformkit.conformance.engine.implementation import Implementation
from conformkit.conformance.probing.mask_trial import settle_masks
from conformkit.conformance.probing.probe import probe
from conformkit.conformance.subject.component import Instance, Subject
from conformkit.conformance.subject.link import Link
from conformkit.spec.components import component as component_of
from conformkit.spec.tolerances import Precision

__all__ = ["TROUBLE", "Bench", "Shown", "missing_setting"]

TROUBLE = (
    DriverError, ClauseFailure, NotApplicable, NoSizeError, PatternError, ExportMismatch, ConfigError, ValueError,
)  # fmt: skip
"""What may come of trying something that need not be right."""
_TRIES = 60
_FORMATS: tuple[Precision, ...] = ("float64", "float32", "bfloat16", "float16")
_OF_FORMATS = re.compile(r"dtype|scalar type|bfloat16|half", re.IGNORECASE)
"""What code says that takes another number format."""
Result = TypeVar("Result")


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
        self.formats: dict[str, Precision] = {}
        """In which number format what is at a path was built and called: the first that it takes."""
        self._exports: dict[str, Mapping[str, Any]] = {}

    def subject(self, component: str, table: Mapping[str, Any]) -> Subject:
        """Return the component that a table declares, not yet built. Raises what is in TROUBLE."""
        config = parse_config(table_text(component, table))
        free = table.get("generate", {}).get("path", "")
        described = self.export(component, free) if ":" in free else None
        bound = bind_export(component_of(component), self.export(component, table["path"]), config, described)
        bound.offers["gradients"] = self.link.is_torch
        bound.dtype = bound.precision = self.formats.get(bound.path, _FORMATS[0])
        subject = Subject(bound, self.link)
        subject.tries = _TRIES
        subject.declared = config.rules_for(component)
        return subject

    def probe(self, subject: Subject, known: Mapping[str, str]) -> None:
        """Find out where the weights of a component are, in the number format that it was seen to take."""
        form = self.formats.get(subject.bound.path, _FORMATS[0])
        dtypes = (form,) if form not in Config().dtypes else Config().dtypes
        probe(subject, dtypes, gradients=self.link.is_torch, known=known)

    def taken(self) -> list[str]:
        """Return where the components are that were chosen."""
        return [table["path"] for table in self.parts.values()]

    def dtypes(self) -> tuple[Precision, ...]:
        """Return the number format to declare: half precision where a part takes nothing else, float32 where all do.

        Where only some refuse float64, nothing: each is judged as finely as it can be.
        """
        found = {self.formats.get(path, _FORMATS[0]) for path in self.taken()}
        half = [form for form in _FORMATS[2:] if form in found]
        return tuple(half[:1] or (found if found == {"float32"} else ()))

    def export(self, component: str, path: str) -> Mapping[str, Any]:
        """Describe what is at a path. Raises DriverError."""
        if path not in self._exports:
            name = component_of(component).export
            request = {"op": "describe", "targets": {name: path}, "module": None}
            self._exports[path] = self.implementation.request(request).header["exports"][name]
        return self._exports[path]

    def shown(self, component: str, table: Mapping[str, Any], **sizes: Any) -> Shown:
        """Build, call once, and say what came back, in the first number format that it takes."""
        subject = self.subject(component, table)
        return self._in_its_format(subject, lambda: _called(subject, {**self.sizes, **sizes}))

    def answers(self, component: str, table: Mapping[str, Any]) -> None:
        """Build and call it once. Raises what is in TROUBLE where that fails, or gives no array of its shape."""
        subject = self.subject(component, table)
        self._in_its_format(subject, lambda: _answered(subject.build(**self.sizes)))

    def is_causal(self, component: str, table: Mapping[str, Any]) -> bool:
        """Whether what comes later leaves earlier outputs as they are, with the causality that the table asks for."""
        subject = self.subject(component, table)
        return self._in_its_format(subject, lambda: _is_causal(subject.build(**self.sizes)))

    def drops(self, component: str, table: Mapping[str, Any]) -> bool:
        """Whether its outputs vary in training."""
        subject = self.subject(component, table)
        return self._in_its_format(subject, lambda: _varies(subject.build(**self.sizes)))

    def mixes_rows(self, component: str, table: Mapping[str, Any]) -> bool:
        """Whether rows of a batch depend on one another, or on their place: then the first axis may be another one."""
        try:
            subject = self.subject(component, table)
            return self._in_its_format(subject, lambda: _mixes_rows(subject.build(**self.sizes)))
        except WorkerLost:
            raise
        except TROUBLE:
            return True

    def extents(self, component: str, table: Mapping[str, Any]) -> set[int]:
        """Return the extents of its parameters, as constructed with the usual sizes."""
        subject = self.subject(component, table)
        listing = self._in_its_format(subject, lambda: subject.build(**self.sizes)).listing
        return {extent for p in listing if p["shape"] for extent in p["shape"]}

    def _in_its_format(self, subject: Subject, work: Callable[[], Result]) -> Result:
        """Do something in the first number format that a component takes, and remember which one that is."""
        bound, refused = subject.bound, None
        for form in dict.fromkeys([self.formats.get(bound.path, _FORMATS[0]), *_FORMATS]):
            bound.dtype, bound.precision = form, form
            try:
                done = work()
            except ImplementationFailure as failure:
                refused = refused or failure
                if form == "float32" and not _OF_FORMATS.search(refused.message):
                    break
                continue
            self.formats[bound.path] = form
            return done
        bound.dtype, bound.precision = "float64", "float64"
        assert refused is not None
        raise refused


def _answered(instance: Instance) -> None:
    settle_masks(instance)
    instance(*instance.example_inputs(Draw(0, "adapt"), further=0))


def _is_causal(instance: Instance) -> bool:
    inputs = instance.example_inputs(Draw(0, "causal"), further=0)[0]
    changed = inputs.copy()
    changed[:, -1] = instance.example_inputs(Draw(1, "causal"), further=0)[0][:, -1]  # no shift: norms hide it
    before, after = instance(inputs)[:, :-1], instance(changed)[:, :-1]
    return bool(np.isfinite(before).all() and np.allclose(before, after, rtol=1e-6, atol=1e-7))


def _varies(instance: Instance) -> bool:
    inputs = instance.example_inputs(Draw(0, "drops"), further=0)
    one, other = (instance.call(*inputs, mode="train", seed=seed).out for seed in (0, 1))
    return not np.array_equal(one, other)


def _mixes_rows(instance: Instance) -> bool:
    inputs = instance.example_inputs(Draw(0, "rows"), further=0)[0]
    other = instance.example_inputs(Draw(1, "rows"), further=0)[0]
    changed = np.concatenate([other[:1], inputs[1:]])
    before, turned, after = instance(inputs), instance(inputs[::-1])[::-1], instance(changed)
    return not (np.allclose(before, turned, atol=1e-6) and np.allclose(before[1:], after[1:], atol=1e-6))


def _called(subject: Subject, sizes: Mapping[str, Any]) -> Shown:
    tokens = sizes.get("tokens", 5)
    instance = subject.build(**{name: size for name, size in sizes.items() if name != "tokens"})
    inputs = instance.example_inputs(Draw(0, "adapt"), further=0, tokens=tokens)
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
