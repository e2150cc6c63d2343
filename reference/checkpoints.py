"""Checkpoints: weights, the optimizer's state and the step in one file, from which training resumes exactly.

The file is safetensors: tensors as bytes, never pickle, so reading one runs no code. Its metadata hold `facts`,
which are JSON, and the SHA-256 of facts and tensors together. It is written next to its place, flushed to the disk
and then renamed, so a process that is stopped at any moment leaves either the old file or the new one.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor, nn

from conformkit.reference.errors import CheckpointError

__all__ = ["Checkpoint", "load_checkpoint", "read_checkpoint", "replace_file", "save_checkpoint"]

FORMAT = "conformkit.checkpoint/1"


class Stateful(Protocol):
    """An optimizer: `AdamW` here, or any of `torch.optim`."""

    def state_dict(self) -> dict[str, Any]:
        """Return `state` by the parameters' numbers, and `param_groups`."""

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take over what `state_dict` gave."""


@dataclass(frozen=True)
class Checkpoint:
    """What a checkpoint holds, checked against its checksum."""

    path: Path
    step: int
    weights: dict[str, Tensor]
    optimizer: dict[str, Any]
    """As the optimizer's `state_dict` gave it."""
    extra: dict[str, Any]
    """What else was saved."""

    def restore(self, model: nn.Module, optimizer: Stateful | None = None) -> None:
        """Write the state into a model and an optimizer, or into neither.

        Raises: CheckpointError when names or shapes differ.
        """
        _check_fits(self.path, self.weights, model)
        if optimizer is not None:
            _check_optimizer(self.path, self.optimizer, optimizer)
            optimizer.load_state_dict(self.optimizer)
        model.load_state_dict(self.weights)


def save_checkpoint(
    path: str | Path, model: nn.Module, optimizer: Stateful, step: int, extra: Mapping[str, Any] | None = None
) -> None:
    """Write all that is needed to go on from this step; `extra` is whatever else JSON can hold.

    Raises: OSError where the file can't be written; the file that was there before stays.
    """
    state = optimizer.state_dict()
    tensors = {f"model.{name}": value for name, value in model.state_dict().items()}
    numbers: dict[str, dict[str, Any]] = {}
    for parameter, entries in state["state"].items():
        for name, value in entries.items():
            if isinstance(value, Tensor):
                tensors[f"optimizer.{parameter}.{name}"] = value
            else:
                numbers.setdefault(str(parameter), {})[name] = value
    facts = {"step": step, "numbers": numbers, "groups": state["param_groups"], "extra": dict(extra or {})}
    text = json.dumps(facts, sort_keys=True)
    # Copies, on the CPU: tied weights share their memory, which the format cannot express.
    plain = {name: value.detach().cpu().clone().contiguous() for name, value in tensors.items()}
    metadata = {"format": FORMAT, "facts": text, "sha256": _checksum(text, plain)}
    replace_file(Path(path), save(plain, metadata))


def load_checkpoint(path: str | Path, model: nn.Module, optimizer: Stateful) -> int:
    """Restore model and optimizer from a file, and return the step at which it was written.

    Raises: CheckpointError for a file that is damaged, no checkpoint, or another model's; nothing is changed then.
            OSError where it can't be read.
    """
    checkpoint = read_checkpoint(path)
    checkpoint.restore(model, optimizer)
    return checkpoint.step


def read_checkpoint(path: str | Path) -> Checkpoint:
    """Read a file and check it against its checksum. Raises as `load_checkpoint`."""
    place = Path(path)
    with place.open("rb"):
        pass  # a missing file is an OSError with its name; the library's error has none
    try:
        with safe_open(place, framework="pt") as file:
            metadata = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - it is no dict
    except (SafetensorError, ValueError) as error:
        raise CheckpointError(str(place), "cut off or no checkpoint", f"a whole one ({error})") from error
    if metadata.get("format") != FORMAT:
        raise CheckpointError(str(place), f"of format {metadata.get('format')!r}", repr(FORMAT))
    text = metadata.get("facts", "")
    if metadata.get("sha256") != _checksum(text, tensors):
        raise CheckpointError(str(place), "damaged or changed", "content that gives the checksum it was saved with")
    facts = json.loads(text)
    weights = {name.removeprefix("model."): value for name, value in tensors.items() if name.startswith("model.")}
    optimizer = {"state": _moments(tensors, facts["numbers"]), "param_groups": facts["groups"]}
    return Checkpoint(place, int(facts["step"]), weights, optimizer, facts["extra"])


def replace_file(path: Path, content: bytes) -> None:
    """Put content in the place of a file in one step, on the disk by the time this returns.

    Raises: OSError where that fails; the file that was there before stays, and nothing else is left.
    """
    draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        with draft.open("xb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        draft.replace(path)
    except BaseException as error:
        with contextlib.suppress(OSError):
            draft.unlink()
        if isinstance(error, OSError):
            error.filename = str(path)  # with a full disk it is missing, or that of the draft
        raise
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)  # only now is the new name on the disk, too
    finally:
        os.close(folder)


def _moments(tensors: Mapping[str, Tensor], numbers: Mapping[str, Mapping[str, Any]]) -> dict[int, dict[str, Any]]:
    """Return the optimizer's state by parameter: numbers from the facts, the rest from tensors."""
    found: dict[int, dict[str, Any]] = {int(parameter): dict(entries) for parameter, entries in numbers.items()}
    for name, value in tensors.items():
        if name.startswith("optimizer."):
            parameter, entry = name.removeprefix("optimizer.").split(".", 1)
            found.setdefault(int(parameter), {})[entry] = value
    return found


def _checksum(facts: str, tensors: Mapping[str, Tensor]) -> str:
    """Return the SHA-256 of the facts, and of each tensor's name, type, shape and bytes."""
    found = hashlib.sha256(facts.encode())
    for name in sorted(tensors):
        value = tensors[name]
        found.update(f"\n{name} {value.dtype} {tuple(value.shape)}\n".encode())
        found.update(value.reshape(-1).view(torch.uint8).numpy().data)
    return found.hexdigest()


def _check_fits(path: Path, weights: Mapping[str, Tensor], model: nn.Module) -> None:
    wanted = {name: tuple(value.shape) for name, value in model.state_dict().items()}
    given = {name: tuple(value.shape) for name, value in weights.items()}
    for name in sorted({*wanted, *given}):
        if wanted.get(name) != given.get(name):
            got = f"another model's: its {name} has shape {given.get(name, 'none')}"
            raise CheckpointError(str(path), got, f"shape {wanted.get(name, 'none')}")


def _check_optimizer(path: Path, state: Mapping[str, Any], optimizer: Stateful) -> None:
    given = [len(group["params"]) for group in state["param_groups"]]
    wanted = [len(group["params"]) for group in optimizer.state_dict()["param_groups"]]
    if given != wanted:
        raise CheckpointError(str(path), f"of an optimizer with groups of {given} parameters", f"groups of {wanted}")
