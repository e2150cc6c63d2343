"""Choices that a submission makes and does not declare: those that the policy allows are judged as if declared.

The others stay mistakes: an assignment decides what is asked for.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from conformkit.conformance.apps.grade.policy import Allowed
from conformkit.conformance.binding.config import ComponentConfig, Config, MaskConfig
from conformkit.conformance.engine.results import Report, Undeclared

__all__ = ["declaring", "of_booleans", "told_choices", "undeclared"]

_ATTENTION = "ScaledDotProductAttention"
_FLOATS = "float-masks"


def undeclared(report: Report, allowed: Allowed) -> list[Undeclared]:
    """Return the choices that a report found and a submission may make."""
    return [found for found in report.undeclared if found.actual in allowed.variant.get(found.choice, ())]


def declaring(config: Config, made: Iterable[Undeclared]) -> Config:
    """Return a configuration that declares these choices, where their lines say."""
    for found in made:
        if found.table == "variant":
            config = replace(config, variant={**config.variant, found.choice: found.actual})
        else:
            own = config.components.get(found.component, ComponentConfig(found.component))
            own = replace(own, variant={**own.variant, found.choice: found.actual})
            config = replace(config, components={**config.components, found.component: own})
    return config


def of_booleans(report: Report, config: Config, allowed: Allowed) -> Config | None:
    """Return a configuration whose attention gets Boolean masks only, where it fails with others and may lack them.

    `masked_fill(mask == 0, …)` reads them otherwise, and nothing in code says that it lacks an ability. None elsewhere.
    """
    own = config.components.get(_ATTENTION, ComponentConfig(_ATTENTION))
    red = any(r.verdict.red and r.clause.applies.get(_FLOATS) == "yes" for r in report.results)
    if not red or own.mask is not None or _FLOATS not in allowed.lacking:
        return None
    own = replace(own, mask=MaskConfig(kinds=("bool",)))
    return replace(config, components={**config.components, _ATTENTION: own})


def told_choices(made: Iterable[Undeclared]) -> list[str]:
    """Return what to tell the author, a line each."""
    return [
        f"{found.component}: `{found.line}` under [{found.table}] is missing in conform.toml; "
        "the policy allows it, so it is judged as if it stood there"
        for found in made
    ]
