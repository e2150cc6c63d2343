"""What a run tells about the declarations of an implementation: excuses that concern what is judged."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from conformkit.conformance.binding.bound import Bound
from conformkit.conformance.binding.declarations import Excuse, excuses
from conformkit.conformance.binding.further import Further
from conformkit.conformance.engine.implementation import Implementation

__all__ = ["excuses_of", "left_out"]

_NAMED = 6


def excuses_of(implementation: Implementation) -> list[Excuse]:
    """Return what is declared beyond renamings, of the components that are looked at.

    Of ignored parameters those that are trainable are told, a result that is not the first one only where the first one
    could have been meant, and calls for one sequence only where batches are taken too, with other numbers.
    """
    bounds = {bound.component.name: bound for bound in implementation.bounds()}
    seen = {*bounds, *implementation.tools(), *implementation.config.skipped(), *implementation.unusable, ""}
    found = (_tried(excuse, bounds.get(excuse.component)) for excuse in excuses(implementation.config))
    seen_excuses = [excuse for excuse in found if excuse is not None and excuse.component in seen]
    further = [(n, one) for n, one in _further(implementation) if one.kind not in implementation.config.refused]
    instead = {one.key: one.words for _, one in further if one.kind == "constants"}
    seen_excuses = [
        replace(one, instead=instead.get(one.key, "")) if one.kind == "constants" else one for one in seen_excuses
    ]
    seen_excuses += [Excuse(one.kind, one.key, name, one.words) for name, one in further if one.kind != "constants"]
    return [*seen_excuses, *_replaced(implementation)]


def left_out(implementation: Implementation) -> list[str]:
    """Return what is declared and not passed, since a policy does not allow its kind."""
    refused = implementation.config.refused
    return [
        f"{one.words}: that is not allowed, so it is judged without" for _, one in _further(implementation)
        if one.kind in refused
    ]  # fmt: skip


def _further(implementation: Implementation) -> list[tuple[str, Further]]:
    components = ((bound.component.name, bound.further) for bound in implementation.bounds())
    tools = ((name, tool.bound.further) for name, tool in implementation.tools().items())
    return [(name, one) for name, several in (*components, *tools) for one in several]


def _replaced(implementation: Implementation) -> Iterator[Excuse]:
    """Yield what stands under a name of the contract while another object, or method, is judged."""
    config, tools = implementation.config, {name: tool.bound for name, tool in implementation.tools().items()}
    exports = {bound.component.name: (bound.component.export, bound.path) for bound in implementation.bounds()}
    exports |= {name: (name, bound.path) for name, bound in tools.items()}
    for name, place in implementation.replaced.items():
        if name in exports:
            key, which = "implementation.module", "module"
            if config.component(name).path or config.tool(name).path:
                key, which = f"components.{name}.path", f"the path of {name}"
            export, path = exports[name]
            yield Excuse("path", key, name, f"{export} in {place} is not judged: {which} names {path}")
    for part in implementation.bounds():
        for what, words in part.call_arguments.aside.items():
            key = f"components.{part.component.name}.paths.{what}"
            yield Excuse("path", key, part.component.name, f"{words} of {part.component.name} is not judged")
    for name, bound in tools.items():
        for method, path in bound.aside.items():
            sentence = f"{method} of {name} is not judged: its path names {path}"
            yield Excuse("path", f"components.{name}.methods.{method}.path", name, sentence)


def _tried(excuse: Excuse, bound: Bound | None) -> Excuse | None:
    """Return an excuse as the trial of its component shows it, None if it turned out to be none."""
    if bound is None or excuse.kind not in {"ignore", "output", "layout"}:
        return excuse
    if excuse.kind == "layout":
        return excuse if bound.splits else None
    if excuse.kind == "output":
        return excuse if bound.contradicted else None
    if not bound.concealed:
        return None
    named = ", ".join(bound.concealed[:_NAMED]) + (", …" if len(bound.concealed) > _NAMED else "")
    sentence = f"trainable parameters of {excuse.component} are ignored, and counted all the same: {named}"
    return replace(excuse, words=sentence)
