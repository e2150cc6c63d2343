"""What a run tells about the declarations of an implementation: excuses that concern what is judged."""

from __future__ import annotations

from dataclasses import replace

from conformkit.conformance.binding.bound import Bound
from conformkit.conformance.binding.declarations import Excuse, excuses
from conformkit.conformance.engine.implementation import Implementation

__all__ = ["excuses_of"]

_NAMED = 6


def excuses_of(implementation: Implementation) -> list[Excuse]:
    """Return what is declared beyond renamings, of the components that are looked at.

    Of ignored parameters those that are trainable are told, and a result that is not the first one only where the first
    one could have been meant.
    """
    bounds = {bound.component.name: bound for bound in implementation.bounds()}
    seen = {*bounds, *implementation.tools(), *implementation.config.skipped(), *implementation.unusable, ""}
    found = (_tried(excuse, bounds.get(excuse.component)) for excuse in excuses(implementation.config))
    told = [excuse for excuse in found if excuse is not None and excuse.component in seen]
    return [
        *told,
        *(_replaced(bounds[name], place) for name, place in implementation.replaced.items() if name in bounds),
    ]


def _replaced(bound: Bound, place: str) -> Excuse:
    name = bound.component.name
    told = f"{bound.component.export} in {place} is not judged: the path of {name} names {bound.path}"
    return Excuse("path", f"components.{name}.path", name, told)


def _tried(excuse: Excuse, bound: Bound | None) -> Excuse | None:
    """Return an excuse as the trial of its component shows it, None if it turned out to be none."""
    if bound is None or excuse.kind not in {"ignore", "output"}:
        return excuse
    if excuse.kind == "output":
        return excuse if bound.contradicted else None
    if not bound.concealed:
        return None
    named = ", ".join(bound.concealed[:_NAMED]) + (", …" if len(bound.concealed) > _NAMED else "")
    told = f"trainable parameters of {excuse.component} are ignored, and counted all the same: {named}"
    return replace(excuse, words=told)
