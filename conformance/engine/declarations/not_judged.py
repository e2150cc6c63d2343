"""What is there or declared, and cannot be judged all the same: it costs its own clauses, and the run no verdict."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from conformkit.conformance.binding.bound import Bound
from conformkit.conformance.binding.config import Config
from conformkit.conformance.binding.exports import ExportMismatch
from conformkit.conformance.engine.boundary import incomprehensible

__all__ = ["Unusable", "absent", "mismatched", "obscure", "unbound", "unheard"]

_NAMED = 4
"""So many parameters are named in a sentence."""
_SKIP = "or judge only the others: --without and its prefix"


@dataclass(frozen=True, slots=True)
class Unusable:
    """Why a component or tool cannot be judged: a sentence, the line at fault, and what to do."""

    problem: str
    where: str = ""
    advice: tuple[str, ...] = ()


def absent(name: str, path: str, error: Mapping[str, Any] | None, config: Config) -> Unusable:
    """Return why something declared is not available: its module does not import, or has nothing of that name."""
    why = "it is None"
    if error is not None:
        why = str(error["message"]) if error["type"] == "load" else f"{error['type']}: {error['message']}"
    line = str(error.get("where") or "") if error is not None else ""
    advice = [f"raised at {line}"] if line else []
    problem = f"{name} is declared as {path}, but not available: {why}"
    return Unusable(problem, config.place(name), (*advice, "correct the path, or take it out of the file"))


def mismatched(mismatch: ExportMismatch) -> Unusable:
    """Return why something is not constructed or called as the contract says."""
    return Unusable(str(mismatch), mismatch.source, mismatch.advice)


def obscure(name: str, path: str, trouble: Exception) -> Unusable:
    """Return why something is not judged about which the implementation says what nobody can interpret."""
    return Unusable(f"what {name} says about itself cannot be interpreted: {incomprehensible(trouble)}", path)


def unheard(bound: Bound, config: Config) -> Iterator[tuple[str, Unusable]]:
    """Yield the methods that are declared, but not available: one of that name is not there, or takes other things."""
    name, own = bound.component.name, bound.config
    lost = [method for method in own.methods if method not in bound.methods]
    if own.generate is not None and bound.generation is None and bound.component.is_language_model:
        lost.append("generate")
    for method in lost:
        told = next((note for note in bound.notes if note.startswith((f"{method} of ", "generation is"))), "")
        problem = f"{name}.{method} is declared, but not available: {told.partition(': ')[2] or 'it is not there'}"
        yield f"{name}.{method}", Unusable(problem, config.place(name), ("correct its table, or take it out",))


def unbound(bound: Bound) -> Unusable | None:
    """Return why it is not known where a component's weights are, although it may be right; None if that is known."""
    name = bound.component.name
    if bound.rules is None and bound.adapters:
        shown = ", ".join(bound.adapters[:_NAMED]) + (", …" if len(bound.adapters) > _NAMED else "")
        problem = f"{name} has low-rank adapters ({shown}), which are no part of the definition"
        return Unusable(problem, bound.path, ("add their product to the weights, or build it without them", _SKIP))
    if bound.rules is not None or not bound.same_count:
        return None
    guess = [f'"{rule.target}" = "{rule.source}"' for rule in bound.guess]
    say = "say where they are in conform.toml" + (", for example, if this is right:" if guess else ":")
    lines = guess or ['"name.of.yours" = "q.weight -> (h d) m"']
    advice = (*bound.unbound, say, f"    [components.{name}.weights]", *(f"    {line}" for line in lines), _SKIP)
    return Unusable(f"binding unsure: the weights of {name} could not be bound", bound.path, advice)
