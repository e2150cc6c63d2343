"""The calls of a script, and the variables of their results."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping
from typing import Any

from conformkit.conformance.apps.repro.arguments import Filled
from conformkit.conformance.apps.repro.objects import Objects
from conformkit.conformance.apps.repro.page import Page
from conformkit.conformance.apps.repro.recording import Record
from conformkit.conformance.apps.repro.scene import Scene
from conformkit.conformance.apps.repro.selection import Returned, pick, returned
from conformkit.conformance.text import one_line

__all__ = ["Steps"]

_NARROW = {"float16", "bfloat16"}


class Steps:
    """Writes the requests of a scene, one after another."""

    def __init__(self, scene: Scene, page: Page) -> None:
        self._scene = scene
        self._page = page
        self.objects = Objects(page)
        self.outputs: dict[tuple[int, str], str] = {}
        """Variables, by the number of the request and the name of its output."""

    def lines(self) -> Iterator[str]:
        """Yield the lines of all requests."""
        simple: Mapping[str, Callable[[Record], Iterator[str]]] = {
            "build": self.objects.constructed, "copy": self.objects.copied,
            "cast": self.objects.cast, "write": self.objects.written,
        }  # fmt: skip
        for number, record in enumerate(self._scene.records):
            if record.operation in simple:
                yield from simple[record.operation](record)
            else:
                yield from self._call(number, record)

    def output(self, number: int, name: str) -> str:
        """Return the variable of an output."""
        if (number, name) not in self.outputs:
            kind, _, rest = name.partition(":")
            stem = {"out": "out", "grad": f"grad_{rest}", "echo": f"{rest}_after", "param": "grad_w"}.get(kind, "more")
            count = sum(other.rstrip("0123456789") == stem for other in self.outputs.values())
            self.outputs[number, name] = self._page.free(stem if not count else f"{stem}{count + 1}")
        return self.outputs[number, name]

    def _call(self, number: int, record: Record) -> Iterator[str]:
        if record.operation == "vjp":
            yield from (f"{self._inputs(record)[str(name)]}.requires_grad_()" for name in record.header["wrt"])
        call = yield from self._prepared(record)
        if record.failure is not None:
            yield f"{call}  # raises {one_line(record.failure.type, 80)}"
        elif record.operation == "vjp":
            yield from self._gradients(number, record, call)
        elif number in self._scene.shown:
            yield from self._results(number, record, call)
        else:
            yield call

    def _prepared(self, record: Record) -> Generator[str, None, str]:
        """Yield the lines that set mode and seed; return the call itself."""
        handle = record.handle or 0
        yield from self.objects.switched(handle, record.header.get("mode"))
        filled = Filled(self._page, self._inputs(record), self.objects.name(handle))
        call = self.objects.call(record, filled)
        yield from self.objects.seeded(record.header.get("seed"))
        return call

    def _results(self, number: int, record: Record, call: str) -> Iterator[str]:
        selectors = record.header.get("output")
        first, *others = selectors if isinstance(selectors, list) else [selectors]
        wanted = self._wanted(number)
        if wanted == {"out"}:
            yield f"{self.output(number, 'out')} = {self._picked(call, record, first)}"
            return
        whole = self._page.free("returned")
        yield f"{whole} = {call}"
        for name in sorted(wanted):
            kind, _, rest = name.partition(":")
            if kind == "echo":
                yield f"{self.output(number, name)} = {self._plain(self._inputs(record)[rest])}"
            else:
                selector = first if name == "out" else others[int(name.partition(".")[2]) - 1]
                yield f"{self.output(number, name)} = {self._picked(whole, record, selector)}"

    def _gradients(self, number: int, record: Record, call: str) -> Iterator[str]:
        out, selector, inputs = self.output(number, "out"), record.header.get("output"), self._inputs(record)
        text, _ = pick(_structure(record), selector[0] if isinstance(selector, list) else selector)
        yield f"{out} = {text.format(call)}"
        leaves = {f"grad:{name}": inputs[str(name)] for name in record.header["wrt"]}
        handle = record.handle or 0
        if record.header.get("parameters") and self.objects.is_module(handle):
            names = [name for name in _asked(record) if name.startswith("param:")]
            module = self.objects.name(handle)
            leaves |= {name: f"{module}.get_parameter({name.removeprefix('param:')!r})" for name in names}
        shown = self._wanted(number)
        kept = {name: leaf for name, leaf in leaves.items() if name in shown} or leaves
        variables = [self.output(number, name) for name in kept]
        yield f"scalar = ({out} * {self._page.array(record.arrays['cotangent'], 'cotangent')}).sum()"
        given = ", ".join(kept.values())
        yield f"{', '.join(variables)}, = torch.autograd.grad(scalar, [{given}], allow_unused=True)"
        names = [variable for name, variable in zip(kept, variables, strict=True) if name in record.results]
        yield from (f"{name} = {self._plain(name)}" for name in [*names, out])

    def _wanted(self, number: int) -> set[str]:
        """Return the names of the outputs of a call that are shown."""
        finding = self._scene.finding
        if finding is None:
            found = {name for name in _asked(self._scene.records[number]) if not name.startswith("echo:")}
            return found or {"out"}
        origins = [finding.got, *([finding.want] if finding.want else [])]
        return {origin.output for origin in origins if origin.call == number} or {"out"}

    def _picked(self, call: str, record: Record, selector: Any) -> str:
        structure = _structure(record)
        text, native = pick(structure, selector)
        picked = text.format(call)
        if self._page.torch and native and structure.name != "ndarray":
            return self._plain(picked, narrow=bool(_NARROW & set((record.reply.get("dtypes") or {}).values())))
        return picked if structure.name == "ndarray" else f"np.asarray({picked})"

    def _plain(self, tensor: str, *, narrow: bool = False) -> str:
        return f"{tensor}.detach(){'.float()' if narrow else ''}.numpy()" if self._page.torch else tensor

    def _inputs(self, record: Record) -> dict[str, str]:
        arrays = record.arrays
        return {name: self._page.array(array, name) for name, array in arrays.items() if name != "cotangent"}


def _structure(record: Record) -> Returned:
    return returned(str(record.reply.get("structure", "")))


def _asked(record: Record) -> list[str]:
    """Return the results of a request, with None for missing gradients."""
    return [*record.results, *(str(name) for name in record.reply.get("none") or [])]
