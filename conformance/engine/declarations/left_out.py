"""What conform.toml leaves out and a verdict cannot do without: it is not judged, and so never a pass."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from conformkit.conformance.engine.declarations.not_judged import Unusable
from conformkit.conformance.engine.implementation import Implementation
from conformkit.conformance.engine.request import RunRequest
from conformkit.spec.clauses import Clause, select
from conformkit.spec.components import components_of
from conformkit.spec.profiles import named_profile

__all__ = ["asked_for", "concerned", "left_unjudged"]


def left_unjudged(implementation: Implementation, request: RunRequest) -> Iterator[tuple[str, Unusable]]:
    """Yield what is left out of a run, of what its clauses are about, and nobody can say is right.

    That is what a draft could not confirm, and what is required; not a part of a whole that is judged, and gives the
    definition's numbers.
    """
    config, components = implementation.config, components_of(request.profile)
    asked = asked_for(request)
    for name in config.skipped():
        if name not in asked or name not in components:
            continue
        required = components[name].required and named_profile(request.profile).has_parts
        unconfirmed = config.component(name).unconfirmed
        if not (required or unconfirmed) or implementation.excused(name) or implementation.judged_inside(name):
            continue
        reason = _UNCONFIRMED if unconfirmed else _SKIPPED
        advice = (*reason[1:], f"to judge only what is there: --without {components[name].prefix}")
        yield name, Unusable(f"{name} is not judged: {reason[0]}", config.place(name), advice)


_UNCONFIRMED = (
    "unconfirmed = true in conform.toml, since its draft could not find it or confirm what was found",
    "check its table, then delete that line",
)
_SKIPPED = ("it is required, and skip = true in conform.toml leaves it out", "delete that line")


def asked_for(request: RunRequest) -> set[str]:
    """Return the components that the clauses of a request are about: all, or those that its selection concerns."""
    if not request.only and not request.without and request.among is None:
        return set(components_of(request.profile))
    left_out = {clause.id for clause in select(request.without)} if request.without else set()
    among = request.among
    chosen = (c for c in select(request.only, request.profile) if among is None or c.id in among)
    return concerned(clause for clause in chosen if clause.id not in left_out)


def concerned(chosen: Iterable[Clause]) -> set[str]:
    """Return the component of each prefix that most of its clauses name: BLOCK has one clause about the model."""
    components: dict[str, Counter[str]] = {}
    for clause in chosen:
        components.setdefault(clause.prefix, Counter())[clause.component] += 1
    return {counted.most_common(1)[0][0] for counted in components.values()}
