"""Use an implementation as any program does: import it, build something, load its weights, call it.

This is the program itself. It runs as a copy, in a process and a folder of its own, and imports nothing of the kit.
Its input says in a line whether to import torch at once; at the end of that input, `work.json` and `arrays.npz` next to
it say what to do. It leaves `0.1.0.npy` for the result of the second step of the
first case, `0.1.1.npy` for its first derivative, and `0.txt` where one raised.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import importlib.util
import json
import os
import random
import sys
import time
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

_HERE = Path(__file__).resolve().parent
_LATER = 100_000.0
_CLOCKS = ("time", "monotonic", "perf_counter", "process_time")


def main() -> None:
    """Carry out all cases; then the last call of each once more, a day later by the clock."""
    sys.dont_write_bytecode = True
    _wait()
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
            for place, step in enumerate(case["steps"]):
                _save(f"{number}.{place}", program.done(component, step, own, f"{place}/"))
            if case["steps"][-1].get("later"):
                ready.append((number, case["steps"], own, component))
        except (Exception, SystemExit) as error:  # noqa: BLE001
            (_HERE / f"{number}.txt").write_text(f"{type(error).__name__}: {error}"[:500], encoding="utf-8")
    _move_clocks()
    for number, steps, own, component in ready:
        try:
            _save(f"{number}.{len(steps)}", program.done(component, steps[-1], own, f"{len(steps) - 1}/"))
        except (Exception, SystemExit) as error:  # noqa: BLE001
            (_HERE / f"{number}.txt").write_text(f"{type(error).__name__}: {error}"[:500], encoding="utf-8")


def _wait() -> None:
    """Wait for the end of the input, which is empty from then on; import torch meanwhile if its first line says so."""
    if sys.stdin.readline().strip():
        with contextlib.suppress(ImportError, OSError):  # what needs it says so
            _torch()
    sys.stdin.read()
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)


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
        self._module, self._path, self._inner = work["module"], location["path"], False
        self._ready = _ready(work["own_calls"])
        self._torch: Any = _torch() if work["framework"] == "torch" else None
        if location["kind"] == "file" and "." not in location["name"]:
            spec = importlib.util.spec_from_file_location(work["module"], location["path"])
            if spec is not None and spec.loader is not None:
                module = importlib.util.module_from_spec(spec)
                sys.modules[work["module"]] = module
                spec.loader.exec_module(module)

    def built(self, case: Mapping[str, Any], arrays: Mapping[str, Any]) -> Any:
        """Return an object in evaluation mode."""
        target = self._resolved(case["path"])
        if isinstance(target, type) or case["factory"]:
            args, kwargs = self._arguments(case["build"], arrays, "build/")
            with self._seeded(case.get("seed")):
                target = self._ready(target(*args, **kwargs))
        torch = self._torch
        if torch is not None and isinstance(target, torch.nn.Module):
            target = target.to(getattr(torch, case["dtype"]))
        self._set_mode(target, "eval")
        return target

    def done(self, component: Any, step: Mapping[str, Any], arrays: Mapping[str, Any], prefix: str) -> list[Any]:
        """Carry out one step; return the result of a call and its derivatives as arrays."""
        if step["op"] == "write":
            known = self._known(component)
            for name in step["names"]:
                self._fill(_held(component, name, known), arrays[prefix + name])
            return []
        self._set_mode(component, step.get("mode"))
        self._inner = step.get("way") == "inner"
        made: dict[str, Any] = {}
        args, kwargs = self._arguments(step, arrays, prefix, component, made, step.get("wrt") or [])
        entry = component
        if step.get("function"):
            entry = self._resolved(step["function"])
        elif step.get("method"):
            entry = getattr(component, step["method"])
        with self._context(step), self._seeded(step.get("seed")):
            value = _picked(entry(*args, **kwargs), step.get("output"))
        if step["op"] != "vjp":
            return [self._array(value)]
        return [self._array(value), *self._derivatives(component, step, value, made, arrays[f"{prefix}cotangent"])]

    def _context(self, step: Mapping[str, Any]) -> Any:
        """Return that in which a call is made: with derivatives or without."""
        way = "no-grad" if step.get("record") is False else step.get("way")
        if self._torch is None or way not in {"no-grad", "inference"}:
            return contextlib.nullcontext()
        return self._torch.no_grad() if way == "no-grad" else self._torch.inference_mode()

    def _derivatives(self, component: Any, step: Mapping[str, Any], value: Any, made: Any, cotangent: Any) -> list[Any]:
        leaves, known = [], self._known(component)
        for name in step["results"][1:]:
            kind, _, own = name.partition(":")
            leaves.append(made[own] if kind == "grad" else _held(component, own, known))
        towards = (value * self._torch.tensor(cotangent).to(value.dtype)).sum()
        return [self._array(found) for found in self._torch.autograd.grad(towards, leaves)] if leaves else []

    def _array(self, value: Any) -> Any:
        if self._torch is not None and isinstance(value, self._torch.Tensor):
            value = self._torch.Tensor.detach(value).as_subclass(self._torch.Tensor)
            value = (value.double() if value.is_floating_point() else value).to_dense().cpu().numpy()
        return np.asarray(value)

    def _set_mode(self, component: Any, mode: str | None) -> None:
        if mode is None or isinstance(component, types.FunctionType):
            return
        if callable(getattr(component, mode, None)):
            getattr(component, mode)()
        elif isinstance(getattr(component, "training", None), bool):
            component.training = mode == "train"

    @contextlib.contextmanager
    def _seeded(self, seed: int | None) -> Iterator[None]:
        """Seed every generator, and put it back as it was: what follows is in a program that nobody has seeded."""
        if seed is None:
            yield
            return
        mine, numpys = random.getstate(), np.random.get_state()  # noqa: NPY002
        torchs = self._torch.get_rng_state() if self._torch is not None else None
        random.seed(seed)
        np.random.seed(seed % 2**32)  # noqa: NPY002
        if self._torch is not None:
            self._torch.manual_seed(seed)
        try:
            yield
        finally:
            random.setstate(mine)
            np.random.set_state(numpys)  # noqa: NPY002
            if self._torch is not None:
                self._torch.set_rng_state(torchs)

    def _fill(self, held: Any, array: Any) -> None:
        if isinstance(held, np.ndarray):
            held[...] = array
        elif self._torch is not None:
            with self._torch.no_grad():
                held.copy_(self._torch.from_numpy(array))

    def _known(self, component: Any) -> Mapping[str, Any]:
        """Return what a module has by name."""
        if self._torch is None or not isinstance(component, self._torch.nn.Module):
            return {}
        listed = (component.named_parameters, component.named_buffers)
        return {name: array for each in listed for name, array in each(remove_duplicate=False)}

    def _arguments(
        self, template: Mapping[str, Any], arrays: Mapping[str, Any], prefix: str, component: Any = None,
        tensors: dict[str, Any] | None = None, watched: Sequence[str] = (),
    ) -> tuple[list[Any], dict[str, Any]]:  # fmt: skip
        made: dict[str, Any] = {} if tensors is None else tensors

        def tensor(part: Mapping[str, Any]) -> Any:
            name = part["$tensor"]
            if name not in made:
                made[name] = self._tensor(arrays[prefix + name], part.get("cast"))
                if name in watched:
                    made[name].requires_grad_()
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
        made = made if cast is None else made.to(getattr(self._torch, cast))
        return made.requires_grad_().clone() if self._inner and made.is_floating_point() else made


def _torch() -> Any:
    """Import it so that its idle threads sleep: where others compute, those that spin cost more than they do."""
    os.environ["OMP_WAIT_POLICY"] = "PASSIVE"
    gc.disable()  # of what it makes hardly anything is garbage, and to look for it takes a tenth of the time
    try:
        return importlib.import_module("torch")
    finally:
        gc.enable()
        del os.environ["OMP_WAIT_POLICY"]


def _ready(text: str) -> Any:
    """Return what gives a call to a model that has none; no module of that name can be found."""
    found: dict[str, Any] = {}
    exec(text, found)  # noqa: S102 - it is the kit's own
    return found["ready"]


def _held(component: Any, name: str, known: Mapping[str, Any]) -> Any:
    return known[name] if name in known else _below(component, name.split("."))


def _below(value: Any, steps: Sequence[str]) -> Any:
    """Return what is found by these steps; some of them together may be one name that holds dots."""
    for count in range(1, len(steps) + 1):
        with contextlib.suppress(LookupError, AttributeError):
            found = _child(value, ".".join(steps[:count]))
            return _below(found, steps[count:]) if steps[count:] else found
    raise LookupError(".".join(steps))


def _child(value: Any, name: str) -> Any:
    if isinstance(value, Mapping):
        return {str(key): item for key, item in value.items()}[name]
    if isinstance(value, list | tuple) and name.isdecimal():
        return value[int(name)]
    return getattr(value, name)


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


def _save(name: str, arrays: Sequence[Any]) -> None:
    for place, array in enumerate(arrays):
        np.save(_HERE / f"{name}.{place}.npy", array, allow_pickle=False)


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
    os._exit(0)  # taking torch down again costs a third of its import
