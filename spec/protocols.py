"""What the Protocols share: type variables, and what distinguishes a function from other objects that can be called."""

from __future__ import annotations

from typing import Protocol, TypeVar, runtime_checkable

__all__ = ["ArrayT", "ArrayT_co", "ArrayT_contra", "Built_co", "Named"]

ArrayT = TypeVar("ArrayT")
"""The type of an implementation's arrays, such as `torch.Tensor`."""
ArrayT_co = TypeVar("ArrayT_co", covariant=True)
"""The same, where arrays are only returned."""
ArrayT_contra = TypeVar("ArrayT_contra", contravariant=True)
"""The same, where arrays are only taken."""
Built_co = TypeVar("Built_co", covariant=True)
"""The type of what a constructor builds, such as `MultiHeadAttentionModule[torch.Tensor]`."""


@runtime_checkable
class Named(Protocol):
    """A function. Other objects that can be called, such as modules of PyTorch, have no `__name__`."""

    @property
    def __name__(self) -> str: ...
