"""`conformkit.conformance.port`: convert a checkpoint from Python."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from conformkit.conformance.apps.port.port import port as ported
from conformkit.conformance.apps.port.request import PortReport, PortRequest
from conformkit.spec.arrays import Array

__all__ = ["port"]

Weights = str | os.PathLike[str] | Mapping[str, Array] | None


def port(
    theirs: str, ours: str, weights: Weights = None, *, like: str = "", config: str | os.PathLike[str] | None = None,
    converted: Weights = None, out: str | os.PathLike[str] | None = None, sizes: Mapping[str, int] | None = None,
    seed: int = 0,
) -> PortReport:  # fmt: skip
    """Convert weights of `theirs` for `ours`; return the map, the proof, and the converted arrays.

    `theirs` and `ours` are what `--impl` takes, or `transformers:GPT2LMHeadModel` and other known classes; `theirs` is
    empty where `like` names the family of the weights. `weights` and `converted` are files, folders, or arrays by name:
    theirs, and what your own conversion made of them, to be checked. Without weights, random ones are converted.
    `config` is their config.json. The arrays are in `converted` of the report where `out` names no file.

    Raises: Unportable where a file, a family or sizes do not fit; LoadFailure, ConfigError where code cannot be loaded.
    """
    request = PortRequest(
        ours, theirs, like, _weights(weights), None if config is None else Path(config), _weights(converted),
        None if out is None else Path(out), dict(sizes or {}), seed, keep=True,
    )  # fmt: skip
    return ported(request)


def _weights(given: Weights) -> Path | Mapping[str, Array] | None:
    return given if given is None or isinstance(given, Mapping) else Path(given)
