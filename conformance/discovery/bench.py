"""Tables of conform.toml tried in the worker: build and call what they declare, and look at the result."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from conformkit.conformance.assertions.checks import ClauseFailure, NotApplicable
from conformkit.conformance.assertions.draws import Draw
from conformkit.conformance.binding.config import Config, parse_config
from conformkit.conformance.binding.exports import ExportMismatch, bind_export
from conformkit.conformance.binding.rules import PatternError
from conformkit.conformance.binding.sizes import NoSizeError
from conformkit.conformance.binding.toml_nodes import ConfigError
from conformkit.conformance.binding.toml_text import table_text
from conformkit.conformance.discovery.crossing import ANY, compared
from conformkit.conformance.discovery.tracing.following import Followed, follow
from conformkit.conformance.driver.errors import DriverError, ImplementationFailure, WorkerLost
from conformkit.conformance.engine.implementation import Implementation
from conformkit.conformance.probing.mask_trial import mask_forms
from conformkit.conformance.probing.probe import probe
from conformkit.conformance.subject.component import Instance, Subject
from conformkit.spec.components import Component
from conformkit.spec.components import component as component_of
from conformkit.spec.tolerances import Precision

__all__ = ["TROUBLE", "Bench", "Shown", "missing_setting"]

TROUBLE = (
    DriverError, ClauseFailure, NotApplicable, NoSizeError, PatternError, ExportMismatch, ConfigError, ValueError,
)  # fmt: skip
"""Errors that are expected when a guess is tried."""
_TRIES = 60
_LOSSES = 6
"""How many candidates may end their process before the search is given up."""
_WARY = 2
"""How many may before only those are tried that have the name of what is looked for."""
_FORMATS: tuple[Precision, ...] = ("float64", "float32", "bfloat16", "float16")
_OF_FORMATS = re.compile(r"dtype|scalar type|bfloat16|half", re.IGNORECASE)
"""Words in errors of code that needs another number format."""
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Shown:
    """The result of one call: the shape of the chosen part, the wanted shape, and the whole in words."""

    shape: tuple[int, ...]
    wanted: tuple[int, ...]
    structure: str

    @property
    def fits(self) -> bool:
        """Whether it has the contract's shape."""
        return self.shape == self.wanted

    def keys(self) -> list[int | str]:
        """Return the names or indices of its items; none for a single array."""
        kind, _, inside = self.structure.partition("(")
        if not inside:
            return []
        parts = _top_level(inside.removesuffix(")"))
        named = [re.match(r"(\w+): ", part) for part in parts]
        if kind not in {"tuple", "list"} and all(named):
            return [match[1] for match in named if match]
        return list(range(len(parts)))


class Bench:
    """Tries tables of components in the worker of an implementation that is not bound yet; `root` has its sources."""

    def __init__(self, implementation: Implementation, root: Path | None = None) -> None:
        self.implementation, self.root = implementation, root
        self.parts: dict[str, Mapping[str, Any]] = {}
        """Tables of the chosen components, by name."""
        self.sizes: Mapping[str, Any] = {}
        """Sizes to try, if other than the usual ones are needed."""
        self.refusals: list[str] = []
        """Errors of candidates that could not be built and called."""
        self.formats: dict[str, Precision] = {}
        """By path, the first number format in which it could be built and called."""
        self._exports: dict[str, Mapping[str, Any]] = {}
        self._losses = 0
        self._compared: frozenset[str] | None = None

    def subject(self, component: str, table: Mapping[str, Any]) -> Subject:
        """Return the component that a table declares, not yet built. Raises what is in TROUBLE.

        What was built for tables before this one is released: models with their usual vocabulary soon fill the memory.
        """
        self.implementation.tidy()
        config = parse_config(table_text(component, table))
        free = table.get("generate", {}).get("path", "")
        described = self.export(component, free) if ":" in free else None
        bound = bind_export(component_of(component), self.export(component, table["path"]), config, described)
        form = self.formats.get(bound.path, _FORMATS[0])
        offers = {**bound.offers, "gradients": self.implementation.is_torch}
        bound = replace(bound, offers=offers, dtype=form, precision=form)
        return Subject(bound, self.implementation, declared=config.rules_for(component))

    def probed(self, subject: Subject, known: Mapping[str, str], tries: int | None = _TRIES) -> Subject:
        """Find the weights of a component, in the number format that it accepts."""
        form = self.formats.get(subject.bound.path, _FORMATS[0])
        dtypes = (form,) if form not in Config().dtypes else Config().dtypes
        bound = probe(subject, dtypes, gradients=self.implementation.is_torch, known=known, tries=tries)
        return subject.with_bound(bound)

    def followed(self, component: str, table: Mapping[str, Any]) -> Followed | None:
        """Follow one call; None where that is not possible. Raises what is in TROUBLE."""
        subject = self.subject(component, table)
        form = self.formats.get(subject.bound.path, _FORMATS[0])
        return follow(subject.with_bound(replace(subject.bound, dtype=form, precision=form)))

    def give_up(self, path: str, lost: WorkerLost) -> None:
        """Remember a candidate that ended its process. Raises it again where several have: trying costs time."""
        self.refusals.append(f"{path}: {lost.detail}")
        self._losses += 1
        if self._losses > _LOSSES:
            raise lost

    @property
    def wary(self) -> bool:
        """Whether so many candidates have ended their process that their names decide which ones are tried."""
        return self._losses > _WARY

    def compares(self, name: str) -> bool:
        """Whether its author's code gives what objects of a class return to torch's cross-entropy."""
        if self._compared is None:
            self._compared = compared(self.root)
        return bool({name, ANY} & self._compared)

    def taken(self) -> list[str]:
        """Return the paths of the chosen components."""
        return [table["path"] for table in self.parts.values()]

    def dtypes(self) -> tuple[Precision, ...]:
        """Return the number format to declare: half precision if a part needs it, float32 if all refuse float64.

        If only some refuse float64, nothing: each is judged in the finest format it accepts.
        """
        found = {self.formats.get(path, _FORMATS[0]) for path in self.taken()}
        half = [form for form in _FORMATS[2:] if form in found]
        return tuple(half[:1] or (found if found == {"float32"} else ()))

    def export(self, component: str, path: str) -> Mapping[str, Any]:
        """Describe the object at a path. Raises DriverError."""
        if path not in self._exports:
            name = component_of(component).export
            request = {"op": "describe", "targets": {name: path}, "module": None}
            self._exports[path] = self.implementation.request(request).header["exports"][name]
        return self._exports[path]

    def shown(self, component: str, table: Mapping[str, Any], **sizes: Any) -> Shown:
        """Build, call once, and describe the result, in the first number format that it accepts."""
        subject = self.subject(component, table)
        return self._in_its_format(subject, lambda it: _called(it, {**self.sizes, **sizes}))

    def answers(
        self, component: str, table: Mapping[str, Any], tokens: int = 5, further: int = 0, **sizes: Any
    ) -> None:
        """Build and call it once, its second input longer by `further` positions.

        Raises what is in TROUBLE if that fails, or gives no array of the right shape.
        """
        subject = self.subject(component, table)
        self._in_its_format(subject, lambda it: _answered(it.build(**{**self.sizes, **sizes}), tokens, further))

    def tried(self, component: Component, table: Mapping[str, Any]) -> None:
        """Build and call it once. Raises what is in TROUBLE if that fails."""
        (self.answers if component.several else self.shown)(component.name, table)

    def parts_of_result(self, component: str, table: Mapping[str, Any]) -> list[int | str]:
        """Return the names or indices of what it returns; none for a single array, or if it cannot be called."""
        try:
            subject = self.subject(component, table)
            return self._in_its_format(subject, lambda it: _parts(it.build(**self.sizes)))
        except WorkerLost:
            raise
        except TROUBLE:
            return []

    def built(
        self, component: str, table: Mapping[str, Any], work: Callable[[Instance], Result], **sizes: int
    ) -> Result:
        """Build it with random weights, and do something with it."""
        subject, chosen = self.subject(component, table), {**self.sizes, **sizes}
        return self._in_its_format(subject, lambda it: work(it.build(**chosen).scatter(Draw(0, "built"))))

    def is_causal(self, component: str, table: Mapping[str, Any]) -> bool:
        """Whether later inputs leave earlier outputs unchanged, with the causality of the table."""
        subject = self.subject(component, table)
        return self._in_its_format(subject, lambda it: _is_causal(it.build(**self.sizes)))

    def drops(self, component: str, table: Mapping[str, Any]) -> bool:
        """Whether its outputs vary between calls in training mode."""
        subject = self.subject(component, table)
        return self._in_its_format(subject, lambda it: _varies(it.build(**self.sizes)))

    def mixes_rows(self, component: str, table: Mapping[str, Any]) -> bool:
        """Whether rows of a batch depend on one another or on their position: then axis 0 may not be the batch."""
        try:
            subject = self.subject(component, table)
            return self._in_its_format(subject, lambda it: _mixes_rows(it.build(**self.sizes)))
        except WorkerLost:
            raise
        except TROUBLE:
            return True

    def kinds_inside(self, component: str, table: Mapping[str, Any]) -> set[str]:
        """Return the names of the classes whose objects one call of it calls; none where that cannot be seen."""
        try:
            return self.built(component, table, _kinds)
        except WorkerLost:
            raise
        except TROUBLE:
            return set()

    def extents(self, component: str, table: Mapping[str, Any], *, learned: bool = False, **sizes: int) -> set[int]:
        """Return the extents of its arrays, or only of those that are learned, if constructed with the usual sizes."""
        subject, chosen = self.subject(component, table), {**self.sizes, **sizes}
        listing = self._in_its_format(subject, lambda it: _listed(it.build(**chosen), learned=learned))
        return {extent for p in listing if p["shape"] for extent in p["shape"]}

    def _in_its_format(self, subject: Subject, work: Callable[[Subject], Result]) -> Result:
        """Do something in the first number format that a component accepts, and remember that format."""
        bound, refused = subject.bound, None
        for form in dict.fromkeys([self.formats.get(bound.path, _FORMATS[0]), *_FORMATS]):
            try:
                done = work(subject.with_bound(replace(bound, dtype=form, precision=form)))
            except ImplementationFailure as failure:
                refused = refused or failure
                if form == "float32" and not _OF_FORMATS.search(refused.message):
                    break
                continue
            self.formats[bound.path] = form
            return done
        assert refused is not None
        raise refused


def _kinds(instance: Instance) -> set[str]:
    seen, _ = instance.trace(*instance.example_inputs(Draw(0, "kinds"), further=0))
    return {str(part["kind"]) for part in seen["parts"]}


def _listed(instance: Instance, *, learned: bool) -> list[Any]:
    """List the parameters after a first call, which may make some."""
    try:
        instance(*instance.example_inputs(Draw(0, "extents"), further=0))
        instance.list_again()
    except WorkerLost:
        raise
    except TROUBLE:
        pass
    return list(instance.trainable if learned else instance.listing)


def _answered(instance: Instance, tokens: int, further: int) -> None:
    instance = instance.with_bound(replace(instance.subject.bound, masks=mask_forms(instance)))
    instance(*instance.example_inputs(Draw(0, "adapt"), tokens=tokens, further=further))


def _parts(instance: Instance) -> list[int | str]:
    instance = instance.with_bound(replace(instance.subject.bound, masks=mask_forms(instance)))
    reply, _ = instance.unchecked(*instance.example_inputs(Draw(0, "adapt"), further=0))
    return Shown((), (), str(reply.get("structure", ""))).keys()


def _is_causal(instance: Instance) -> bool:
    inputs = instance.example_inputs(Draw(0, "causal"), further=0)[0]
    changed = inputs.copy()
    changed[:, -1] = instance.example_inputs(Draw(1, "causal"), further=0)[0][:, -1]  # norms would hide a shift
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
    tokens, draw = sizes.get("tokens", 5), Draw(0, "adapt")
    instance = subject.build(**{name: size for name, size in sizes.items() if name != "tokens"})
    inputs = instance.example_inputs(draw, further=0, tokens=tokens)
    if subject.bound.component.inputs == ("ids",) and inputs[0].shape[-1] < tokens:  # beyond its block size
        inputs = (draw.ids(instance.sizes["vocab_size"], *inputs[0].shape[:-1], tokens),)
    reply, out = instance.unchecked(*inputs)
    given, kind = inputs[0], subject.bound.component.inputs
    rows = given.shape if kind[0] == "ids" else given.shape[:-1]
    width = instance.sizes["vocab_size"] if kind[0] == "ids" else inputs[2].shape[-1] if kind[0] == "q" else 0
    width = width or instance.sizes.get("d_v") or instance.sizes["d_model"]
    return Shown(tuple(out.shape), (*rows, width), str(reply.get("structure", "")))


def missing_setting(failure: BaseException) -> str:
    """Return the setting that the code missed, or nothing."""
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
