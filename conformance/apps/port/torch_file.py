"""A file that torch wrote: read in a worker with `weights_only=True`, which runs no code of the file."""

from __future__ import annotations

import math
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from conformkit.conformance.apps.port.problems import Unportable
from conformkit.conformance.apps.port.safetensors_files import NUMBER_FORMATS, TensorEntry
from conformkit.conformance.driver.client.interface import Reply
from conformkit.conformance.driver.client.session import Session
from conformkit.conformance.driver.errors import DriverError, ImplementationFailure
from conformkit.conformance.driver.limits import Limits
from conformkit.conformance.driver.location import Location
from conformkit.spec.arrays import Array

__all__ = ["TorchFile"]

_OTHERS = ("optimizer", "optim", "scheduler", "lr_scheduler", "scaler", "rng_state")
"""Keys under which training scripts keep what is no weight."""
_ROOM = 16 << 20
"""Numbers in one reply."""
_SAVED_AS = "save the weights alone: safetensors.torch.save_file(model.state_dict(), 'weights.safetensors')"


class TorchFile:
    """Tensors of a .pt file, by name; those of dictionaries in dictionaries with a dot. Raises Unportable."""

    def __init__(self, path: Path) -> None:
        self.place = str(path)
        limits = Limits(call_seconds=300.0, memory_bytes=(4 << 30) + 3 * path.stat().st_size)
        self._session = Session(Location("module", "torch"), "torch", limits, preload_torch=True)
        self.entries: Mapping[str, TensorEntry] = {}
        try:
            self._handle, self.entries = self._opened(path)
        except BaseException:
            self._session.close()
            raise

    def read(self, name: str) -> Array:
        """Return one tensor, in pieces that fit into a reply; half precision as float32, which holds it exactly."""
        shape = self.entries[name].shape
        if math.prod(shape) <= _ROOM:
            return self._asked({"op": "read", "handle": self._handle, "names": [name]}).tensors[name]
        one = self._handle_of(name)
        each = max(1, _ROOM // math.prod(shape[1:]))
        pieces = []
        for start in range(0, shape[0], each):
            rows = [{"$self": True}, 0, start, min(each, shape[0] - start)]
            header = {"op": "call", "handle": one, "function": "torch:narrow", "args": rows, "output": None}
            pieces.append(self._asked(header).tensors["out"])
        self._asked({"op": "release", "handle": one})
        return np.concatenate(pieces)

    def close(self) -> None:
        """End the worker."""
        self._session.close()

    def _handle_of(self, name: str) -> int:
        """Return the handle of one tensor, whose name has dots of its own or is a path of keys."""
        outer, _, inner = name.partition(".")
        whole = {"$handle": self._handle}
        nested = {"$object": "operator:getitem", "args": [whole, outer]}
        for args in ([whole, name], [nested, inner]):
            try:
                reply = self._session.request(
                    {"op": "build", "path": "operator:getitem", "factory": True, "args": args}
                )
            except ImplementationFailure:
                continue
            return int(reply.header["handle"])
        raise Unportable(f"{self.place}: {name} is too large to be read in one piece", advice=(_SAVED_AS,))

    def _asked(self, header: Mapping[str, Any]) -> Reply:
        try:
            return self._session.request(header)
        except DriverError as error:
            raise Unportable(f"{self.place} cannot be read: {error}", advice=(_SAVED_AS,)) from None

    def _opened(self, path: Path) -> tuple[int, dict[str, TensorEntry]]:
        options = {"weights_only": True, "map_location": "cpu", "mmap": zipfile.is_zipfile(path)}
        header = {"op": "build", "path": "torch:load", "factory": True, "args": [str(path)], "kwargs": options}
        try:
            self._session.start()
            reply = self._session.request(header).header
        except ImplementationFailure as failure:
            more = failure.type == "UnpicklingError" or "weights_only" in failure.message
            said = "it is a pickle of more than tensors, which could run any code" if more else failure.type
            what = "is not a file that torch opens with weights_only=True, and it is not opened otherwise"
            raise Unportable(f"{path} {what}: {said}", advice=(_SAVED_AS,)) from None
        except DriverError as error:
            raise Unportable(f"{path} cannot be read: {error}", advice=(_SAVED_AS,)) from None
        entries = {
            p["name"]: TensorEntry(p["dtype"], tuple(p["shape"])) for p in reply["parameters"]
            if p["shape"] is not None and p["dtype"] in NUMBER_FORMATS and p["name"].partition(".")[0] not in _OTHERS
        }  # fmt: skip
        if not entries:
            raise Unportable(f"{path} holds no tensors by name", advice=(_SAVED_AS,))
        return int(reply["handle"]), entries
