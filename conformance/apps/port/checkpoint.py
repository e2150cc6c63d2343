"""Weights by name, wherever they are: safetensors files, a torch file, or arrays. Read one by one."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

import numpy as np

from conformkit.conformance.apps.port.problems import Unportable
from conformkit.conformance.apps.port.safetensors_files import SafetensorsFile, TensorEntry
from conformkit.conformance.apps.port.torch_file import TorchFile
from conformkit.conformance.text import one_line
from conformkit.spec.arrays import Array

__all__ = ["ArrayStore", "Renamed", "WeightStore", "files_read", "opened_checkpoint"]

_INDEX = "model.safetensors.index.json"
_LONGEST_NAME = 255
"""In bytes: what file systems take at most."""
_TORCH = (".pt", ".pth", ".bin", ".ckpt")
_FIRST = (_INDEX, "model.safetensors", "pytorch_model.bin")


class WeightStore(Protocol):
    """Weights by name; `place` says where they are, `entries` what there is."""

    place: str
    entries: Mapping[str, TensorEntry]

    def read(self, name: str) -> Array:
        """Return one tensor. Raises Unportable."""

    def close(self) -> None:
        """Release what it holds."""


class ArrayStore:
    """Arrays in memory as a checkpoint."""

    def __init__(self, arrays: Mapping[str, Array], place: str = "the weights") -> None:
        self.place = place
        self._arrays = {name: np.asarray(array) for name, array in arrays.items()}
        self.entries: Mapping[str, TensorEntry] = {
            n: TensorEntry(a.dtype.name, a.shape) for n, a in self._arrays.items()
        }

    def read(self, name: str) -> Array:
        """Return one array."""
        return self._arrays[name]

    def close(self) -> None:
        """Does nothing."""


class Renamed:
    """Another checkpoint with other names for its tensors: `names` gives for each new name the one it has there."""

    def __init__(self, inner: WeightStore, names: Mapping[str, str]) -> None:
        self.place, self._inner, self.names = inner.place, inner, dict(names)
        self.entries: Mapping[str, TensorEntry] = {new: inner.entries[old] for new, old in self.names.items()}

    def read(self, name: str) -> Array:
        """Return one tensor."""
        return self._inner.read(self.names[name])

    def close(self) -> None:
        """Release what it holds."""
        self._inner.close()


class _Files:
    """One or several safetensors files."""

    def __init__(self, place: str, parts: Mapping[str, SafetensorsFile]) -> None:
        self.place, self._parts = place, parts
        self.entries: Mapping[str, TensorEntry] = {name: part.entries[name] for name, part in parts.items()}

    def read(self, name: str) -> Array:
        return self._parts[name].read(name)

    def close(self) -> None:
        """Does nothing: files are open only while they are read."""


def opened_checkpoint(path: Path) -> WeightStore:
    """Open a file of weights, or the one that a folder holds. Raises Unportable."""
    if path.is_dir():
        path = _within(path)
    if not path.is_file():
        raise Unportable(f"there is no file {path}")
    if path.name.endswith(".index.json"):
        return _sharded(path)
    if path.suffix.lower() in _TORCH:
        return TorchFile(path)
    if path.suffix.lower() in {".pkl", ".pickle"}:
        raise Unportable(f"{path} is a pickle, which is never opened: it can run any code", advice=(_ADVICE,))
    if path.suffix.lower() in {".npz", ".npy"}:
        return _numpy(path)
    one = SafetensorsFile(path)
    return _Files(str(path), dict.fromkeys(one.entries, one))


def files_read(path: Path) -> list[Path]:
    """Return the files that are read where this one, or this folder, is opened. Raises Unportable."""
    path = _within(path) if path.is_dir() else path
    if not path.name.endswith(".index.json"):
        return [path]
    return [path, *(path.parent / file for file in sorted(set(_shards(path).values())))]


_ADVICE = "save the weights as safetensors: safetensors.torch.save_file(model.state_dict(), 'weights.safetensors')"


def _within(folder: Path) -> Path:
    for name in _FIRST:
        if (folder / name).is_file():
            return folder / name
    found = sorted(p for p in folder.iterdir() if p.suffix in {".safetensors", ".pt", ".pth", ".npz"})
    indices = sorted(folder.glob("*.safetensors.index.json"))
    if len(indices) == 1:
        return indices[0]
    if len(found) == 1:
        return found[0]
    what = "several files of weights" if found else "no file of weights"
    advice = "name the file" if found else f"looked for {', '.join(_FIRST)}, *.safetensors, *.pt, *.npz"
    raise Unportable(f"{folder} holds {what}", advice=(advice,))


def _shards(index: Path) -> dict[str, str]:
    """Return the file of each tensor that an index names."""
    try:
        names = json.loads(index.read_text(encoding="utf-8"))["weight_map"]
        return {str(name): str(file) for name, file in names.items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise Unportable(f"{index} is not an index: it has no object weight_map") from None


def _sharded(index: Path) -> WeightStore:
    """Open the files that an index names, all in its own folder."""
    opened: dict[str, SafetensorsFile] = {}
    shards = _shards(index)
    for name, file in shards.items():
        if not re.fullmatch(r"[\w.-]{1,200}\.safetensors", file) or len(file.encode()) > _LONGEST_NAME:
            raise Unportable(
                f"{index}: {one_line(name, 120)} is said to be in {one_line(file, 120)}, expected a file next to it"
            )
        if file not in opened:
            if not (index.parent / file).is_file():
                raise Unportable(f"{index}: its part {file} is not there", advice=("download it too",))
            opened[file] = SafetensorsFile(index.parent / file)
        if name not in opened[file].entries:
            raise Unportable(f"{index}: {one_line(name, 120)} should be in {file}, which does not have it")
    return _Files(str(index), {name: opened[file] for name, file in shards.items()})


def _numpy(path: Path) -> WeightStore:
    """Read arrays that NumPy wrote, never as objects."""
    try:
        with np.load(path, allow_pickle=False) as stored:
            return ArrayStore({name: stored[name] for name in stored.files}, str(path))
    except (OSError, ValueError, AttributeError, TypeError) as error:
        raise Unportable(f"{path} cannot be read as arrays: {error}") from None
