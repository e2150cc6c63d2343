"""The implementation under test, loaded in its worker and bound to the contract."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from copy import copy
from dataclasses import replace
from typing import Any

from conformkit.conformance.assertions.formats import HALF, narrowest
from conformkit.conformance.binding.bound import Bound
from conformkit.conformance.binding.config import Config
from conformkit.conformance.binding.exports import (
    ExportMismatch,
    bind_export,
    further_targets,
    serves,
    stub_of,
    targets,
)
from conformkit.conformance.driver.client.interface import Driver, Reply
from conformkit.conformance.driver.errors import ImplementationFailure, WorkerLost
from conformkit.conformance.probing.probe import probe
from conformkit.conformance.subject.component import Subject
from conformkit.conformance.subject.parameters import check_parameters
from conformkit.conformance.subject.tool import Tool
from conformkit.spec.arrays import Array
from conformkit.spec.components import Component, components_of
from conformkit.spec.tolerances import tolerance

__all__ = ["Absent", "Implementation", "OutOfTime"]


_PILE = 16
"""So many components are let go of at once."""


_TRIES_WITH_A_WRONG_PART = 48
"""Where a part is wrong already, the whole will hardly fit, wherever its weights are looked for."""


class Absent(LookupError):
    """The implementation has no such component."""


class OutOfTime(Exception):
    """The time for the whole run is up: whatever is asked now is not answered any more."""


class Implementation:
    """Components of the implementation, and the worker that they live in."""

    def __init__(self, session: Driver, config: Config, *, tries: int | None = None) -> None:
        self.session = session
        self.config = config
        self._tries = tries
        self.is_torch = False
        self.framework = ""
        self.errors: dict[str, str] = {}
        """Exports that were found but could not be imported, with what happened."""
        self.unfit: dict[str, str] = {}
        """Tools that were found but are called in another way than the contract's, with what to declare."""
        self.stubs: dict[str, str] = {}
        """What is there and not implemented yet, with the line that says so; generation is `generate`."""
        self.sources: dict[str, str] = {}
        """Where what was found is defined, `mypkg/attention.py:12`."""
        self._subjects: dict[str, Subject] = {}
        self._tools: dict[str, Tool] = {}
        self._built: list[int] = []
        """What lives in the worker, by handle."""
        self.deadline: float | None = None
        """When, on the monotonic clock, the time for the whole run is up."""

    def start(self) -> None:
        """Import it. Raises DriverError."""
        loaded = self.session.start()
        self.framework = loaded.framework
        self.is_torch = loaded.framework == "torch"

    def load(self, components: Collection[str] | None = None, *, profile: str = "core") -> None:
        """Import it, look for the components of a profile (or only for some), and bind those that are there.

        Other profiles than core have tools besides.

        Raises ExportMismatch when one is constructed or called in another way, DriverError when it can't be loaded.
        """
        self.start()
        tools, contract = profile != "core", components_of(profile)
        if tools:
            self._load_tools(profile)
            components = _with_partners(components)
        chosen = [name for name in contract if components is None or name in components]
        exports = self._described(chosen, profile)
        free = exports.get("generate")
        if free and free["found"]:
            self.sources["generate"] = str(free["source"])
        known: dict[str, str] = {}
        for component in (contract[name] for name in chosen):
            export = _found_export(component, exports)
            if not self._offered(component.name, export):
                continue
            bound = self._bound(component, export, free if free and free["found"] else None, tools=tools)
            if bound is None:
                continue
            subject = Subject(bound, self)
            parts = self.bounds()
            subject.tries = self._tries or (None if all(part.fits for part in parts) else _TRIES_WITH_A_WRONG_PART)
            subject.declared = self.config.rules_for(component.name)
            self._subjects[component.name] = subject
            known |= probe(subject, self.config.dtypes, gradients=self.is_torch, known=known)
            if self._unfinished(bound):
                del self._subjects[component.name]
                continue
            if not bound.fits and bound.dtype == "float64" and any(part.precision == "float32" for part in parts):
                bound.precision = "float32"  # as its parts; its own numbers can't tell

    def _described(self, chosen: Collection[str], profile: str) -> Mapping[str, Any]:
        """Return what is found under the names of these components, outside core and lm under well-known others too."""
        wanted = targets(self.config, chosen)
        if profile not in {"core", "lm"}:
            wanted = {**further_targets(self.config, chosen), **wanted}
        request = {"op": "describe", "targets": wanted, "module": self.config.module}
        seconds = self.session.limits.load_seconds  # of loose files, nothing is imported before
        found: Mapping[str, Any] = self.session.request(request, seconds=seconds).header["exports"]
        return found

    def _bound(
        self, component: Component, export: Mapping[str, Any], free: Mapping[str, Any] | None, *, tools: bool
    ) -> Bound | None:
        try:
            return bind_export(component, export, self.config, free)
        except ExportMismatch as mismatch:
            if where := stub_of(export, "__init__", ""):
                self.stubs[component.name] = where
            elif tools or self._is_another(component):
                self.unfit[component.name] = str(mismatch)  # what is asked for may well be something else
            else:
                raise
        return None

    def _is_another(self, component: Component) -> bool:
        """Whether it was found by its name alone, and what has that name is declared to be another component."""
        declared = {name: path.rpartition(":")[2] for name, path in targets(self.config).items() if path is not None}
        return component.export not in declared and component.export in declared.values()

    def _offered(self, name: str, export: Mapping[str, Any], *methods: str) -> bool:
        """Whether an export is there and none of these methods is a stub; remember why not."""
        if export["found"]:
            self.sources[name] = str(export["source"])
        if where := stub_of(export, *methods):
            self.stubs[name] = where
            return False
        if export.get("error"):
            self.errors[name] = f"{export['error']['type']}: {export['error']['message']}"
        return bool(export["found"])

    def _unfinished(self, bound: Bound) -> bool:
        """Whether it can't be built and called because it, or what it is made of, is not implemented yet."""
        if bound.generation_stub:
            self.stubs["generate"] = bound.generation_stub
        failure = bound.failure
        if not isinstance(failure, ImplementationFailure) or failure.type != "NotImplementedError":
            return False
        self.stubs[bound.component.name] = failure.where or failure.message
        return True

    def _load_tools(self, profile: str) -> None:
        from conformkit.conformance.binding.tools import ToolMismatch, bind_tool, tool_targets
        from conformkit.spec.tools import tools_of

        wanted = tools_of(profile)
        if not wanted:
            return
        request = {"op": "describe", "targets": tool_targets(self.config, wanted), "module": self.config.module}
        exports = self.session.request(request).header["exports"]
        for name, tool in wanted.items():
            export = exports[name]
            try:
                if self._offered(name, export, "__init__", *tool.calls):
                    self._tools[name] = Tool(bind_tool(tool, export, self.config), self)
            except ToolMismatch as mismatch:
                self.unfit[name] = str(mismatch)

    def load_like(self, other: Implementation) -> None:
        """Import it, and bind it as another worker with the same implementation is bound. Raises DriverError."""
        loaded = self.session.start()
        self.framework, self.is_torch = loaded.framework, other.is_torch
        self.errors, self.stubs = other.errors, other.stubs
        for subject in other.subjects():
            own = Subject(copy(subject.bound), self)
            own.declared, own.around_one = subject.declared, dict(subject.around_one)
            self._subjects[own.name] = own
        self._tools = {name: tool.like(self) for name, tool in other.tools().items()}
        self.unfit = other.unfit

    def request(self, header: Mapping[str, Any], tensors: Mapping[str, Array] | None = None) -> Reply:
        """Ask the worker; a fresh one when the last was lost. Raises OutOfTime where there is a deadline."""
        seconds = self._seconds_left()
        try:
            if self.session.lost:
                self._built.clear()
                self.session.restart()
            reply = self.session.request(dict(header), tensors or {}, seconds)
        except WorkerLost:
            self._seconds_left()  # it may have been the deadline that killed it
            raise
        if header["op"] in {"build", "copy", "hold", "loop"}:
            self._built.append(reply.header["handle"])
        if header["op"] in {"build", "parameters"}:
            check_parameters(reply.header["parameters"])
        return reply

    def _seconds_left(self) -> float | None:
        """Return how long a request may take, where not as long as any other one."""
        if self.deadline is None:
            return None
        left = self.deadline - time.monotonic()
        if left <= 0:
            raise OutOfTime
        limits = self.session.limits
        self.session.limits = replace(limits, load_seconds=min(limits.load_seconds, left))
        return min(limits.call_seconds, left)

    def tidy(self) -> None:
        """Let go of what was built, now and then: nobody uses it any more. A mask of 1024 × 1024 in each adds up."""
        if len(self._built) < _PILE or self.session.lost:
            return
        requests = [{"op": "release", "handle": handle} for handle in self._built]
        self._built.clear()
        self.request({"op": "batch", "requests": requests})

    def has(self, name: str) -> bool:
        """Whether the implementation exports this component."""
        return name in self._subjects or name in self._tools

    def part(self, name: str) -> Subject | Tool:
        """Return a component or a tool; raise Absent when there is neither."""
        return self._tools[name] if name in self._tools else self.subject(name)

    def tools(self) -> Mapping[str, Tool]:
        """Return all tools that it has, by name; none unless they were looked for."""
        return self._tools

    def subject(self, name: str) -> Subject:
        """Return a component; raise Absent when there is none."""
        try:
            return self._subjects[name]
        except KeyError:
            raise Absent(name) from None

    def subjects(self) -> list[Subject]:
        """Return all components that it has, in the contract's order."""
        return list(self._subjects.values())

    def forms(self) -> tuple[str, ...]:
        """Return the formats to which what is drawn is rounded, so that its components see the oracle's numbers."""
        return narrowest({bound.dtype for bound in self.bounds()})

    def accuracy(self, component: str) -> tuple[str, float]:
        """Return the half precision in which a component is judged, and how far off that is; nothing for wider ones.

        What concerns `all` is held to the coarsest of them. Tools compute in float32 whatever the components do.
        """
        judged = self.bounds() if component == "all" else [s.bound for s in self.subjects() if s.name == component]
        halves = [bound.precision for bound in judged if bound.precision in HALF]
        return max(((form, tolerance(form)) for form in halves), key=lambda pair: pair[1], default=("", 0.0))

    def missing(self, profile: str = "core") -> list[str]:
        """Return the required components of a profile that it lacks; not those that its variant does without."""
        required = [c.name for c in components_of(profile).values() if c.required]
        lacking = [name for name in required if name not in self._subjects]
        return [name for name in lacking if not self.excused(name)]

    def excused(self, component: str) -> str:
        """Return why an absent component is none of the declared variant's, or nothing."""
        positions = self.config.variant_for("TinyTransformerLM").positions
        if component == "PositionalEncoding" and positions != "sinusoidal":
            return f"positions are {positions}"
        return ""

    def bounds(self) -> list[Bound]:
        """Return how each component is bound."""
        return [subject.bound for subject in self._subjects.values()]

    def close(self) -> None:
        """End its worker."""
        self.session.close()


def _found_export(component: Component, exports: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what is exported under its name, or under the first further one that it may go by."""
    named: Mapping[str, Any] = exports[component.export]
    others = (exports[name] for name in component.further if name in exports)
    if named["found"] or named.get("error"):
        return named
    return next((export for export in others if serves(component, export)), named)


def _with_partners(components: Collection[str] | None) -> Collection[str] | None:
    """Add the components that tools of these names work on."""
    from conformkit.spec.tools import TOOLS

    if components is None:
        return None
    return {*components, *(TOOLS[name].partner for name in components if name in TOOLS)}
