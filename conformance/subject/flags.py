"""An attention function called with the arguments that torch's has besides arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from conformkit.conformance.assertions.checks import NotApplicable, check_shape
from conformkit.conformance.binding.call_arguments import ArgumentNames
from conformkit.conformance.subject.attention import Attend
from conformkit.spec.arrays import Array

__all__ = ["Flagged"]


class Flagged:
    """The function, with names of its further arguments."""

    def __init__(self, attend: Attend, *needed: str) -> None:
        self.attend = attend
        for what in needed:
            if getattr(self.call_arguments, what) is None:
                raise NotApplicable(f"its call takes no {TORCH[what]}", lacks=TORCH[what])

    @property
    def call_arguments(self) -> ArgumentNames:
        """The names of its further arguments."""
        return self.attend.subject.bound.call_arguments

    def takes(self, what: str) -> bool:
        """Whether its call takes this argument."""
        return getattr(self.call_arguments, what) is not None

    def __call__(
        self, q: Array, k: Array, v: Array, mask: Array | None = None, *, seed: int | None = None, **flags: Any
    ) -> Array:
        """Return the output (…, Tq, dv); flags: `causal`, `scale`, `dropout`, `grouped`."""
        instance = self.attend.instance
        header, tensors = instance._call_header((q, k, v, mask))  # noqa: SLF001 - a friend, in a file of its own
        header["kwargs"] = {
            **header["kwargs"],
            **{getattr(self.call_arguments, what): value for what, value in flags.items()},
        }
        _, arrays = instance._ask({**header, "mode": "eval", "watch": False, "seed": seed}, tensors)  # noqa: SLF001
        out = np.asarray(self.attend.subject.bound.from_theirs(arrays["out"]), np.float64)
        check_shape("output", out, (*q.shape[:-1], v.shape[-1]))
        return out


TORCH = {"causal": "is_causal", "scale": "scale", "dropout": "dropout_p", "grouped": "enable_gqa"}
