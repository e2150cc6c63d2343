"""Build a component once with sizes that are all different, fill it with noise, and follow one call."""

from __future__ import annotations

from typing import Any

import numpy as np

from conformkit.conformance.assertions.draws import Draw
from conformkit.conformance.discovery.tracing.explaining import EXPLAINED, explained
from conformkit.conformance.discovery.tracing.reading import ReadOff
from conformkit.conformance.discovery.tracing.record import CallRecord, RecordError
from conformkit.conformance.driver.errors import ImplementationFailure
from conformkit.conformance.subject.component import Subject

__all__ = ["read_off"]

_SIZES: dict[str, Any] = {
    "vocab_size": 29,
    "d_model": 24,
    "num_heads": 4,
    "num_layers": 2,
    "d_ff": 20,
    "block_size": 11,
}
_BATCH, _TOKENS = 2, 7


@np.errstate(all="ignore")  # what an implementation computes may be anything
def read_off(subject: Subject) -> ReadOff | None:
    """Return what one followed call says about a component; None where calls can't be followed.

    Raises DriverError and ClauseFailure where it can't be built or called.
    """
    if subject.name not in EXPLAINED or not subject.link.is_torch:
        return None
    instance = subject.retried().build(**_SIZES)
    inputs = instance.example_inputs(Draw(0, "followed inputs"), batch=_BATCH, tokens=_TOKENS)
    instance(*inputs)  # what a first call makes is there then
    instance.scatter(Draw(0, "followed"))
    try:
        header, arrays = instance.observe(*inputs)
        record = CallRecord.of(header, arrays)
        return explained(subject.name, record, instance.sizes, inputs[0])
    except (ImplementationFailure, RecordError):
        return None
