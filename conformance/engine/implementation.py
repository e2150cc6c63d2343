"""The implementation under test, loaded in its worker and bound to the contract."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from conformkit.conformance.assertions.checks import Withheld
from conformkit.conformance.assertions.formats import HALF, narrowest
from conformkit.conformance.binding.bound import Bound
from conformkit.conformance.binding.config import Config
from conformkit.conformance.binding.exports import ExportMismatch, bind_export
from conformkit.conformance.binding.lookups import (
    further_targets,
    serves,
    standing,
    standing_targets,
    standing_tools,
    stub_of,
    targets,
)
from conformkit.conformance.binding.sizes import LimitWithoutValue, NoSizeError
from conformkit.conformance.driver.client.interface import Driver, Reply
from conformkit.conformance.driver.errors import ImplementationFailure, WorkerLost
from conformkit.conformance.engine.boundary import NOT_ITS_FAULT, OutOfTime
from conformkit.conformance.engine.deadline import Deadline
from conformkit.conformance.engine.declarations.not_judged import (
    Unusable,
    absent,
    mismatched,
    obscure,
    unbound,
    unheard,
)
from conformkit.conformance.engine.deferring import Deferring
from conformkit.conformance.engine.finding import LoadFailure
from conformkit.conformance.engine.silence import AskedCall, Silence, asked_of
from conformkit.conformance.engine.witness import Witness
from conformkit.conformance.probing.framework_faults import fault_of, with_fault
from conformkit.conformance.probing.inheriting import like_its_parts
from conformkit.conformance.probing.known import Known, bound_like
from conformkit.conformance.probing.probe import probe
from conformkit.conformance.probing.refusals import found_limits, limited
from conformkit.conformance.subject.component import Instance, Subject
from conformkit.conformance.subject.parameters import check_parameters
from conformkit.conformance.subject.tool import Tool
from conformkit.spec.arrays import Array
from conformkit.spec.components import PARTS, Component, components_of
from conformkit.spec.profiles import named_profile
from conformkit.spec.tolerances import tolerance
from conformkit.spec.variants import Variant

if TYPE_CHECKING:
    from conformkit.spec.tools import ToolContract

__all__ = ["Absent", "Implementation", "OutOfTime"]


_PILE = 16
"""Number of built components to release at once."""


_TRIES_WITH_A_WRONG_PART = 48
"""If a part is wrong, the whole will hardly fit, whatever its weight assignment."""


class Absent(LookupError):
    """The implementation has no such component."""


class Implementation:
    """Components of the implementation, and the worker that they live in."""

    def __init__(self, session: Driver, config: Config, *, tries: int | None = None) -> None:
        self.session = session
        self.config = config
        self._tries = tries
        self.is_torch = False
        self.framework = ""
        self.module = ""
        self.loading_notes: Sequence[str] = ()
        """What readers of a report must know about how it was loaded."""
        self.errors: dict[str, str] = {}
        """Exports that were found but could not be imported, with what happened."""
        self.unfit: dict[str, Unusable] = {}
        """Tools that were found but have another call than the contract's, with what to declare."""
        self.unusable: dict[str, Unusable] = {}
        """What is there or declared and cannot be judged; a method of a component as `Transformer.encode`."""
        self.exported = False
        """Whether any name of the contract was found, needed or not."""
        self.stubs: dict[str, str] = {}
        """Exports that are not implemented yet, with the line that raises; generation is `generate`."""
        self.replaced: dict[str, str] = {}
        """Where another object stands under the name of a component whose path is declared."""
        self.renamed: set[str] = set()
        """Components that fit under a well-known name other than the contract's, which no file declares: their author
        does not follow the contract."""
        self.sources: dict[str, str] = {}
        """Where each export is defined, `mypkg/attention.py:12`."""
        self._subjects: dict[str, Subject] = {}
        self._tools: dict[str, Tool] = {}
        self._deferring = Deferring()
        self._built: list[int] = []
        """Objects in the worker, by handle."""
        self._paths: dict[int, str] = {}
        """By handle, what an object was built from."""
        self.silence = Silence()
        """What gave no answer in this run."""
        self._late: AskedCall | None = None
        """What gave none the last time."""
        self.known: Mapping[str, Known] = {}
        """What is known of the code of which this is a changed copy, by component; see `bound_like`."""
        self._before: dict[str, Bound] = {}
        """How each component was bound before it was probed."""
        self.deadline = Deadline()
        """The end of the whole run."""
        self.witness: Witness | None = None
        """Keeps a sample of the requests of a run whose verdict counts."""

    def start(self) -> None:
        """Import it. Raises DriverError."""
        with self.deadline.holds(self.session):
            loaded = self.session.start()
        self.framework, self.module = loaded.framework, loaded.module
        self.loading_notes = [*self.loading_notes, *loaded.notes]
        self.is_torch = loaded.framework == "torch"

    def load(self, components: Collection[str] | None = None, *, profile: str = "core") -> None:
        """Import it, look for the components of a profile, and bind those that exist, or only some.

        Profiles other than core have tools too. What cannot be used is told as such; the others are bound all the same.

        Raises ExportMismatch if one is constructed or called in another way and there is nothing else, DriverError if
        it can't be loaded.
        """
        self.start()
        if named_profile(profile).has_tools:
            self._load_tools(profile)
            components = _with_partners(components)
        contract = components_of(profile)
        chosen = set(contract if components is None else components) - set(self.config.skipped())
        exports = self._described(list(contract.values()), profile)
        free = self._free_function(exports)
        for bound in self._found(contract.values(), exports, free, profile, chosen):
            found = {part.component.name: part.rules for part in self.bounds() if part.rules}
            subject = Subject(bound, self, declared=self.config.rules_for(bound.component.name, found))
            try:
                _check_limits(subject)
                self._take(subject, self._probed(subject))
            except LimitWithoutValue as problem:
                self.cannot_judge(subject.name, str(problem))
            except NOT_ITS_FAULT:
                raise
            except Exception as trouble:  # noqa: BLE001 - the boundary
                self.unusable[subject.name] = obscure(subject.name, bound.path, trouble)

    def fitting(self, profile: str) -> set[str]:
        """Return the components that bind as they are, and those about which something is declared that is told.

        They have the contract's names or are declared, and their signatures fit; stubs are to be written yet.
        """
        contract = components_of(profile)
        exports = self._described(list(contract.values()), profile)
        free, found = self._free_function(exports), set(self.config.skipped())
        for name, component in contract.items():
            own = self.config.component(name)
            export = _found_export(component, exports)
            if not self._offered(name, export, "__init__", ""):
                found |= {name} if name in self.stubs or own.path is not None else set()
                continue
            with suppress(Exception):  # what it says about itself may be anything
                bound = self._bound(component, export, free, tools=named_profile(profile).has_tools)
                found |= {name} if bound is not None else set()
                if bound is not None and self.config.path is None and export is not exports[component.export]:
                    self.renamed.add(name)
            if own.path is not None and own.construct is not None and own.call is not None:
                found.add(name)
        return found

    def cannot_judge(self, component: str, problem: str) -> None:
        """Note that something which is declared keeps a component from being judged."""
        name = component if component != "all" else next(iter(self._subjects), component)
        advice = ("correct the limit, or take it out of the file",)
        self.unusable.setdefault(name, Unusable(f"{name}: {problem}", self.config.place(name), advice))

    def lacks_mask(self, mask: Withheld) -> None:
        """Note that a call lacked a mask, so that what is wrong then may not be the code."""
        self.unusable.setdefault(mask.what, Unusable(mask.problem, advice=mask.advice))

    def _take(self, subject: Subject, probed: Bound) -> None:
        """Keep a component that has been probed, unless it is not implemented yet."""
        if not self._unfinished(probed):
            self._subjects[subject.name] = subject.with_bound(probed)
        if problem := unbound(probed):
            self.unusable[subject.name] = problem

    def _found(
        self, components: Iterable[Component], exports: Mapping[str, Any], free: Mapping[str, Any] | None, profile: str,
        chosen: Collection[str],
    ) -> Iterator[Bound]:  # fmt: skip
        """Yield the chosen components that exist, bound by signature and declarations; store why others are not."""
        first: ExportMismatch | None = None
        for component in components:
            export = _found_export(component, exports)
            wanted = component.name in chosen
            if not self._offered(component.name, export, *(() if wanted else ("__init__", ""))) or not wanted:
                continue
            try:
                bound = self._bound(component, export, free, tools=named_profile(profile).has_tools)
            except ExportMismatch as mismatch:
                self.unusable[component.name] = mismatched(mismatch)
                first = first or mismatch
                continue
            except Exception as trouble:  # noqa: BLE001 - the boundary
                self.unusable[component.name] = obscure(component.name, str(export.get("path", "")), trouble)
                continue
            if bound is not None:
                self.unusable.update(unheard(bound, self.config))
                yield bound
        if first is not None and not self._subjects and not self._tools and not self.stubs:
            raise first

    def _free_function(self, exports: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """Return the description of a function `generate`, if there is one."""
        free: Mapping[str, Any] | None = exports.get("generate")
        if not free or not free["found"]:
            return None
        self.sources["generate"] = str(free["source"])
        return free

    def _probed(self, subject: Subject, tries: int | None = None) -> Bound:
        """Probe what signatures and declarations leave open about a component, using results of its parts."""
        parts = [part for part in self.bounds() if part.component.name != subject.name]
        tries = tries or self._tries or (None if all(part.fits for part in parts) else _TRIES_WITH_A_WRONG_PART)
        subject = limited(subject, found_limits(subject, self.config.dtypes, [part.found for part in parts]))
        self._before[subject.name] = subject.bound
        known = self.known.get(subject.name)
        bound = bound_like(subject, known) if known is not None else None
        if bound is None:
            places = {rule.target: rule.source for part in parts if part.failure is None for rule in part.rules or ()}
            bound = probe(subject, self.config.dtypes, gradients=self.is_torch, known=places, tries=tries)
            if fault := fault_of(subject.with_bound(bound), self.config.dtypes):
                again = probe(subject, (fault.judged,), gradients=self.is_torch, known=places, tries=tries)
                bound = with_fault(again, fault)
        return like_its_parts(bound, parts)

    def learned(self) -> dict[str, Known]:
        """Return what changed copies of this code need to know of its components. Raises DriverError."""
        found = {name: Known.of(self._before[name], subject) for name, subject in self._subjects.items()}
        return {name: known for name, known in found.items() if known is not None}

    def _described(self, chosen: Collection[Component], profile: str) -> Mapping[str, Any]:
        """Return the exports with the names of these components; outside core and lm, well-known other names too."""
        wanted = {**standing_targets(self.config, chosen), **targets(self.config, chosen)}
        if named_profile(profile).further_names:
            wanted = {**further_targets(self.config, chosen), **wanted}
        reply = self._asked_about(wanted)
        if reply.get("refused"):
            problem = absent("the implementation", f"module {self.config.module}", reply["refused"], self.config)
            raise LoadFailure(problem.problem, where=self.config.place("module"), advice=problem.advice)
        found: Mapping[str, Any] = reply["exports"]
        places = {name: standing(found, one.export) for name, one in components_of(profile).items()}
        self.replaced |= {name: place for name, place in places.items() if place}
        return found

    def _asked_about(self, wanted: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return how the worker describes these targets; loose files are imported only now."""
        request = {"op": "describe", "targets": wanted, "module": self.config.module}
        with self.deadline.holds(self.session):
            return self.session.request(request, seconds=self.session.limits.load_seconds).header

    def _bound(
        self, component: Component, export: Mapping[str, Any], free: Mapping[str, Any] | None, *, tools: bool
    ) -> Bound | None:
        try:
            return bind_export(component, export, self.config, free)
        except ExportMismatch as mismatch:
            if where := stub_of(export, "__init__", ""):
                self.stubs[component.name] = where
            elif (tools or self._is_another(component)) and self._declared_path(component.name) is None:
                self.unfit[component.name] = mismatched(mismatch)  # the clauses may be about something else
            else:
                raise
        return None

    def _is_another(self, component: Component) -> bool:
        """Whether it was found only by its name, but that name is declared as another component."""
        declared = {name: path.rpartition(":")[2] for name, path in targets(self.config).items() if path is not None}
        return component.export not in declared and component.export in declared.values()

    def _offered(self, name: str, export: Mapping[str, Any], *methods: str) -> bool:
        """Whether an export exists and none of these methods is a stub; store why not."""
        if export["found"]:
            self.sources[name] = str(export["source"])
            self.exported = True
        elif (path := self._declared_path(name)) and name not in self.config.skipped():
            self.unusable[name] = absent(name, path, export.get("error"), self.config)
        if where := stub_of(export, *methods):
            self.stubs[name] = where
            return False
        if export.get("error"):
            self.errors[name] = f"{export['error']['type']}: {export['error']['message']}"
        return bool(export["found"])

    def _declared_path(self, name: str) -> str | None:
        return self.config.component(name).path or self.config.tool(name).path

    def _unfinished(self, bound: Bound) -> bool:
        """Whether it can't be built and called because it, or a part of it, is not implemented yet."""
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
        targets_of = {**standing_tools(self.config, wanted), **tool_targets(self.config, wanted)}
        exports, skipped = self._asked_about(targets_of)["exports"], self.config.skipped()
        self.replaced |= {name: place for name in wanted if (place := standing(exports, name))}
        for name, tool in wanted.items():
            export = exports[name]
            try:
                if self._offered(name, export, "__init__", *tool.calls) and name not in skipped:
                    self._tools[name] = Tool(bind_tool(tool, export, self.config), self)
            except ToolMismatch as mismatch:
                if self._declared_path(name) is None:
                    self.unfit[name] = Unusable(str(mismatch))
                else:
                    self.unusable[name] = Unusable(f"{name}: {mismatch}", self.config.place(name))
            except Exception as trouble:  # noqa: BLE001 - the boundary
                self.unusable[name] = obscure(name, str(export.get("path", "")), trouble)

    def load_like(self, other: Implementation) -> None:
        """Import it, and bind it like another worker with the same implementation. Raises DriverError."""
        self.deadline, self.witness, self.silence = other.deadline, other.witness, other.silence
        with self.deadline.holds(self.session):
            loaded = self.session.start()
        self.framework, self.is_torch = loaded.framework, other.is_torch
        self.errors, self.stubs = other.errors, other.stubs
        self._subjects = {subject.name: subject.like(self) for subject in other.subjects()}
        self._tools = {name: tool.like(self) for name, tool in other.tools().items()}
        self.unfit, self.unusable, self.exported = other.unfit, other.unusable, other.exported

    def request(self, header: Mapping[str, Any], tensors: Mapping[str, Array] | None = None) -> Reply:
        """Ask the worker, a fresh one if the last was lost. Raises OutOfTime after a deadline."""
        asked, arrays = dict(header), tensors or {}
        try:
            known = self._deferring.answer(self.session, asked, arrays)
            reply = known if known is not None else self._heard(asked, arrays)
        except Exception:
            if self.witness is not None:
                self.witness.failed(id(self), asked)
            raise
        if header["op"] in {"build", "copy", "hold", "loop"}:
            self._built.append(reply.header["handle"])
            self._paths[reply.header["handle"]] = header.get("path") or self._paths.get(header.get("handle") or 0, "")
        if header["op"] in {"build", "parameters"}:
            check_parameters(reply.header["parameters"])
        if self.witness is not None:
            self.witness.saw(id(self), asked, arrays, reply)
        return reply

    def _heard(self, header: dict[str, Any], tensors: Mapping[str, Array]) -> Reply:
        """Ask, unless what is asked gave no answer often enough."""
        asked = asked_of(self._paths, header)
        self.silence.check(asked)
        try:
            reply = self._answer(header, tensors)
        except WorkerLost as lost:
            self.silence.lost(asked, lost)
            self._late = asked if lost.kind == "timeout" else None
            raise
        except ImplementationFailure:
            self.silence.heard(asked)
            raise
        self.silence.heard(asked)
        return reply

    def _answer(self, header: dict[str, Any], tensors: Mapping[str, Array]) -> Reply:
        with self.deadline.holds(self.session) as seconds:
            if self.session.lost:
                self._built.clear()
                self._paths.clear()
                self.session.restart()
            return self._deferring.send(self.session, header, tensors, seconds)

    @contextmanager
    def in_few_trips(self) -> Iterator[None]:
        """Let builds and writes wait for the next request in this context. Raises OutOfStep; see `Deferring`."""
        with self.deadline.holds(self.session), self._deferring.allowed(self.session):
            yield

    def told_late(self) -> None:
        """Note that a clause is red because of the last call without an answer."""
        self.silence.told(self._late)

    def check_time(self) -> None:
        """Raise OutOfTime if the run has ended."""
        self.deadline.check(self.session)

    def tidy(self) -> None:
        """Release unused objects now and then: a mask of 1024 × 1024 in each of them adds up."""
        if len(self._built) < _PILE or self.session.lost:
            return
        requests = [{"op": "release", "handle": handle} for handle in self._built]
        self._built.clear()
        self.request({"op": "batch", "requests": requests})

    def has(self, name: str) -> bool:
        """Whether the implementation exports this component."""
        return name in self._subjects or name in self._tools

    def part(self, name: str) -> Subject | Tool:
        """Return a component or a tool; raise Absent if there is neither."""
        return self._tools[name] if name in self._tools else self.subject(name)

    def variant_of(self, name: str) -> Variant:
        """Return the variant under which a component is judged; the declared one where there is no such component."""
        subject = self._subjects.get(name)
        return subject.variant if subject is not None else self.config.variant_for(name)

    @contextmanager
    def trying(self, name: str, tool: Tool) -> Iterator[None]:
        """In this context, have this tool in place of the one that it has."""
        before = dict(self._tools)
        self._tools[name] = tool
        try:
            yield
        finally:
            self._tools = before

    def lacking_tools(self, profile: str) -> list[str]:
        """Return the tools of a profile that are not declared, and do not bind under the contract's name."""
        from conformkit.conformance.binding.tools import tool_targets
        from conformkit.spec.tools import tools_of

        wanted = {name: tool for name, tool in tools_of(profile).items() if name not in self.config.tools}
        exports = self._asked_about(tool_targets(self.config, wanted))["exports"] if wanted else {}
        return [name for name, tool in wanted.items() if not self._binds(tool, exports[name])]

    def standing_tools(self, profile: str, lacking: Collection[str]) -> dict[str, str]:
        """Return where the tools of a profile are that are there under the contract's name; `lacking` are not."""
        from conformkit.conformance.binding.tools import tool_targets
        from conformkit.spec.tools import tools_of

        wanted = {name: tool for name, tool in tools_of(profile).items() if name not in lacking}
        exports = self._asked_about(tool_targets(self.config, wanted))["exports"] if wanted else {}
        return {name: str(exports[name]["path"]) for name in wanted if exports[name]["found"]}

    def _binds(self, tool: ToolContract, export: Mapping[str, Any]) -> bool:
        """Whether a tool is there and called as the contract says; what else is wrong with it is told by `load`."""
        from conformkit.conformance.binding.tools import ToolMismatch, bind_tool

        with suppress(Exception):  # what it says about itself may be anything
            try:
                bind_tool(tool, export, self.config) if export["found"] else None
            except ToolMismatch:
                return False
        return bool(export["found"] or export.get("error"))

    def tools(self) -> Mapping[str, Tool]:
        """Return all its tools by name; none unless they were loaded."""
        return self._tools

    def subject(self, name: str) -> Subject:
        """Return a component; raise Absent if there is none."""
        try:
            return self._subjects[name]
        except KeyError:
            raise Absent(name) from None

    def subjects(self) -> list[Subject]:
        """Return all components that it has, in the contract's order."""
        return list(self._subjects.values())

    def forms(self) -> tuple[str, ...]:
        """Return the formats to which draws are rounded, so that its components get the oracle's numbers."""
        return narrowest({bound.dtype for bound in self.bounds()})

    def accuracy(self, component: str) -> tuple[str, float]:
        """Return the half precision in which a component is judged, and its error; nothing for wider formats.

        Clauses about `all` use the coarsest of them. Tools compute in float32 whatever the components do.
        """
        judged = self.bounds() if component == "all" else [s.bound for s in self.subjects() if s.name == component]
        halves = [bound.precision for bound in judged if bound.precision in HALF]
        return max(((form, tolerance(form)) for form in halves), key=lambda pair: pair[1], default=("", 0.0))

    def missing(self, profile: str = "core") -> list[str]:
        """Return the required components of a profile that are missing, except those that its variant does not need."""
        required = [c.name for c in components_of(profile).values() if c.required]
        lacking = [name for name in required if name not in self._subjects]
        left_out = self.config.skipped()
        return [name for name in lacking if not self.excused(name) and name not in left_out]

    def judged_inside(self, part: str) -> str:
        """Return the component of which this one is a part, if it is there and gives the definition's numbers."""
        wholes = (name for name, s in self._subjects.items() if part in PARTS.get(name, ()) and s.bound.fits)
        return next(wholes, "")

    def excused(self, component: str) -> str:
        """Return why the model's variant does not need a missing component, or nothing."""
        positions = self.variant_of("TinyTransformerLM").positions
        if component == "PositionalEncoding" and positions != "sinusoidal":
            return f"positions are {positions}"
        return ""

    def bounds(self) -> list[Bound]:
        """Return how each component is bound."""
        return [subject.bound for subject in self._subjects.values()]

    def rebind(self, bound: Bound) -> None:
        """Replace the binding of one of its components. Raises Absent if there is none of that name."""
        name = bound.component.name
        self._subjects[name] = self.subject(name).with_bound(bound)

    def rebind_as(self, name: str, variant: Variant, tries: int | None = None, *, wrong: bool = False) -> bool:
        """Bind one of its components again, under another variant; return whether that gives its numbers.

        If it does not, the binding stays as it was, unless it is `wrong` and has this variant's parameters. `tries` is
        how many assignments of weights are tried, by default as many as before. Raises Absent if there is none of that
        name.
        """
        subject = self.subject(name)
        open_again = replace(
            subject.bound, variant=variant, rules=(), unbound=(), guess=(), same_count=False, fits=False, failure=None,
            notes=(), constants=(), adapters=(),
        )  # fmt: skip
        probed = self._probed(subject.with_bound(open_again), tries)
        has_parameters = wrong and (probed.rules is not None or probed.same_count)
        if probed.failure is not None or not (probed.fits or has_parameters):
            return False
        self._subjects[name] = subject.with_bound(replace(probed, notes=subject.bound.notes))
        self.unusable.pop(name, None)
        return True

    def watch(self, on_built: Callable[[Instance], None]) -> None:
        """Call back for each object that its components construct from now on."""
        self._subjects = {name: subject.watched(on_built) for name, subject in self._subjects.items()}

    def close(self) -> None:
        """End its worker."""
        self.session.close()


def _check_limits(subject: Subject) -> None:
    """Raise LimitWithoutValue if a size that is declared by an expression has no value."""
    with suppress(NoSizeError):  # some clause may find a size
        subject.sizes()


def _found_export(component: Component, exports: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the export with its name, or with the first of its alternative names."""
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
