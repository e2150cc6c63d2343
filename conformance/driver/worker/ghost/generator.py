"""Generators of the device, which torch cannot make of a device that is written in Python: those of the CPU, marked."""

from __future__ import annotations

from typing import Any

import torch

from conformkit.conformance.driver.worker.ghost import tensor
from conformkit.conformance.driver.worker.ghost.rules import own_generators

__all__ = ["offer_generators"]

_Plain = torch.Generator


class _OnGhost(_Plain):
    """A generator of the CPU that says it is on the device."""

    @property
    def device(self) -> torch.device:  # type: ignore[override]
        """The device."""
        return tensor.HERE


class _Choice(type):
    """Makes a generator for the device that is asked for; all of them are instances."""

    def __call__(cls, device: Any = "cpu") -> torch.Generator:
        if not tensor.is_here(device):
            return _Plain(device=device)
        made = _OnGhost()
        own_generators.append(made)
        return made

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, _Plain)


class _Generator(metaclass=_Choice):
    """Stands in torch for its own class."""


def offer_generators() -> None:
    """Let `torch.Generator(device=…)` make one for the device as well."""
    torch.Generator = _Generator  # type: ignore[assignment, misc]
