"""Clauses of spec/devices.md."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial

import numpy as np

from conformkit.conformance.assertions.checks import NotApplicable, check
from conformkit.conformance.assertions.draws import Draw
from conformkit.conformance.driver.errors import ImplementationFailure
from conformkit.conformance.evidence.on_ghost_device import (
    GHOST,
    KEPT,
    LIFTED,
    MADE,
    WRITTEN,
    Use,
    about_devices,
    movable,
    told,
    uses,
    where_it_runs,
)
from conformkit.conformance.evidence.twins import check_same
from conformkit.conformance.subject.component import Instance, Subject
from conformkit.conformance.subject.outcomes import Outcome
from conformkit.conformance.suite.registry import clause
from conformkit.spec.arrays import Array

ABSENT = ("not compiled with CUDA", "No CUDA GPUs", "NVIDIA driver", "not linked with support for")
"""What torch says where code asks for a device that is not there."""


@clause("DEV-WRITTEN")
def test_no_device_is_written_into_the_code(every: list[Subject], draw: Draw) -> None:
    for subject in every:
        failure = subject.bound.failure
        named = isinstance(failure, ImplementationFailure) and any(words in failure.message for words in ABSENT)
        line = getattr(failure, "where", "")
        check(f"{subject.name} names a device that is not there: `{line}` raises `{failure}`", not named)
    for subject in movable(every):
        instance, inputs = _moved(subject, draw)
        for use in uses(instance, inputs, draw):
            _check(subject, use, lambda failure: failure.type == WRITTEN)


@clause("DEV-MOVES")
def test_what_an_object_keeps_moves_with_it(every: list[Subject], draw: Draw) -> None:
    for subject in movable(every):
        instance, inputs = _moved(subject, draw)
        for use in uses(instance, inputs, draw):
            _check(subject, use, partial(_kept, subject, use, draw))


@clause("DEV-MOVES-USED")
def test_what_a_call_has_kept_moves_with_the_object(every: list[Subject], draw: Draw) -> None:
    for subject in movable(every):
        instance, inputs = _moved(subject, draw, used=True)
        for use in uses(instance, inputs, draw):
            _check(subject, use, partial(_kept, subject, use, draw))


@clause("DEV-FOLLOW")
def test_what_a_call_makes_is_where_its_inputs_are(every: list[Subject], draw: Draw) -> None:
    for subject in _of_objects(every):
        instance, inputs = subject.example(draw, dropout=0.5, num_layers=2)
        want = _apart(instance)(*inputs)
        with where_it_runs():
            instance.move(GHOST)
        first, *others = uses(instance, inputs, draw, training=True)
        got = _check(subject, first, _any)
        if got is not None:
            check(f"{subject.name}: its inputs are on another device, its output is on the cpu", got.seen[0] != "cpu")
            check_same(f"{subject.name}: the output on another device", got.out, want, instance)
        for use in others:
            _check(subject, use, _any)


def _of_objects(every: list[Subject]) -> Iterator[Subject]:
    """Yield the objects that can be moved: a function that is given its weights has nothing that follows them."""
    judged = False
    for subject in movable(every):
        judged = judged or subject.bound.config.parameters is None
        if subject.bound.config.parameters is None:
            yield subject
    if not judged:
        raise NotApplicable("its functions are given their weights: nothing of them is moved")


@clause("DEV-STATE")
def test_a_state_is_loaded_on_any_device(every: list[Subject], draw: Draw) -> None:
    for subject in movable(every, "parameters"):
        instance, inputs = subject.example(draw, num_layers=1)
        want, here = instance(*inputs), subject.build(num_layers=1, seed=1)
        if _loads(here, instance, inputs, want):
            with where_it_runs():
                there = subject.build(num_layers=1, seed=2).move(GHOST)
            _check_loaded(f"{subject.name}, moved after", there, instance, inputs, want, device=GHOST)
            _check_loaded(f"{subject.name}, with", here, there, inputs, want, device=None)
        else:
            check(f"{subject.name} loads no state", True)


@clause("DEV-SYNC")
def test_a_call_reads_nothing_back(every: list[Subject], draw: Draw) -> None:
    for subject in movable(every):
        instance, inputs = _moved(subject, draw)
        mode = "train" if subject.offers("modes") else None
        try:
            _, *reads = instance.call(*inputs, mode=mode, seed=1, device=GHOST, seeing="devices").seen
        except ImplementationFailure:  # DEV-FOLLOW reports it, where it is about devices
            continue
        allowed = 3 if "ids" in subject.bound.component.inputs else 0
        label = f"{subject.name}: a call reads values back {len(reads)} times, expected at most {allowed}"
        check(label, len(reads) <= allowed, *dict.fromkeys(reads))


@clause("DEV-LIFT")
def test_no_wide_constant_lifts_bfloat16(every: list[Subject], draw: Draw) -> None:
    judged = False
    for subject in movable(every, "gradients"):
        try:
            instance = subject.build(dtype="bfloat16", num_layers=2)
            narrow = all(p["dtype"] == "bfloat16" for p in instance.trainable)
            lifted = instance.call(*instance.example_inputs(draw), seeing="formats").seen if narrow else ()
        except ImplementationFailure as failure:
            if failure.type != LIFTED:
                continue
            lifted = (f"{failure.message}, `{failure.where}`",)
        judged = judged or narrow
        check(f"{subject.name}: a wide constant lifts bfloat16: {next(iter(lifted), '')}", not lifted, *lifted[1:])
    if not judged:
        raise NotApplicable.from_formats("no component accepts bfloat16")


def _moved(subject: Subject, draw: Draw, *, used: bool = False) -> tuple[Instance, tuple[Array, ...]]:
    """Return an object on the device, and inputs; `used`: it was called with them on the CPU before."""
    instance, inputs = subject.example(draw, dropout=0.5, num_layers=1)
    if used:
        with suppress(ImplementationFailure):  # other clauses report it
            instance(*inputs)
    with where_it_runs():
        instance.move(GHOST)
    return instance, inputs


def _check(subject: Subject, use: Use, blamed: Callable[[ImplementationFailure], bool]) -> Outcome | None:
    """Check that a use raises no failure for which this clause is to blame, and return what it gave."""
    try:
        got = use.run()
    except ImplementationFailure as failure:
        if not about_devices(failure):  # what only this device cannot do, or a device that the constructor was told
            return None
        check(told(subject, use, failure), not blamed(failure))
        return None
    check(f"{subject.name}: {use.name} on another device", True)
    return got


def _apart(instance: Instance) -> Instance:
    """Return a copy, so that a call leaves nothing in the object; the object itself where it cannot be copied."""
    try:
        return instance.copy()
    except ImplementationFailure:
        return instance


def _any(_: ImplementationFailure) -> bool:
    return True


def _kept(subject: Subject, use: Use, draw: Draw, failure: ImplementationFailure) -> bool:
    """Whether a tensor from elsewhere was kept: by the object, or by an earlier call with as many positions."""
    if failure.type != MADE:
        return failure.type == KEPT
    instance = subject.build(num_layers=1, dropout=0.5).move(GHOST)
    inputs = instance.example_inputs(draw, tokens=subject.tokens(9))
    same = next(other for other in uses(instance, inputs, draw) if other.name == use.name)
    try:
        same.run()
    except ImplementationFailure:
        return False
    return True


def _loads(here: Instance, other: Instance, inputs: tuple[Array, ...], want: Array) -> bool:
    """Whether a state makes another object compute the same on one device, which is for other clauses to say."""
    try:
        got = here.restore(other)(*inputs)
    except ImplementationFailure:
        return False
    return np.allclose(got, want, rtol=0.0, atol=10 * here.subject.tolerance(2) * np.abs(want).max())


def _check_loaded(
    label: str, into: Instance, other: Instance, inputs: tuple[Array, ...], want: Array, *, device: str | None
) -> None:
    """Check that an object loads a state from another device, stays where it is, and computes the same."""
    try:
        into.restore(other)
        got = into.call(*inputs, device=device, seeing=None if device is None else "devices").out
    except ImplementationFailure as failure:
        line = f", `{failure.where}`" if failure.where else ""
        if not about_devices(failure):
            return
        check(f"{label} the state of another device, raises {failure.type}{line}: {failure.message}", False)
        return
    check_same(f"{label} the state of another device: the output", got, want, into)
