"""Everything that a worker can be asked to do."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Any, ClassVar

from conformkit.conformance.driver.wire import frames as wire
from conformkit.conformance.driver.wire.arrays import Array, OutputError
from conformkit.conformance.driver.wire.values import as_json
from conformkit.conformance.driver.worker import applied, exports, outputs, own_calls, sequences, training
from conformkit.conformance.driver.worker.failures import failure
from conformkit.conformance.driver.worker.frameworks.base import (
    Framework,
    HeldArray,
    RequestError,
    UnsupportedError,
)
from conformkit.conformance.driver.worker.listing import listed
from conformkit.conformance.driver.worker.loading import LoadedImplementation, framework_named, load, location_place
from conformkit.conformance.driver.worker.module_globals import device_named, globals_set
from conformkit.conformance.driver.worker.observing import Notes
from conformkit.conformance.driver.worker.steps import CallSteps
from conformkit.conformance.driver.worker.templates import CallArguments, Filler, known

if TYPE_CHECKING:
    from conformkit.conformance.driver.worker.programs import Program

__all__ = ["Operations"]

Arrays = Mapping[str, Array]
Answer = tuple[dict[str, Any], dict[str, Array]]


@dataclass(slots=True)
class Called:
    """What a call returned and changed."""

    component: Any
    value: Any
    header: dict[str, Any]
    filler: Filler


class Operations:
    """The state of one worker: an implementation, and the components built from it, by handle."""

    def __init__(self) -> None:
        self._implementation: LoadedImplementation | None = None
        self._framework: Framework | None = None
        self._components: dict[int, Any] = {}
        self._handles = count(1)
        self._globals: dict[int, Mapping[str, Any]] = {}
        """By handle, the globals with which an object was built."""
        self._there: Operations | None = None
        self._begun: Program | None = None
        """A program of its own that waits for what it is to do."""

    def answer(self, header: Mapping[str, Any], arrays: Arrays) -> Answer:
        """Carry out one request; an exception becomes the error of the reply."""
        try:
            reply, out = self.perform(header, arrays)
        except BaseException as error:  # noqa: BLE001
            reply, out = {"ok": False, "error": self.failure(error, header)}, {}
        return reply, out

    def failure(self, error: BaseException, header: Mapping[str, Any]) -> dict[str, str]:
        """Describe an exception that a request raised."""
        loading = header.get("op") == "load"
        known = self._implementation
        place = known.place if known is not None else location_place(header.get("location") if loading else None)
        return failure(error, place, loading=loading)

    def perform(self, header: Mapping[str, Any], arrays: Arrays) -> Answer:
        """Carry out one request, and let exceptions through."""
        operation, required = self._OPERATIONS.get(str(header.get("op")), (None, ()))
        if operation is None:
            message = f"there is no operation {header.get('op')!r}"
            raise RequestError(message)
        missing = [key for key in required if key not in header]
        if missing:
            message = f"{header['op']} without {', '.join(missing)}"
            raise RequestError(message)
        own = self if header.get("device") is None or operation is Operations._load else self._on(header["device"])
        chosen = header.get("globals") or self._globals.get(header.get("handle") or 0)
        filler = self._filler(header, arrays) if chosen and arrays else None
        values = filler.fill(chosen["values"]) if filler and chosen else (chosen or {}).get("values", {})
        if chosen and own is not self:
            values = {**values, **device_named(chosen["module"], own.framework.device)}
        with globals_set(chosen["module"], values) if chosen else nullcontext():
            reply, out = operation(own, header, arrays)
        if chosen and "handle" in reply:
            self._globals[reply["handle"]] = chosen
        return {"ok": True, **reply}, out

    def _on(self, device: str) -> Operations:
        """Return operations on the same components, with inputs and results on another device."""
        if self.framework.device == device:
            return self
        if self._there is None or self._there.framework.device != device:
            self._there = copy.copy(self)
            self._there._framework = framework_named(self.framework.name, self.implementation, device)  # noqa: SLF001
        return self._there

    @property
    def implementation(self) -> LoadedImplementation:
        """What was loaded."""
        if self._implementation is None:
            message = "nothing is loaded"
            raise RequestError(message)
        return self._implementation

    @property
    def framework(self) -> Framework:
        """The framework of what was loaded."""
        if self._framework is None:
            message = "nothing is loaded"
            raise RequestError(message)
        return self._framework

    def _load(self, header: Mapping[str, Any], _: Arrays) -> Answer:
        loaded = load(header["location"])
        self._framework = framework_named(header.get("framework"), loaded, header.get("device", "cpu"))
        self._implementation = loaded
        facts = {"framework": self._framework.name, "version": self._framework.version}
        return {**facts, "module": loaded.name, "file": loaded.file, "notes": loaded.notes}, {}

    def _describe(self, header: Mapping[str, Any], _: Arrays) -> Answer:
        module = header.get("module")
        exports = {name: self._export(name, path, module) for name, path in header["targets"].items()}
        return {"exports": exports, "refused": self._refused(module) if module is not None else None}, {}

    def _refused(self, module: str) -> dict[str, str] | None:
        """Return what the import of the declared module raises, None if it imports."""
        try:
            self.implementation.resolve(f"{module}:__name__")
        except (Exception, SystemExit) as error:  # noqa: BLE001
            return failure(error, self.implementation.place, loading=True)
        return None

    def _list(self, header: Mapping[str, Any], _: Arrays) -> Answer:
        """Describe these paths and, unless only they are requested, everything that the implementation defines."""
        items, left_out = listed(self.implementation, header["paths"], others=bool(header.get("others")))
        return {"items": items, "left_out": left_out}, {}

    def _export(self, name: str, path: str | None, module: str | None) -> dict[str, Any]:
        try:
            found = path or self.implementation.find(name, module)
            value = self.implementation.resolve(found) if found is not None else None
            if found is None or value is None:
                return {"found": False, "path": found, "error": None}
            return exports.describe(value, found, self.implementation.place)
        except (Exception, SystemExit) as error:  # noqa: BLE001
            return {"found": False, "path": path, "error": failure(error, self.implementation.place, loading=True)}

    def _build(self, header: Mapping[str, Any], arrays: Arrays) -> Answer:
        with self.framework.marking() if header.get("marked") else nullcontext():
            component = self._construct(header, arrays)
        dtype, refused = header.get("dtype"), None
        if dtype is not None and not _is_function(component):
            try:
                self.framework.cast(component, dtype)
            except Exception as error:  # noqa: BLE001
                refused = failure(error, self.implementation.place)
                component = self._construct(header, arrays)
        if not _is_function(component):
            self.framework.settle(component)
        held = [] if _is_function(component) else self.framework.held(component)
        facts = {"dtype_refused": refused, "lazy": any(item.lazy for item in held)}
        handle = self._keep(component, header.get("as"))
        return {"handle": handle, "parameters": [item.header() for item in held], **facts}, {}

    def _construct(self, header: Mapping[str, Any], arrays: Arrays) -> Any:
        if header.get("seed") is not None:
            self.framework.seed(header["seed"])
        target = self.implementation.resolve(header["path"])
        kind = exports.kind_of(target)
        filler = Filler(
            self.framework,
            arrays,
            self.implementation.resolve,
            components=self._components,
            seed=header.get("seed") or 0,
        )
        if header.get("parameters") is not None:
            return self._applied(target, header, filler, makes=kind == "class" or bool(header.get("factory")))
        if kind == "class" or header.get("factory"):
            args, kwargs = filler.arguments(header)
            made = own_calls.ready(target(*args, **kwargs))
            return made if header.get("head") is None else self._headed(made, header["head"], filler)
        return target if kind == "function" else self.framework.copied(target)

    def _headed(self, model: Any, head: Mapping[str, Any], filler: Filler) -> applied.Headed:
        """Return a model with the head that stands outside of it."""
        made = head["matrix"] if head.get("matrix") else filler.fill(head["made"])
        is_array = self.framework.is_array
        return applied.Headed(model, made, lambda value: outputs.pick(value, head.get("output"), is_array)["out"])

    def _applied(self, target: Any, header: Mapping[str, Any], filler: Filler, *, makes: bool) -> applied.Applied:
        """Return a function with the weights that its calls get; `makes`: the target gives its init and its apply."""
        args, kwargs = filler.arguments(header["parameters"])
        function, params = target, args[0] if args else kwargs
        if makes:
            given, named = filler.arguments(header)
            init, function = applied.pair(target(*given, **named))
            params = applied.made(init(*args, **kwargs))
        component = applied.Applied(function, params, spread=header["parameters"]["spread"])
        self.framework.make_trainable(component)
        return component

    def _parameters(self, header: Mapping[str, Any], _: Arrays) -> Answer:
        component = self._component(header)
        if header.get("mode") is not None and not _is_function(component):
            self.framework.set_mode(component, header["mode"])
        return {"parameters": [item.header() for item in self._held(header).values()]}, {}

    def _read(self, header: Mapping[str, Any], _: Arrays) -> Answer:
        component = self._component(header)
        if header.get("mode") is not None and not _is_function(component):
            self.framework.set_mode(component, header["mode"])
            return self._copied(header)
        with self.framework.bound_layout(component):
            return self._copied(header)

    def _copied(self, header: Mapping[str, Any]) -> Answer:
        held = self._held(header)
        names = header.get("names")
        wanted = [name for name, item in held.items() if not item.lazy] if names is None else names
        out: dict[str, Array] = {}
        dtypes: dict[str, str] = {}
        left_out: list[str] = []
        for name in wanted:
            try:
                out[name], dtypes[name] = self.framework.array(_existing(held, name).value)
            except OutputError:  # a complex table, say
                left_out.append(name)
        return {"dtypes": dtypes, "left_out": left_out}, out

    def _write(self, header: Mapping[str, Any], arrays: Arrays) -> Answer:
        with self.framework.bound_layout(self._component(header)):
            return self._filled(header, arrays)

    def _filled(self, header: Mapping[str, Any], arrays: Arrays) -> Answer:
        held = self._held(header)
        first: dict[str, tuple[HeldArray, Array]] = {}
        for name, array in arrays.items():
            item = _existing(held, name)
            if item.shape != array.shape:
                message = f"{name} has shape {item.shape}, the values have {array.shape}"
                raise RequestError(message)
            first.setdefault(item.alias or name, (item, array))
        self.framework.write(first.values())
        return {}, {}

    def _call(self, header: Mapping[str, Any], arrays: Arrays) -> Answer:
        called = self._run(header, arrays)
        if header.get("ids") and outputs.has_no_ids(called.value):
            return {**called.header, "dtypes": {"out": "int64"}, "requires_grad": False}, {"out": outputs.no_ids()}
        picked = outputs.pick(called.value, header.get("output"), self.framework.is_array)
        if header.get("ids"):
            picked["out"] = outputs.filled_up(picked["out"])
        out, dtypes = self._convert(picked)
        called.header |= {"dtypes": dtypes, "requires_grad": self.framework.requires_grad(picked["out"])}
        called.header |= self._kept(called.value, header)
        if header.get("echo"):
            for name, tensor in called.filler.tensors.items():
                out[f"echo:{name}"] = self.framework.array(tensor)[0]
        return called.header, out

    def _trace(self, header: Mapping[str, Any], arrays: Arrays) -> Answer:
        """Call without recording derivatives, and report what happened inside."""
        notes = Notes(header["rows"], header["keys"])
        with self.framework.observed(self._component(header), notes):
            called = self._run({**header, "watch": False, "record": False}, arrays)
        picked = outputs.pick(called.value, header.get("output"), self.framework.is_array)
        return notes.header(), {"out": self._convert(picked)[0]["out"]}

    def _observe(self, header: Mapping[str, Any], arrays: Arrays) -> Answer:
        """Call without recording derivatives, and send each operation with the numbers that it gave."""
        framework, component, steps = self.framework, self._component(header), CallSteps()
        framework.set_mode(component, "eval")
        filler = self._filler(header, arrays, component)
        args, kwargs = filler.calls(header, filler.arguments(header))[0]
        entry = framework.entry(component, header.get("method"))
        with framework.unrecorded(), framework.followed(component, filler.tensors, steps) as place_of:
            value = entry(*args, **kwargs)
        picked = outputs.pick(value, header.get("output"), framework.is_array)["out"]
        found = {"values": steps.values, "place": place_of(picked), "cut": steps.cut}
        return found, {"out": self._convert({"out": picked})[0]["out"], "numbers": steps.numbers()}

    def _ask(self, header: Mapping[str, Any], arrays: Arrays) -> Answer:
        """Call, and reply in texts, numbers and lists; or read an attribute, calling it if it is a method."""
        attribute, given = header.get("attribute"), {}
        if attribute is None:
            called = self._run({**header, "watch": False}, arrays)
            value, given = called.value, called.filler.tensors
        else:
            value = getattr(self._component(header), attribute)
            value = value() if callable(value) and not self.framework.is_array(value) else value
        if header.get("keep"):
            return {"value": None, **self._kept(value, header)}, {}
        taken = outputs.taken(value, header.get("output"), self.framework.is_array)
        if not header.get("echo"):
            large: dict[str, Array] = {}
            return {"value": as_json(taken, self.framework.is_array, self.framework.array, large)}, large
        after = {**arrays, **{name: self.framework.array(tensor)[0] for name, tensor in given.items()}}
        return {"value": None}, {f"echo:{name}": array for name, array in after.items()}

    def _vjp(self, header: Mapping[str, Any], arrays: Arrays) -> Answer:
        wrt = list(header.get("wrt") or [])
        called = self._run(header, arrays, wrt)
        picked = outputs.pick(called.value, header.get("output"), self.framework.is_array)
        out, dtypes = self._convert({"out": picked["out"]})
        if out["out"].shape != arrays["cotangent"].shape:
            message = f"returned shape {out['out'].shape}, expected {arrays['cotangent'].shape}"
            raise OutputError(message)
        inputs = {name: called.filler.tensors[name] for name in wrt}
        gradients = self.framework.gradients(
            called.component, picked["out"], arrays["cotangent"], inputs, parameters=bool(header.get("parameters"))
        )
        found = {f"grad:{name}": grad for name, grad in gradients.inputs.items()}
        found |= {f"param:{name}": grad for name, grad in gradients.parameters.items()}
        out |= {name: grad for name, grad in found.items() if grad is not None}
        none = [name for name, grad in found.items() if grad is None]
        requires_grad = self.framework.requires_grad(picked["out"])
        return {**called.header, "dtypes": dtypes, "requires_grad": requires_grad, "none": none}, out

    def _filler(self, header: Mapping[str, Any], arrays: Arrays, component: Any = None) -> Filler:
        return Filler(
            self.framework, arrays, self.implementation.resolve, component, self._components, header.get("dtype")
        )

    def _run(self, header: Mapping[str, Any], arrays: Arrays, wrt: list[str] | None = None) -> Called:
        """Fill the arguments, set mode and seed, call, and note how the call changed modes and random state."""
        framework, component = self.framework, self._component(header)
        if header.get("reset"):
            component = self.framework.copied(component)
        if header.get("mode") is not None and not _is_function(component):
            framework.set_mode(component, header["mode"])
        filler = self._filler(header, arrays, component)
        filled = filler.arguments(header)
        if wrt is not None:
            _check_names(wrt, filler.tensors)
            framework.watch(filler.tensors, wrt)
        calls = filler.calls(header, filled)
        function = header.get("function")
        entry = self.implementation.resolve(function) if function else self._entry(component, header)
        if header.get("seed") is not None:
            framework.seed(header["seed"])
        watched = header.get("watch") is not False
        before = framework.digest() if watched else ""
        unrecorded = framework.unrecorded() if header.get("record") is False else nullcontext()
        seeing = self._watched(component, header.get("seeing"))
        graph = framework.graph_watched() if header.get("graph") else nullcontext(_no)
        with unrecorded, graph as has_graph, seeing as seen:
            value = self._called(entry, calls, header)
        training, modes = framework.modes(component) if watched else (None, [])
        rng = [before, framework.digest()] if watched else []
        facts = {"rng": rng, "training": training, "modes": modes, "graph": has_graph()}
        facts["seen"] = seen(_first(value, framework)) if header.get("seeing") else []
        return Called(component, value, {**facts, "structure": outputs.describe(value, framework.is_array)}, filler)

    def _entry(self, component: Any, header: Mapping[str, Any]) -> Callable[..., Any]:
        """Return what is called; with `own`, only a method that its author wrote."""
        method = header.get("method")
        if header.get("own") and method is not None and not exports.defines(component, method):
            message = f"{type(component).__name__} has no method {method} of its own"
            raise OutputError(message)
        if method is None and sequences.holds_items(component):
            return lambda: sequences.all_items(component, self.framework)
        return self.framework.entry(component, method)

    def _watched(self, component: Any, what: str | None) -> AbstractContextManager[Callable[[Any], list[str]]]:
        """In this context, note what a call does: `devices` or `formats`. The callable tells, given the result."""
        if what is None:
            return nullcontext(_nothing)
        return self.framework.watched(component, what, self.implementation.place)

    def _called(self, entry: Callable[..., Any], calls: list[CallArguments], header: Any) -> Any:
        """Call once, or for each sequence."""
        values = [entry(*args, **kwargs) for args, kwargs in calls]
        return sequences.stacked(values, self.framework, empty=header["empty"]) if header.get("each") else values[0]

    def _convert(self, values: Mapping[str, Any]) -> tuple[dict[str, Array], dict[str, str]]:
        out: dict[str, Array] = {}
        dtypes: dict[str, str] = {}
        for name, value in values.items():
            out[name], dtypes[name] = self.framework.array(value)
        return out, dtypes

    def _hold(self, _: Mapping[str, Any], arrays: Arrays) -> Answer:
        """Make separate trainable arrays, for tools that work on parameters and their gradients."""
        return {"handle": self._keep(self.framework.holder(arrays))}, {}

    def _make(self, header: Mapping[str, Any], arrays: Arrays) -> Answer:
        """Make an object for later calls, such as an empty cache, and keep it."""
        filler = self._filler(header, arrays)
        return {"handle": self._keep(filler.fill(header["template"]))}, {}

    def _record(self, header: Mapping[str, Any], arrays: Arrays) -> Answer:
        """Let the framework record what a call of a component with these arguments does, and keep what it makes."""
        component = self._component(header)
        filler = self._filler(header, arrays, component)
        args, kwargs = filler.calls(header, filler.arguments(header))[0]
        if header.get("function"):
            message = "it is called by a function"
            raise UnsupportedError(message)
        made = self.framework.recorded(component, header["way"], header.get("method"), list(args), dict(kwargs))
        return {"handle": self._keep(made), "closed": str(getattr(made, "closed", ""))[:500]}, {}

    def _gradients(self, header: Mapping[str, Any], arrays: Arrays) -> Answer:
        """Set the gradients of these arrays by name, then return all gradients."""
        component = self._component(header)
        if arrays:
            self.framework.put_gradients(component, arrays)
        found = self.framework.kept_gradients(component)
        none = [name for name, grad in found.items() if grad is None]
        return {"none": none}, {name: grad for name, grad in found.items() if grad is not None}

    def _loop(self, header: Mapping[str, Any], _: Arrays) -> Answer:
        """Make a trainer for a component."""
        return {"handle": self._keep(training.Loop(self.framework, self._component(header)))}, {}

    def _train(self, header: Mapping[str, Any], arrays: Arrays) -> Answer:
        """Take one step per batch; the first axis of the `stepped` arrays, by default `ids`, counts them."""
        loop = self._component(header)
        stepped = header.get("stepped") or ["ids"]

        def forward(step: int) -> Any:
            own = {**arrays, **{name: arrays[name][step] for name in stepped}}
            filler = Filler(self.framework, own, self.implementation.resolve, loop.component, dtype=header.get("dtype"))
            calls = filler.calls(header, filler.arguments(header))
            value = self._called(self.framework.entry(loop.component, None), calls, header)
            return outputs.pick(value, header.get("output"), self.framework.is_array)["out"]

        return {}, {"out": loop.run(forward, arrays["targets"], header["rates"], header["max_norm"])}

    def _copy(self, header: Mapping[str, Any], _: Arrays) -> Answer:
        return {"handle": self._keep(self.framework.copied(self._component(header)))}, {}

    def _cast(self, header: Mapping[str, Any], _: Arrays) -> Answer:
        self.framework.cast(self._component(header), header["dtype"])
        return {}, {}

    def _move(self, header: Mapping[str, Any], _: Arrays) -> Answer:
        """Move a component to the device of the request, as users do."""
        if not _is_function(self._component(header)):
            self.framework.move(self._component(header))
        return {}, {}

    def _restore(self, header: Mapping[str, Any], _: Arrays) -> Answer:
        """Load the state of another component."""
        self.framework.load_state(self._component(header), known(self._components, header["of"]))
        return {}, {}

    def _release(self, header: Mapping[str, Any], _: Arrays) -> Answer:
        self._components.pop(header["handle"], None)
        return {}, {}

    def _prepare(self, header: Mapping[str, Any], _: Arrays) -> Answer:
        """Start the program of a later request, or end it again."""
        from conformkit.conformance.driver.worker.programs import Program  # noqa: PLC0415 - few runs need one

        begun, self._begun = self._begun, Program(torch=header["torch"]) if header["begin"] else None
        if begun is not None:
            begun.close()
        return {}, {}

    def _program(self, header: Mapping[str, Any], arrays: Arrays) -> Answer:
        from conformkit.conformance.driver.worker.programs import Program  # noqa: PLC0415 - few runs need one

        program, self._begun = self._begun, None
        if program is not None and not program.waits:
            program.close()
            program = None
        return (program or Program()).carry_out(header, arrays)

    def _batch(self, header: Mapping[str, Any], arrays: Arrays) -> Answer:
        replies: list[dict[str, Any]] = []
        out: dict[str, Array] = {}
        own = wire.split(arrays, len(header["requests"]))
        for index, (request, inputs) in enumerate(zip(header["requests"], own, strict=True)):
            reply, given = self.answer(request, inputs)
            replies.append(reply)
            last = index + 1 == len(header["requests"])
            # copies: what a later request changes in place must not change the reply to an earlier one
            out |= {f"{index}/{name}": array if last else array.copy() for name, array in given.items()}
        return {"replies": replies}, out

    def _keep(self, component: Any, chosen: int | None = None) -> int:
        handle = next(self._handles) if chosen is None else chosen
        self._components[handle] = component
        return handle

    def _kept(self, value: Any, header: Mapping[str, Any]) -> dict[str, Any]:
        """Keep what a call returned, or a part of it, for later calls; null if that is not there."""
        if not header.get("keep"):
            return {}
        found = outputs.remainder(value, header["keep"].get("output"), self.framework.is_array)
        found = value if header["keep"].get("whole") else found
        return {"kept": None if found is None else self._keep(found)}

    def _component(self, header: Mapping[str, Any]) -> Any:
        return known(self._components, header.get("handle"))

    def _held(self, header: Mapping[str, Any]) -> dict[str, HeldArray]:
        component = self._component(header)
        return {} if _is_function(component) else {item.name: item for item in self.framework.held(component)}

    _OPERATIONS: ClassVar[
        dict[str, tuple[Callable[[Operations, Mapping[str, Any], Arrays], Answer], tuple[str, ...]]]
    ] = {
        "load": (_load, ("location",)),
        "describe": (_describe, ("targets",)),
        "list": (_list, ("paths",)),
        "build": (_build, ("path",)),
        "parameters": (_parameters, ("handle",)),
        "read": (_read, ("handle",)),
        "write": (_write, ("handle",)),
        "call": (_call, ("handle",)),
        "ask": (_ask, ("handle",)),
        "trace": (_trace, ("handle", "rows", "keys")),
        "observe": (_observe, ("handle",)),
        "vjp": (_vjp, ("handle", "wrt")),
        "hold": (_hold, ()),
        "make": (_make, ("template",)),
        "record": (_record, ("handle", "way")),
        "gradients": (_gradients, ("handle",)),
        "loop": (_loop, ("handle",)),
        "train": (_train, ("handle", "rates", "max_norm")),
        "copy": (_copy, ("handle",)),
        "cast": (_cast, ("handle", "dtype")),
        "move": (_move, ("handle",)),
        "restore": (_restore, ("handle", "of")),
        "release": (_release, ("handle",)),
        "prepare": (_prepare, ("begin", "torch")),
        "program": (_program, ("work", "seconds")),
        "batch": (_batch, ("requests",)),
    }
    """Each operation, and the keys that its request must have."""


def _existing(held: Mapping[str, HeldArray], name: str) -> HeldArray:
    if name not in held or held[name].lazy:
        message = f"the component has no array {name!r}" if name not in held else f"{name!r} has no shape yet"
        raise RequestError(message)
    return held[name]


def _check_names(names: list[str], tensors: Mapping[str, Any]) -> None:
    missing = [name for name in names if name not in tensors]
    if missing:
        message = f"no argument uses {', '.join(missing)}"
        raise RequestError(message)


def _no() -> bool:
    return False


def _nothing(_: Any) -> list[str]:
    return []


def _first(value: Any, framework: Framework) -> Any:
    """Return the first array that a call gave, or what it gave if there is none."""
    try:
        return outputs.pick(value, None, framework.is_array)["out"]
    except OutputError:
        return value


def _is_function(component: Any) -> bool:
    return exports.kind_of(component) == "function"
