"""Construct a component with its own initialization, call it, differentiate it, and report what happened inside."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from conformkit.conformance.apps.inspect.anomalies import conspicuous
from conformkit.conformance.apps.inspect.inspection import Heads, Inspection, Part, Weight
from conformkit.conformance.assertions.checks import ClauseFailure, NotApplicable
from conformkit.conformance.assertions.draws import Draw
from conformkit.conformance.binding.sizes import LimitWithoutValue, NoSizeError
from conformkit.conformance.discovery.opening import opened_as_found
from conformkit.conformance.driver.client.head_start import HeadStart
from conformkit.conformance.driver.errors import DriverError, ImplementationFailure
from conformkit.conformance.engine.finding import LoadFailure
from conformkit.conformance.engine.implementation import Implementation
from conformkit.conformance.engine.request import RunRequest
from conformkit.conformance.subject.component import Instance, Subject
from conformkit.spec.arrays import Array
from conformkit.spec.components import SEVERAL_NAMES, component
from conformkit.spec.loss import loss_gradient, token_losses

__all__ = ["SIZES", "InspectRequest", "InspectionFailed", "inspect"]


SIZES: Mapping[str, int] = {
    "d_model": 48, "num_heads": 3, "d_ff": 192, "vocab_size": 65, "num_layers": 4, "block_size": 24, "max_len": 24,
    "src_vocab_size": 65, "tgt_vocab_size": 65, "num_encoder_layers": 3, "num_decoder_layers": 3,
    "image_size": 16, "patch_size": 4, "channels": 3, "num_classes": 10,
}  # fmt: skip
"""Small enough for one second, deep enough to show growth from block to block."""


class InspectionFailed(Exception):
    """The component could not be constructed, called or differentiated; `where` is the line at fault."""

    def __init__(self, problem: str, where: str = "") -> None:
        super().__init__(problem)
        self.where = where


@dataclass(frozen=True, slots=True)
class InspectRequest:
    """What to inspect, and how."""

    impl: str
    component: str = ""
    """By default the model, or else the largest component that exists."""
    sizes: Mapping[str, int] = field(default_factory=dict)
    """Arguments of the constructor; `SIZES` for those that are not given."""
    batch: int = 5
    tokens: int = 20
    seed: int = 0
    isolation: str = "process"
    config: Path | None = None
    device: str = "cpu"


@np.errstate(all="ignore")  # what an implementation returns may be anything
def inspect(request: InspectRequest, early: HeadStart | None = None) -> Inspection:
    """Inspect one component. Raises LoadFailure, ConfigError, IsolationUnavailable or InspectionFailed."""
    profile = component(request.component).profile if request.component in SEVERAL_NAMES else "core"
    run = RunRequest(
        request.impl, seed=request.seed, isolation=request.isolation, config=request.config, profile=profile,
        device=request.device, discover=True,
    )  # fmt: skip
    with opened_as_found(run, early, {request.component} if request.component else None) as (implementation, _):
        subject = _chosen(implementation, request)
        try:
            found = _looked_into(subject, implementation, request)
        except ImplementationFailure as failure:
            raise InspectionFailed(f"{subject.name} raised {failure.type}: {failure.message}", failure.where) from None
        except (DriverError, ClauseFailure, NotApplicable, NoSizeError, LimitWithoutValue) as error:
            raise InspectionFailed(f"{subject.name} cannot be inspected: {error}") from None
    return replace(found, conspicuous=tuple(conspicuous(found)))


def _chosen(implementation: Implementation, request: InspectRequest) -> Subject:
    present = [subject.name for subject in implementation.subjects()]
    if not request.component:
        return implementation.subject(present[-1])
    if request.component not in present:
        problem = f"it exports no {request.component}"
        raise LoadFailure(problem, advice=(f"it exports {', '.join(present)}",))
    return implementation.subject(request.component)


def _looked_into(subject: Subject, implementation: Implementation, request: InspectRequest) -> Inspection:
    draw = Draw(request.seed, "inspect")
    instance = _constructed(subject, request)
    inputs = instance.example_inputs(draw, batch=request.batch, tokens=request.tokens, further=0)
    seen, out = instance.trace(*inputs)
    parts = [Part(**{**part, "shape": tuple(part["shape"])}) for part in map(_known, seen["parts"])]
    loss, cotangent = _descent(subject, out, draw)
    differentiated = subject.offers("gradients")
    return Inspection(
        implementation=request.impl, framework=implementation.framework, component=subject.name, seed=request.seed,
        isolation=request.isolation, sizes=instance.sizes, inputs=inputs[0].shape, parts=parts,
        heads=_heads(seen["attention"], inputs[0].shape[0], instance.sizes.get("num_heads")),
        weights=_weights(instance, inputs, cotangent if differentiated else None), differentiated=differentiated,
        loss=loss,
    )  # fmt: skip


def _constructed(subject: Subject, request: InspectRequest) -> Instance:
    """Construct it with exactly the requested sizes, and the others near the usual ones."""
    taken = {argument.name for argument in component(subject.name).arguments}
    wanted = {name: value for name, value in {**SIZES, **request.sizes}.items() if name in taken}
    sizes = subject.sizes(**wanted) | {name: wanted[name] for name in request.sizes if name in wanted}
    form = "float32" if subject.offers("float32") else None
    return subject.construct(sizes, dtype=form, seed=request.seed)


def _known(part: Mapping[str, Any]) -> dict[str, Any]:
    return {name: part[name] for name in Part.__slots__}


def _descent(subject: Subject, out: Array, draw: Draw) -> tuple[float | None, Array]:
    """Return the loss, if any, and the cotangent: its gradient, else a random direction of length 1."""
    if not subject.bound.component.decodes:
        direction = draw.values(*out.shape)
        return None, direction / max(float(np.linalg.norm(direction)), 1.0)
    targets = draw.ids(out.shape[-1], *out.shape[:-1])
    return float(token_losses(out, targets).mean()), loss_gradient(out, targets)


def _weights(instance: Instance, inputs: Sequence[Array], cotangent: Array | None) -> list[Weight]:
    own = [(str(p["name"]), tuple(p["shape"])) for p in instance.trainable if p["shape"] is not None]
    if cotangent is None:
        return [Weight(name, shape, None) for name, shape in own]
    first = instance.subject.bound.component.inputs[:1]
    names = () if first[0] in {"ids", "src", "images"} else first
    found = instance.vjp(*inputs, cotangent=cotangent, wrt=names).parameters
    return [Weight(name, shape, _norm(found.get(name))) for name, shape in own]


def _norm(gradient: Array | None) -> float | None:
    if gradient is None:
        return None
    norm = float(np.linalg.norm(gradient.astype(np.float64)))
    return norm if math.isfinite(norm) else math.nan


def _heads(seen: Sequence[Mapping[str, Any]], batch: int, heads: int | None) -> list[Heads]:
    """Turn the entropies by leading index into one row of heads per part."""
    found: dict[str, Heads] = {}
    for note in seen:
        leading = tuple(note["shape"][:-2])
        known = found.get(note["part"], Heads(note["part"], (), 0.0))
        own: dict[str, tuple[float, ...]] = {}
        for name in ("entropy", "distance", "future"):
            if len(note[name]) != math.prod(leading) and (note[name] or name == "entropy"):
                raise ClauseFailure("its reports about its attention are inconsistent")
            own[name] = tuple(_by_head(note[name], leading, batch, heads)) if note[name] else ()
        found[note["part"]] = Heads(
            note["part"], (*known.entropy, *own["entropy"]), max(known.most, note["most"]),
            (*known.distance, *own["distance"]), (*known.future, *own["future"]),
        )  # fmt: skip
    return list(found.values())


def _by_head(entropy: Sequence[float], leading: tuple[int, ...], batch: int, heads: int | None) -> list[float]:
    """Average over the batch, wherever that is among the leading axes; without a batch, each index is a head."""
    values = np.asarray(entropy).reshape(leading)
    if len(leading) == 1 and heads and leading[0] == batch * heads:
        values = values.reshape(batch, heads)
    axis = next((axis for axis, extent in enumerate(values.shape) if extent == batch), None)
    mean = values if axis is None else values.mean(axis=axis)
    return [float(value) for value in np.ravel(mean)]
