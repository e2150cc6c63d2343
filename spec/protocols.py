"""What the Protocols share: type variables, and what distinguishes a function or a class from other objects."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    # A Protocol without brackets then stands for any type of array. Part of `typing` from Python 3.13 on.
    from typing import Any

    from typing_extensions import TypeVar

    ArrayT = TypeVar("ArrayT", default=Any)
    ArrayT_co = TypeVar("ArrayT_co", covariant=True, default=Any)
    ArrayT_contra = TypeVar("ArrayT_contra", contravariant=True, default=Any)
    Built_co = TypeVar("Built_co", covariant=True, default=Any)
else:
    from typing import TypeVar

    ArrayT = TypeVar("ArrayT")
    ArrayT_co = TypeVar("ArrayT_co", covariant=True)
    ArrayT_contra = TypeVar("ArrayT_contra", contravariant=True)
    Built_co = TypeVar("Built_co", covariant=True)

__all__ = ["ArrayT", "ArrayT_co", "ArrayT_contra", "Built_co", "Named"]


@runtime_checkable
class Named(Protocol):
    """A function or a class. Other objects that can be called, such as modules of PyTorch, have no `__name__`."""

    @property
    def __name__(self) -> str: ...
