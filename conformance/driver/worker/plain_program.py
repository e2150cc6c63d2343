"""Use an implementation as any program does: import it, build something, load its weights, call it.

This is the program itself. It runs as a copy, in a process and a folder of its own, and imports nothing of the kit.
`work.json` and `arrays.npz` next to it say what to do; it leaves `0.0.npy`, `0.1.npy` for the calls of the first
case, and `0.txt` where one raised.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

_HERE = Path(__file__).resolve().parent
_LATER = 100_000.0
_CLOCKS = ("time", "monotonic", "perf_counter", "process_time")


def main() -> None:
    """Carry out all cases; then the last call of each once more, a day later by the clock."""
    sys.dont_write_bytecode = True
    work = json.loads((_HERE / "work.json").read_text(encoding="utf-8"))
    arrays = dict(np.load(_HERE / "arrays.npz"))
    (_HERE / "work.json").unlink()
    (_HERE / "arrays.npz").unlink()
    if work["without"]:
        _leave_out(work["without"])
    program = _Program(work)
    ready = []
    for number, case in enumerate(work["cases"]):
        own = {name.partition("/")[2]: array for name, array in arrays.items() if name.startswith(f"{number}/")}
        try:
            component = program.built(case, own)
            for call in range(case["calls"]):
                _save(f"{number}.{call}", program.called(component, case, own, call))
            ready.append((number, case, own, component))
        except (Exception, SystemExit) as error:  # noqa: BLE001
            (_HERE / f"{number}.txt").write_text(f"{type(error).__name__}: {error}"[:500], encoding="utf-8")
    _move_clocks()
    for number, case, own, component in ready:
        try:
            _save(f"{number}.{case['calls']}", program.called(component, case, own, case["calls"] - 1))
        except (Exception, SystemExit) as error:  # noqa: BLE001
            (_HERE / f"{number}.txt").write_text(f"{type(error).__name__}: {error}"[:500], encoding="utf-8")


class _Without:
    """A finder of modules for which one package is not installed."""

    def __init__(self, finder: Any, package: str) -> None:
        self._finder, self._package = finder, package

    def __getattr__(self, name: str) -> Any:
        return getattr(self._finder, name)

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        return None if name.partition(".")[0] == self._package else self._finder.find_spec(name, path, target)


def _leave_out(package: str) -> None:
    """Let nobody find an installed package."""
    sys.meta_path[:] = [_Without(finder, package) for finder in sys.meta_path]
    for name in [name for name in sys.modules if package in name]:
        del sys.modules[name]


class _Program:
    def __init__(self, work: Mapping[str, Any]) -> None:
        location = work["location"]
        for entry in reversed(location["sys_path"]):
            if entry not in sys.path:
                sys.path.insert(0, entry)
        self._module, self._path = work["module"], location["path"]
        self._torch = importlib.import_module("torch") if work["framework"] == "torch" else None
        if location["kind"] == "file" and "." not in location["name"]:
            spec = importlib.util.spec_from_file_location(work["module"], location["path"])
            if spec is not None and spec.loader is not None:
                module = importlib.util.module_from_spec(spec)
                sys.modules[work["module"]] = module
                spec.loader.exec_module(module)

    def built(self, case: Mapping[str, Any], arrays: Mapping[str, Any]) -> Any:
        """Return an object in evaluation mode, with these weights."""
        target = self._resolved(case["path"])
        if isinstance(target, type) or case["factory"]:
            args, kwargs = self._arguments(case["build"], arrays, "build/")
            target = target(*args, **kwargs)
        torch = self._torch
        if torch is not None and isinstance(target, torch.nn.Module):
            target = target.to(getattr(torch, case["dtype"])).eval()
        elif callable(getattr(target, "eval", None)):
            target.eval()
        elif isinstance(getattr(target, "training", None), bool):
            target.training = False
        for name in case["weights"]:
            self._fill(target, name, arrays[f"weight/{name}"])
        return target

    def called(self, component: Any, case: Mapping[str, Any], arrays: Mapping[str, Any], call: int) -> Any:
        """Return the result of one call as an array."""
        args, kwargs = self._arguments(case["call"], arrays, f"{call}/", component)
        entry = component
        if case["call"].get("function"):
            entry = self._resolved(case["call"]["function"])
        elif case["call"].get("method"):
            entry = getattr(component, case["call"]["method"])
        value = _picked(entry(*args, **kwargs), case["call"].get("output"))
        if self._torch is not None and isinstance(value, self._torch.Tensor):
            value = self._torch.Tensor.detach(value).as_subclass(self._torch.Tensor)
            value = (value.double() if value.is_floating_point() else value).cpu().numpy()
        return np.asarray(value)

    def _fill(self, component: Any, name: str, array: Any) -> None:
        held = component
        if self._torch is not None and isinstance(component, self._torch.nn.Module):
            known = {**dict(component.named_parameters()), **dict(component.named_buffers())}
            held = known.get(name, component)
        if held is component:
            for step in name.split("."):
                held = _below(held, step)
        if isinstance(held, np.ndarray):
            held[...] = array
        elif self._torch is not None:
            with self._torch.no_grad():
                held.copy_(self._torch.tensor(array))

    def _arguments(
        self, template: Mapping[str, Any], arrays: Mapping[str, Any], prefix: str, component: Any = None
    ) -> tuple[list[Any], dict[str, Any]]:
        made: dict[str, Any] = {}

        def tensor(part: Mapping[str, Any]) -> Any:
            name = part["$tensor"]
            if name not in made:
                made[name] = self._tensor(arrays[prefix + name], part.get("cast"))
            return made[name]

        def called(part: Mapping[str, Any]) -> Any:
            own, named = arguments(part)
            return self._resolved(part["$object"])(*own, **named)

        makers: dict[str, Callable[[Mapping[str, Any]], Any]] = {"$tensor": tensor, "$object": called}
        makers["$self"] = lambda _: component
        makers["$name"] = lambda part: self._resolved(part["$name"])
        makers["$dtype"] = lambda part: getattr(self._torch or np, part["$dtype"])

        def filled(part: Any) -> Any:
            if isinstance(part, list):
                return [filled(item) for item in part]
            if not isinstance(part, dict):
                return part
            make = next((make for key, make in makers.items() if key in part), None)
            return make(part) if make is not None else {key: filled(item) for key, item in part.items()}

        def arguments(part: Mapping[str, Any]) -> tuple[list[Any], dict[str, Any]]:
            named = {key: filled(item) for key, item in (part.get("kwargs") or {}).items()}
            return [filled(item) for item in part.get("args") or []], named

        return arguments(template)

    def _resolved(self, path: str) -> Any:
        """Return what `module:attribute` names; without a module, what the implementation has under that name."""
        module, _, names = path.rpartition(":")
        first, *further = names.split(".")
        value = getattr(self._imported(module), first) if module else self._found(first)
        for name in further:
            value = getattr(value, name)
        return value

    def _imported(self, name: str) -> Any:
        return sys.modules.get(name) or importlib.import_module(name)

    def _found(self, name: str) -> Any:
        root = Path(self._path) if self._path else None
        is_package = root is not None and (root / "__init__.py").is_file()
        if root is None or not root.is_dir() or is_package:
            module = self._imported(self._module)
            if not isinstance(getattr(module, name, sys), type(sys)) or root is None:
                return getattr(module, name)
        for file in sorted(root.rglob("*.py")):
            if name in file.read_text(encoding="utf-8", errors="replace"):
                parts = file.relative_to(root).with_suffix("").parts
                below = parts[:-1] if parts[-1] == "__init__" else parts
                own = ".".join([self._module, *below] if is_package else below)
                found = getattr(self._imported(own), name, sys)
                if not isinstance(found, type(sys)):
                    return found
        return getattr(self._imported(self._module), name)

    def _tensor(self, array: Any, cast: str | None) -> Any:
        if self._torch is None:
            return np.array(array, dtype=cast)
        made = self._torch.tensor(array)
        return made if cast is None else made.to(getattr(self._torch, cast))


def _below(value: Any, step: str) -> Any:
    if isinstance(value, Mapping):
        return next(item for key, item in value.items() if str(key) == step)
    if isinstance(value, list | tuple) and step.isdecimal():
        return value[int(step)]
    return getattr(value, step)


def _picked(value: Any, output: Any) -> Any:
    """Return what is wanted of a result: by index, key or attribute, else the first array."""
    wanted = output[0] if isinstance(output, list) and output else output
    if wanted is None or wanted == "":
        preferred = value.get("logits") if wanted is None and isinstance(value, Mapping) else None
        return preferred if preferred is not None else next(_arrays(value), value)
    steps = wanted.split(".") if isinstance(wanted, str) and not isinstance(value, Mapping) else [wanted]
    for step in steps:
        if hasattr(value, "shape"):
            return value
        if isinstance(value, Mapping) and step not in value and isinstance(step, int):
            value = list(value.values())[step]
        elif isinstance(value, Mapping) or isinstance(step, int):
            value = value[step]
        else:
            value = value[int(step)] if step.isdecimal() else getattr(value, step)
    return value


def _arrays(value: Any, depth: int = 4) -> Iterator[Any]:
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        yield value
    elif depth:
        items = value.values() if isinstance(value, Mapping) else value if isinstance(value, list | tuple) else ()
        for item in items or getattr(value, "__dict__", {}).values():
            yield from _arrays(item, depth - 1)


def _save(name: str, array: Any) -> None:
    np.save(_HERE / f"{name}.npy", array, allow_pickle=False)


def _move_clocks() -> None:
    """From now on, clocks show a day later: what depends on the time shows it."""
    for name in _CLOCKS:
        for function, ahead in ((name, _LATER), (f"{name}_ns", int(_LATER * 1e9))):
            before = getattr(time, function)
            later = _later(before, ahead)
            for module in list(sys.modules.values()):
                for own, value in list(getattr(module, "__dict__", {}).items()):
                    if value is before and not own.startswith("__"):
                        setattr(module, own, later)


def _later(clock: Any, ahead: float) -> Any:
    return lambda: clock() + ahead


if __name__ == "__main__":
    main()
