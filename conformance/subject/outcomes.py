"""What calls and derivatives of a component give."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from conformkit.spec.arrays import Array

__all__ = ["Gradients", "Outcome"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """One call: the output, further outputs, and other observations."""

    out: Array
    dtype: str
    extra: Array | None
    """The attention weights, if they are returned."""
    arguments: Mapping[str, Array]
    """The arguments as they are after the call."""
    requires_grad: bool
    used_random_state: bool
    """False unless the call was watched."""
    modes: tuple[bool, ...]
    """The training flags of the module and its submodules after a watched call, without repetition."""
    structure: str = ""
    """What was returned, `tuple(tensor, tensor)`."""
    graph: bool = False
    """Whether anything was kept for derivatives; False unless it generated or was watched."""
    seen: tuple[str, ...] = ()
    """What the framework saw inside, if it was asked to."""

    @classmethod
    def of(cls, reply: Mapping[str, Any], arrays: Mapping[str, Array], out: Array) -> Outcome:
        """Read a worker's reply; `out` is the output, in the contract's order of axes."""
        return cls(
            out=out,
            dtype=reply["dtypes"].get("out", ""),
            extra=arrays.get("out.1"),
            arguments={name.removeprefix("echo:"): a for name, a in arrays.items() if name.startswith("echo:")},
            requires_grad=bool(reply.get("requires_grad")),
            used_random_state=len(set(reply["rng"])) > 1,
            modes=tuple(reply.get("modes") or ()),
            structure=str(reply.get("structure", "")),
            graph=bool(reply.get("graph")),
            seen=tuple(reply.get("seen") or ()),
        )


@dataclass(frozen=True, slots=True)
class Gradients:
    """A vector-Jacobian product: for each input and each parameter its gradient, None where there is none."""

    out: Array
    inputs: Mapping[str, Array | None]
    parameters: Mapping[str, Array | None]
    """By the implementation's own names; aliases of shared parameters are left out."""
