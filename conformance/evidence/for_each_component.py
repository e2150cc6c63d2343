"""The components that a clause about all of them applies to."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from conformkit.conformance.assertions.checks import NotApplicable, under
from conformkit.conformance.subject.component import Instance, Subject

__all__ = ["depth", "each", "takes", "without_causal"]


def each(
    every: Sequence[Subject], *abilities: str, named: Collection[str] = (), without: Collection[str] = ()
) -> Iterator[Subject]:
    """Yield the components that have these abilities; a failure names the current one.

    A component that can't be built or called is left to the clause that reports it. Further abilities are
    `weights-bound`, and `parameters` if the definition has some. `named` keeps to some components, `without` leaves
    some out. Raises NotApplicable when none is left.
    """
    meant = [s for s in every if (not named or s.name in named) and s.name not in without]
    found = [s for s in meant if s.bound.failure is None and _has(s, abilities)]
    if not found:
        wanted = f" with {' and '.join(abilities)}" if abilities else ""
        raise NotApplicable(f"no component{wanted} is left to check")
    for subject in found:
        under(subject.name)
        yield subject


def _has(subject: Subject, abilities: Collection[str]) -> bool:
    bound = subject.bound
    facts = {
        "weights-bound": lambda: bound.rules is not None,
        "parameters": lambda: bool(bound.component.parameters(subject.sizes(), bound.variant)),
    }
    return all(facts[a]() if a in facts else subject.offers(a) for a in abilities)


def takes(subject: Subject, *sizes: str) -> bool:
    """Whether the constructor takes these arguments of the contract."""
    return subject.bound.construct.names() >= set(sizes)


def without_causal(subject: Subject) -> Instance:
    """Construct without the argument `causal`, if it exists and nothing is declared about the constructor."""
    if subject.bound.config.construct is not None or not takes(subject, "causal"):
        raise NotApplicable("its constructor has no argument `causal` to leave out")
    return subject.construct({name: value for name, value in subject.sizes().items() if name != "causal"})


def depth(instance: Instance) -> int:
    """How many components a result passes through: tolerances grow with it."""
    layers: int = instance.sizes.get("num_layers", 0)
    return {"TransformerBlock": 2, "TinyTransformerLM": 2 * layers + 1}.get(instance.subject.name, 1)
