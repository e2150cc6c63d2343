from __future__ import annotations

from torch import Tensor


class InvalidArgument(ValueError):
    """An argument that does not fit."""


def positive(**sizes: int) -> None:
    for name, size in sizes.items():
        if isinstance(size, bool) or not isinstance(size, int) or size < 1:
            raise InvalidArgument(f"{name} must be a positive integer, got {size!r}")


def probability(**rates: float) -> None:
    for name, rate in rates.items():
        if not 0.0 <= rate <= 1.0:
            raise InvalidArgument(f"{name} must be between 0 and 1, got {rate!r}")


def features(x: Tensor, width: int, ndim: int | None = None) -> None:
    if x.ndim == 0 or x.shape[-1] != width or (ndim is not None and x.ndim != ndim):
        raise InvalidArgument(f"expected an input of width {width}, got shape {tuple(x.shape)}")
