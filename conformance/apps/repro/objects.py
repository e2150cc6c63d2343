"""The objects of a script: how each is constructed, filled, copied and switched between modes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from conformkit.conformance.apps.repro.arguments import Filled
from conformkit.conformance.apps.repro.helpers import PUT, SET_GLOBALS
from conformkit.conformance.apps.repro.page import Page
from conformkit.conformance.apps.repro.recording import Record
from conformkit.conformance.text import one_line

__all__ = ["Objects"]

_CASTS = {"float64": "double", "float32": "float", "float16": "half", "bfloat16": "bfloat16"}


class Objects:
    """Writes the steps that lead to a call, and knows the variables of objects by handle."""

    def __init__(self, page: Page) -> None:
        self._page = page
        self._names: dict[int, str] = {}
        self._builds: dict[int, Record] = {}
        self._modes: dict[int, str] = {}
        """Empty for functions."""

    def name(self, handle: int) -> str:
        """Return its variable; of a function, its name."""
        return self._names[handle]

    def constructed(self, record: Record) -> Iterator[str]:
        """Yield the lines that make an object, convert it, and put it into evaluation mode."""
        header, handle = record.header, record.handle or 0
        path, factory = str(header["path"]), bool(header.get("factory"))
        kind, target = self._page.imports.export(path)["kind"], self._page.imports.name(path)
        self._builds[handle] = record
        if kind == "function" and not factory:
            self._names[handle] = target
            return
        yield from self.seeded(header.get("seed"))
        yield from self._set(header.get("globals"))
        built = f"{target}({Filled(self._page, {}, '').arguments(header)})"
        if kind == "object" and not factory:
            self._page.modules.add("copy")
            built = f"copy.deepcopy({target})"
        if record.failure is not None:
            yield f"{built}  # raises {one_line(record.failure.type, 80)}"
            return
        name = self._new(handle)
        module = self.is_module(handle)
        yield f"{name} = {built}{f'{self._converted(record)}.eval()' if module else ''}"
        if not module:
            yield from self._switch(handle, "eval")

    def _set(self, chosen: Mapping[str, Any] | None) -> Iterator[str]:
        """Yield the lines that set globals of its module, keys of a dictionary there, or attributes."""
        if chosen:
            self._page.modules.add("sys")
            self._page.helpers[SET_GLOBALS] = None
            yield f"set_globals(sys.modules[{chosen['module']!r}], {dict(chosen['values'])!r})"

    def copied(self, record: Record) -> Iterator[str]:
        """Yield the line that copies an object."""
        self._page.modules.add("copy")
        original, handle = int(record.header["handle"]), record.handle or 0
        self._builds[handle] = self._builds[original]
        yield f"{self._new(handle)} = copy.deepcopy({self._names[original]})"
        self._modes[handle] = self._modes[original]

    def cast(self, record: Record) -> Iterator[str]:
        """Yield the line that converts an object later."""
        yield f"{self._names[record.handle or 0]}.{_CASTS[str(record.header['dtype'])]}()"

    def written(self, record: Record) -> Iterator[str]:
        """Yield the lines that set parameters."""
        handle = record.handle or 0
        name, weights = self._names[handle], self._page.named_weights(record.arrays)
        if not self.is_module(handle):
            self._page.helpers[PUT] = None
            yield f"for name, value in {weights}.items():"
            yield f"    put({name}, name, value{'.clone()' if self._page.torch else '.copy()'})"
            return
        buffers = {p["name"] for p in self._listing(handle) if p["kind"] == "buffer"}
        get = "get_buffer" if record.arrays.keys() <= buffers else "get_parameter"
        if get == "get_parameter" and record.arrays.keys() & buffers:
            get = "state_dict(keep_vars=True).get"
        yield from ["with torch.no_grad():", f"    for name, value in {weights}.items():"]
        yield f"        {name}.{get}(name).copy_(value)"

    def switched(self, handle: int, mode: str | None) -> Iterator[str]:
        """Yield the lines that change the mode, if it changes."""
        if mode is None or self._modes.get(handle, mode) == mode:
            return
        if self.is_module(handle):
            self._modes[handle] = mode
            yield f"{self._names[handle]}.{mode}()"
        else:
            yield from self._switch(handle, mode)

    def seeded(self, seed: Any) -> Iterator[str]:
        """Yield the lines that set the seed."""
        if seed is not None:
            yield f"torch.manual_seed({seed})" if self._page.torch else f"np.random.seed({seed})"

    def call(self, record: Record, filled: Filled) -> str:
        """Return the whole call; of a model without one of its own, those of its two halves."""
        header, build = record.header, self._builds.get(record.handle or 0)
        export = self._page.imports.export(str(build.header["path"])) if build else {}
        if not export.get("memory") or header.get("method") or header.get("function"):
            return f"{self._called(record)}({filled.arguments(header)})"
        by_place = zip((p["name"] for p in export["call"]), header.get("args") or [], strict=False)
        given = {**dict(by_place), **(header.get("kwargs") or {})}
        halves = {half: [p["name"] for p in export["methods"][half]] for half in ("encode", "decode")}
        encoded, decoded = (
            filled.arguments({"kwargs": {name: given[name] for name in names if name in given}})
            for names in halves.values()
        )
        model = self._called(record)
        return f"{model}.decode({export['memory']}={model}.encode({encoded}), {decoded})"

    def _called(self, record: Record) -> str:
        """Return the callable: an object, a method of it, or a function."""
        header, handle = record.header, record.handle or 0
        name, method = self._names[handle], header.get("method")
        if header.get("function"):
            return self._page.imports.name(str(header["function"]))
        if header.get("reset") and handle in self._modes:
            self._page.modules.add("copy")
            name = f"copy.deepcopy({name})"
        if method:
            return f"{name}.{method}"
        if handle not in self._modes or self.is_module(handle) or "forward" not in self._methods(handle):
            return name
        return f"({name} if callable({name}) else {name}.forward)" if self._page.torch else f"{name}.forward"

    def is_module(self, handle: int) -> bool:
        """Whether an object is a torch module, with registered parameters and a known way to call it."""
        kinds = {p["kind"] for p in self._listing(handle)}
        return self._page.torch and kinds <= {"parameter", "buffer"} and (bool(kinds) or self._is_bare_module(handle))

    def _is_bare_module(self, handle: int) -> bool:
        """Whether an object without parameters is of a class with `forward` but without its own `eval`."""
        methods = self._methods(handle)
        return handle in self._names and "forward" in methods and "eval" not in methods

    def _new(self, handle: int) -> str:
        count = sum(handle in self._modes for handle in self._names)
        self._names[handle] = self._page.free(f"m{count + 1}" if count else "m")
        self._modes[handle] = "eval"
        return self._names[handle]

    def _converted(self, record: Record) -> str:
        dtype, refused = record.header.get("dtype"), record.reply.get("dtype_refused") is not None
        return "" if dtype is None or refused else f".{_CASTS[str(dtype)]}()"

    def _switch(self, handle: int, mode: str) -> Iterator[str]:
        """Yield the line that switches an object that is not a torch module, if it has modes."""
        name = self._names[handle]
        self._modes[handle] = mode
        if mode in self._methods(handle):
            yield f"{name}.{mode}()"
        elif any(part in self._methods(handle) for part in ("train", "eval")) or mode == "train":
            yield f"{name}.training = {mode == 'train'}"

    def _methods(self, handle: int) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self._page.imports.export(str(self._builds[handle].header["path"]))["methods"]
        return found

    def _listing(self, handle: int) -> list[Mapping[str, Any]]:
        return list(self._builds[handle].reply.get("parameters") or [])
