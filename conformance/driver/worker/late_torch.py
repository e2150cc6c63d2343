"""Import torch without what it knows of tensors that hold no numbers; that is loaded where something first asks for it.

`torch._meta_registrations` and what it imports take a quarter of torch's import. They describe results on the device
`meta`, for tracers and compilers, and nothing that is computed on a real device depends on them. They are loaded at
once, and whole, before

- anything of torch is imported that is not there yet: tracers, compilers, private modules;
- `torch._refs`, `_decomp`, `_prims` or one of their operators is read as an attribute, as by `torch.broadcast_shapes`;
- the first tensor on `meta` is made, a fake tensor mode, a dispatcher in Python, or a functional tensor.

From then on all is as after an ordinary import. A release of torch that nobody has tried is imported whole. The program
that repeats calls imports torch as everybody does.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import sys
import threading
import types
import warnings
from collections.abc import Callable, Iterator, Sequence
from importlib.abc import Loader
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any

__all__ = ["complete", "import_torch"]

_LATE = "torch._meta_registrations"
_TRIED = ("2.13.",)
"""Releases of torch of which this is known to be right."""
_ATTRIBUTES = frozenset({"_decomp", "_meta_registrations", "_prims", "_refs"})
_NAMESPACES = ("prims", "rngprims", "debugprims")
_MAKERS = ("empty.memory_format", "empty_strided", "_efficientzerotensor", "tril_indices", "triu_indices")
"""Operators of which one makes the first tensor on `meta`, whatever is called: they need none, and all others do."""


def import_torch() -> None:
    """Import torch. Raises what its import raises."""
    if "torch" in sys.modules or not _tried():
        importlib.import_module("torch")
        return
    stand_in = _StandIn(_LATE)
    sys.modules[_LATE] = stand_in
    try:
        torch = importlib.import_module("torch")
    finally:
        if sys.modules.get(_LATE) is stand_in:
            del sys.modules[_LATE]
    if vars(torch).get("_meta_registrations") is stand_in:
        del torch._meta_registrations  # noqa: SLF001
        _Rest(torch).wait()


def complete() -> None:
    """Load the rest now, if torch is there without it; a release that was imported whole may have no such module."""
    if any(isinstance(finder, _Finder) for finder in sys.meta_path):
        importlib.import_module(_LATE)


def _tried() -> bool:
    spec = importlib.util.find_spec("torch")
    for folder in (spec and spec.submodule_search_locations) or ():
        with contextlib.suppress(OSError):
            text = Path(folder, "version.py").read_text(encoding="utf-8")
            return any(f"\n__version__ = '{release}" in text for release in _TRIED)
    return False


class _StandIn(types.ModuleType):
    """Stands for the module while torch is imported; whoever wants something of it then gets the module itself."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if sys.modules.get(_LATE) is self:
            del sys.modules[_LATE]
        return getattr(importlib.import_module(_LATE), name)


class _Rest:
    """The rest of torch, which waits until something asks for it."""

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self._lock = threading.RLock()
        self._undo: list[Callable[[], object]] = []

    def wait(self) -> None:
        """Watch everything that could ask for it."""
        torch = self._torch
        finder = _Finder(self.load)
        sys.meta_path.insert(0, finder)
        self._undo.append(lambda: sys.meta_path.remove(finder))
        torch._lazy_modules |= _ATTRIBUTES  # noqa: SLF001
        self._undo.append(lambda: torch._lazy_modules.difference_update(_ATTRIBUTES))  # noqa: SLF001
        classes = torch._subclasses.fake_tensor.FakeTensorMode, torch._subclasses.functional_tensor.FunctionalTensorMode  # noqa: SLF001
        for owner, name in (*((one, "__init__") for one in classes), (torch._ops.OpOverload, "decompose")):  # noqa: SLF001
            self._put(owner, name, self._loading_first(vars(owner)[name]))
        private = torch._C  # noqa: SLF001
        self._watch(
            private._EnablePythonDispatcher,  # noqa: SLF001
            private._functorch._func_increment_nesting,  # noqa: SLF001
            torch._enable_functionalization,  # noqa: SLF001
            torch._to_functional_tensor,  # noqa: SLF001
        )
        for name in _NAMESPACES:
            self._put(torch.ops, name, _Namespace(name, self.load))
        kernels = torch.library.Library("aten", "IMPL", "Meta")
        self._undo.append(kernels._destroy)  # noqa: SLF001
        for name in _MAKERS:
            packet, _, overload = name.partition(".")
            operator = getattr(getattr(torch.ops.aten, packet), overload or "default")
            kernels.impl(operator, self._loading_first(operator))

    def load(self) -> None:
        """Load it and watch no longer; what nobody has changed meanwhile is as torch made it."""
        with self._lock:
            undo, self._undo = self._undo, []
            for step in reversed(undo):
                with contextlib.suppress(ValueError):
                    step()
            if undo:
                with self._undisturbed():
                    importlib.import_module(_LATE)

    def _watch(self, *functions: Callable[..., Any]) -> None:
        """Load before these functions are called, by whatever name a module of torch holds them."""
        watched = {id(function): self._loading_first(function) for function in functions}
        modules = [module for name, module in sys.modules.items() if name.partition(".")[0] == "torch"]
        for module in modules:
            for name in [name for name, value in getattr(module, "__dict__", {}).items() if id(value) in watched]:
                self._put(module, name, watched[id(vars(module)[name])])

    def _put(self, owner: Any, name: str, value: Any) -> None:
        known = vars(owner).get(name, self)
        setattr(owner, name, value)

        def restore() -> None:
            if vars(owner).get(name) is value:
                delattr(owner, name) if known is self else setattr(owner, name, known)

        self._undo.append(restore)

    def _loading_first(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **named: Any) -> Any:
            self.load()
            return function(*arguments, **named)

        return call

    @contextlib.contextmanager
    def _undisturbed(self) -> Iterator[None]:
        """Import as at the start of a program, whatever mode, trace or setting is in force where something asks."""
        torch = self._torch
        trace, profile, dtype = sys.gettrace(), sys.getprofile(), torch.get_default_dtype()
        sys.settrace(None)
        sys.setprofile(None)
        try:
            with (
                warnings.catch_warnings(),
                torch._C.DisableTorchFunction(),  # noqa: SLF001
                torch.utils._python_dispatch._disable_current_modes(),  # noqa: SLF001
            ):
                warnings.simplefilter("ignore")
                torch.set_default_dtype(torch.float32)
                yield
        finally:
            torch.set_default_dtype(dtype)
            sys.setprofile(profile)
            sys.settrace(trace)


class _Namespace:
    """Operators that the rest of torch defines."""

    def __init__(self, name: str, load: Callable[[], None]) -> None:
        self._name, self._load = name, load

    def __getattr__(self, name: str) -> Any:
        self._load()
        return getattr(getattr(sys.modules["torch"].ops, self._name), name)


class _Finder:
    """Finds nothing, but loads the rest before any module of torch is imported; what that brought along is there."""

    def __init__(self, load: Callable[[], None]) -> None:
        self._load = load

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: Any = None) -> ModuleSpec | None:
        del path, target
        if not name.startswith("torch."):
            return None
        self._load()
        known = sys.modules.get(name)
        return None if known is None else ModuleSpec(name, _Known(known), is_package=hasattr(known, "__path__"))


class _Known(Loader):
    """Gives a module that has been imported meanwhile."""

    def __init__(self, module: types.ModuleType) -> None:
        self._module, self._spec = module, module.__spec__
        module.__spec__ = None  # else the import system would take this one and execute the module again

    def create_module(self, spec: ModuleSpec) -> types.ModuleType:
        del spec
        return self._module

    def exec_module(self, module: types.ModuleType) -> None:
        """Leave it as it is: only what the import system noted in it is put back."""
        module.__spec__ = self._spec
