"""Build a component once with sizes that are all different, fill it with noise, and follow one call."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from conformkit.conformance.assertions.draws import Draw
from conformkit.conformance.binding.rules import Rule
from conformkit.conformance.discovery.tracing.explaining import EXPLAINED, explained
from conformkit.conformance.discovery.tracing.placing import placed
from conformkit.conformance.discovery.tracing.reading import ReadOff
from conformkit.conformance.discovery.tracing.record import CallRecord, RecordError
from conformkit.conformance.driver.errors import ImplementationFailure
from conformkit.conformance.probing.mask_trial import mask_forms
from conformkit.conformance.subject.component import Instance, Subject
from conformkit.spec.variants import Variant

__all__ = ["Followed", "follow"]

_SIZES: dict[str, Any] = {
    "vocab_size": 29, "d_model": 24, "num_heads": 4, "num_layers": 2, "d_ff": 20, "block_size": 11,
    "src_vocab_size": 29, "tgt_vocab_size": 31, "num_encoder_layers": 2, "num_decoder_layers": 2, "max_len": 11,
}  # fmt: skip
_BATCH, _TOKENS = 2, 7
_FORMATS = ("float64", "float32")


@dataclass(frozen=True)
class Followed:
    """What one followed call says: the reading, the variants that have its choices, and where the weights are.

    `rules` are None where no layout of the parameters holds the weights that were read.
    """

    reading: ReadOff
    variants: tuple[Variant, ...]
    rules: tuple[Rule, ...] | None


@np.errstate(all="ignore")  # what an implementation computes may be anything
def follow(subject: Subject) -> Followed | None:
    """Follow one call of a component; None where calls can't be followed, or none of it is explained.

    Raises DriverError, ClauseFailure and NoSizeError where it can't be built or called.
    """
    if subject.name not in EXPLAINED or not subject.link.is_torch or subject.bound.dtype not in _FORMATS:
        return None
    instance = subject.retried().build(**_SIZES)
    inputs = instance.example_inputs(Draw(0, "followed inputs"), batch=_BATCH, tokens=_TOKENS, further=0)
    if instance.subject.bound.component.several:
        instance = instance.with_bound(replace(instance.subject.bound, masks=mask_forms(instance)))
    instance(*inputs)  # what a first call makes is there then
    instance.scatter(Draw(0, "followed"))
    try:
        record = CallRecord.of(*instance.observe(*inputs))
    except (ImplementationFailure, RecordError):
        return None
    reading = explained(subject.name, record, {**instance.sizes, "causal": _is_causal(instance)}, *inputs)
    variants = tuple(reading.variants(subject.bound.component.base))
    rules = placed(instance, reading.weights, variants[0]) if reading.weights and variants else None
    return Followed(reading, variants, rules)


def _is_causal(instance: Instance) -> bool | None:
    """Whether later positions are hidden in this call; None where that is left to masks, which it did not get."""
    bound = instance.subject.bound
    if bound.component.several and bound.component.name != "Transformer":
        return None
    return bool(instance.sizes.get("causal", True)) and bound.causal != "never"
