"""PyTorch: a module as `torch.compile` and `torch.export` make it, which then stands in for the module."""

from __future__ import annotations

import contextlib
import functools
import inspect
import io
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn

from conformkit.conformance.driver.worker.frameworks.base import UnsupportedError

__all__ = ["Compiled", "Exported"]

_FREE = torch.export.Dim.DYNAMIC


class Compiled:
    """A module compiled by the backend `eager`, which carries out the recorded graphs as they are."""

    def __init__(self, component: Any, entry: Callable[..., Any], method: str | None) -> None:
        self.graphs = 0
        """How many graphs were recorded so far: one for each piece between breaks, and for each recompilation."""
        self._component = component
        with _said("compiled"):
            _check_module(component)
            torch._dynamo.reset()  # noqa: SLF001 - others count against its limit
            self._call = torch.compile(entry, backend=self._counted)
        if method is not None:
            setattr(self, method, self.__call__)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call what was compiled. Raises UnsupportedError whatever it raises."""
        with _said("compiled"):
            return self._call(*args, **kwargs)

    def eval(self) -> None:
        """Put the module into evaluation mode."""
        self._component.eval()

    def train(self) -> None:
        """Put the module into training mode."""
        self._component.train()

    def _counted(self, graph: Any, _: Any) -> Any:
        self.graphs += 1
        return graph.forward


class Exported:
    """A module exported for arguments like these, whose extents are left open where that is possible."""

    def __init__(self, component: Any, method: str | None, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        self.closed = ""
        """Why it takes no other extents than those of these arguments; empty if it does."""
        with _said("exported"):
            _check_module(component)
            if method is not None:
                message = f"its method {method} is called, and only `forward` can be exported"
                raise UnsupportedError(message)
            with _plain_results(component):
                try:
                    program = _export(component, args, kwargs, _open(component, args, kwargs))
                except Exception as error:  # noqa: BLE001 - torch raises many kinds
                    self.closed = _line(error)
                    program = _export(component, args, kwargs, None)
            self._call = program.module()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the program. Raises UnsupportedError whatever it raises."""
        with _said("exported"):
            return self._call(*args, **kwargs)


def _check_module(component: Any) -> None:
    if not isinstance(component, nn.Module):
        message = f"a {type(component).__name__} is no nn.Module"
        raise UnsupportedError(message)


def _export(module: nn.Module, args: Sequence[Any], kwargs: Mapping[str, Any], extents: Any) -> Any:
    return torch.export.export(module, tuple(args), dict(kwargs), dynamic_shapes=extents, strict=False)


def _open(module: nn.Module, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Leave open each extent of an argument that is above 1: torch takes an extent of 1 as it is."""
    given = inspect.signature(module.forward).bind(*args, **kwargs).arguments
    return {name: _open_extents(value) for name, value in given.items()}


def _open_extents(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return {axis: _FREE for axis, extent in enumerate(value.shape) if extent > 1}
    if isinstance(value, tuple | list):  # *args
        return [_open_extents(item) for item in value]
    return {name: _open_extents(item) for name, item in value.items()} if isinstance(value, dict) else None


@contextmanager
def _plain_results(module: nn.Module) -> Iterator[None]:
    """Let a module return objects of its own as dictionaries: torch exports no others without being told how."""
    forward = module.forward

    @functools.wraps(forward)
    def plain(*args: Any, **kwargs: Any) -> Any:
        value = forward(*args, **kwargs)
        if isinstance(value, torch.Tensor | tuple | list | Mapping):
            return value
        return {name: item for name, item in vars(value).items() if isinstance(item, torch.Tensor)}

    own = vars(module).get("forward")
    module.forward = plain
    try:
        yield
    finally:
        del module.forward
        if own is not None:
            module.forward = own


@contextmanager
def _said(what: str) -> Iterator[None]:
    """Turn whatever torch or the code raises into UnsupportedError, and keep quiet about the attempt."""
    try:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    except MemoryError:
        raise
    except Exception as error:
        message = f"it cannot be {what} here: {_line(error)}"
        raise UnsupportedError(message) from error


def _line(error: BaseException) -> str:
    """Return the first line of a long message, with the kind of error."""
    first = next((line for line in str(error).splitlines() if line.strip()), "")
    return first if isinstance(error, UnsupportedError) else f"{type(error).__name__}: {first}"
