"""Components on a device that exists in name only: what is called there, and what a failure there says."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from conformkit.conformance.assertions.checks import NotApplicable
from conformkit.conformance.assertions.draws import Draw
from conformkit.conformance.driver.errors import ImplementationFailure
from conformkit.conformance.evidence.for_each_component import each
from conformkit.conformance.subject.component import Instance, Subject
from conformkit.conformance.subject.outcomes import Outcome
from conformkit.spec.arrays import Array

__all__ = [
    "GHOST",
    "KEPT",
    "LIFTED",
    "MADE",
    "WRITTEN",
    "Use",
    "about_devices",
    "movable",
    "told",
    "uses",
    "where_it_runs",
]

GHOST = "ghost"
WRITTEN, KEPT, MADE = "DeviceWritten", "LeftBehind", "MadeElsewhere"
"""Types of the failures that the worker reports where devices are mixed: by where the stray tensor comes from."""
MIXED = "MixedDevices"
"""Type of those that it does not explain, such as in a backward pass."""
LIFTED = "FormatLifted"
"""Type of the failure that it reports where an operation refuses a wide constant."""


@dataclass(frozen=True, slots=True)
class Use:
    """One way to use an instance that was moved: its name in messages, and the call."""

    name: str
    run: Callable[[], Outcome | None]


def movable(every: Sequence[Subject], *abilities: str) -> Iterator[Subject]:
    """Yield the components that can be judged on another device. Raises NotApplicable if there is none."""
    if not any(subject.link.is_torch for subject in every):
        raise NotApplicable("the framework has no device that exists in name only")
    yield from each(every, *abilities)


@contextmanager
def where_it_runs() -> Iterator[None]:
    """Raise NotApplicable where the framework's version has no such device, or nothing can be moved to it."""
    try:
        yield
    except ImplementationFailure as failure:
        if about_devices(failure):
            raise
        raise NotApplicable(failure.message) from None


def about_devices(failure: ImplementationFailure) -> bool:
    """Whether a failure on the device says that devices are mixed, or that values are not on the host.

    Others may be about what the device cannot do, which a GPU can: compiled code, kernels.
    """
    if failure.kind != "exception" or failure.base == "NotImplementedError" or "supported" in failure.message:
        return False
    return failure.type in {WRITTEN, KEPT, MADE, MIXED} or GHOST in failure.message


def uses(instance: Instance, inputs: tuple[Array, ...], draw: Draw, *, training: bool = False) -> Iterator[Use]:
    """Yield what users do with an object that was moved: evaluate, hide keys, generate, sample; on request, train."""
    subject = instance.subject
    yield Use("a call", lambda: instance.call(*inputs, device=GHOST, seeing="devices"))
    if len(inputs) > 1 and subject.offers("masks") and subject.offers("bool-masks"):
        mask = draw.mask(inputs[0].shape[-2], inputs[1].shape[-2])
        yield Use("a call with a mask", lambda: instance.call(*inputs, mask, device=GHOST, seeing="devices"))
    if training and subject.offers("gradients"):
        yield Use("a training step", lambda: _trained(instance, inputs))
    generation = subject.bound.generation
    if subject.offers("generate") and generation is not None and generation.prompts != "lists":  # a list has no device
        prompt = draw.ids(instance.sizes["vocab_size"], 2, subject.tokens(3))
        yield Use("generation", lambda: _generated(instance, prompt, greedy=True))
        options = {"temperature": 0.8, "top_k": 3, "top_p": 0.9}  # each has code of its own
        yield Use("sampling", lambda: _generated(instance, prompt, seed=1, **options))


def _trained(instance: Instance, inputs: tuple[Array, ...]) -> None:
    """Compute gradients of all parameters in training mode."""
    out = instance.call(*inputs, mode="train", seed=1, device=GHOST, seeing="devices").out
    instance.vjp(*inputs, cotangent=np.ones_like(out), mode="train", seed=1, wrt=(), device=GHOST)


def _generated(instance: Instance, prompt: Array, **options: Any) -> None:
    """Generate on the device; what is refused for another reason is left to other clauses."""
    try:
        instance.generate(prompt, 2, device=GHOST, **options)
    except ImplementationFailure as failure:
        if about_devices(failure):
            raise


def told(subject: Subject, use: Use, failure: ImplementationFailure) -> str:
    """Return the sentence about a failure on the device, with the line of the code."""
    line = f", `{failure.where}`" if failure.where else ""
    if failure.type in {WRITTEN, KEPT, MADE}:
        return f"{subject.name}: {use.name} on another device mixes devices: {failure.message}{line}"
    return f"{subject.name}: {use.name} on another device raises {failure.type}{line}: {failure.message}"
