"""Isolation `none`: the implementation runs inside the harness, to step through it with a debugger. No limits hold."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from conformkit.conformance.driver.client.interface import NO_ARRAYS, Arrays, Driver, Limits, LoadReply, Reply
from conformkit.conformance.driver.errors import DriverError, ImplementationFailure
from conformkit.conformance.driver.location import Location
from conformkit.conformance.driver.wire.text import clean_tree

if TYPE_CHECKING:
    from conformkit.conformance.driver.worker.operations import Operations

__all__ = ["InProcess"]


class InProcess(Driver):
    """Like `Session`, without a process: exceptions keep their traceback, and can be stepped into."""

    def __init__(
        self,
        location: Location,
        framework: str | None = None,
        limits: Limits = Limits(),  # noqa: B008
        preload_torch: bool = False,  # noqa: ARG002
        device: str = "cpu",
    ) -> None:
        super().__init__(location, framework, limits, device)
        self._operations: Operations | None = None
        self._modules, self._path, self._finders = set(sys.modules), list(sys.path), list(sys.meta_path)

    @property
    def lost(self) -> bool:
        """Whether nothing is loaded."""
        return self._operations is None

    def start(self) -> LoadReply:
        """Import the implementation here."""
        from conformkit.conformance.driver.worker.operations import Operations  # noqa: PLC0415

        self.generation += 1
        self._operations = Operations()
        self._modules, self._path, self._finders = set(sys.modules), list(sys.path), list(sys.meta_path)
        header = self.request(self.load_header()).header
        facts = (header["framework"], header["version"], header["module"], header["file"])
        return LoadReply(*facts, tuple(header["notes"]))

    def restart(self) -> LoadReply:
        """Drop the implementation's modules, and import it again."""
        self.close()
        return self.start()

    def request(self, header: Mapping[str, Any], tensors: Arrays = NO_ARRAYS, seconds: float | None = None) -> Reply:  # noqa: ARG002
        """Carry out one operation in this process."""
        if self._operations is None:
            message = "nothing is loaded: start it first"
            raise DriverError(message)
        try:
            reply, out = self._operations.perform(header, {name: array.copy() for name, array in tensors.items()})
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            described = clean_tree(self._operations.failure(error, header))
            raise ImplementationFailure(**described) from error
        return Reply(clean_tree(reply), {name: array.copy() for name, array in out.items()})

    def batch(
        self, requests: Sequence[tuple[Mapping[str, Any], Arrays]], seconds: float | None = None
    ) -> list[Reply | ImplementationFailure]:
        """Carry out one operation after the other."""
        replies: list[Reply | ImplementationFailure] = []
        for header, tensors in requests:
            try:
                replies.append(self.request(header, tensors, seconds))
            except ImplementationFailure as failure:
                replies.append(failure)
        return replies

    def take_output(self) -> str:
        """Return nothing: the output went to the harness's own stdout."""
        return ""

    def close(self) -> None:
        """Drop every component, and the modules that were imported from the implementation's folder."""
        self._operations = None
        location = self.location
        added = [Path(entry) for entry in sys.path if entry not in self._path]
        roots = [*added, *([location.path] if location.path is not None else [])]
        for name in set(sys.modules) - self._modules:
            if any(_is_beneath(sys.modules[name], root) for root in roots) or _is_made_up(sys.modules[name]):
                del sys.modules[name]
        sys.meta_path[:] = [finder for finder in sys.meta_path if finder in self._finders]
        sys.path[:] = [entry for entry in sys.path if Path(entry) not in added]
        self._modules, self._path, self._finders = set(sys.modules), list(sys.path), list(sys.meta_path)


def _is_beneath(module: object, root: Path) -> bool:
    file = getattr(module, "__file__", None)
    with contextlib.suppress(OSError, TypeError):
        return file is not None and Path(file).resolve().is_relative_to(root.resolve())
    return False


def _is_made_up(module: object) -> bool:
    """Whether it stands in for a module that is not installed."""
    return type(getattr(getattr(module, "__spec__", None), "loader", None)).__name__ == "StandIns"
