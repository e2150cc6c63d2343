"""Which declaration keeps a clause from being judged, if one does: code that lacks something is no declaration."""

from __future__ import annotations

from conformkit.conformance.assertions.checks import Ground, NotApplicable
from conformkit.conformance.binding.config import Config
from conformkit.conformance.binding.limits import Range, SizeLimits
from conformkit.conformance.engine.implementation import Implementation
from conformkit.spec.clauses import Clause

__all__ = ["exempted_by", "narrowed_by", "too_narrow"]

_HEADS = 4
"""Limits to fewer heads than this hide how heads are laid out."""
_DTYPES = "implementation.dtypes"


def exempted_by(implementation: Implementation, component: str, why: NotApplicable) -> str:
    """Return the key of conform.toml because of which a clause about a component does not apply; empty if none."""
    config = implementation.config
    if component in config.skipped():
        return f"components.{component}.{config.leaves_out_by(component)}"
    for bound in implementation.bounds():
        if bound.component.name == component and why.lacks in bound.exempted:
            return bound.exempted[why.lacks]
    if why.lacks in {"float64", "float32"} and why.lacks not in config.dtypes:
        return _DTYPES
    if why.ground is Ground.SIZES:
        return _limits(config, component)
    return _DTYPES if why.ground is Ground.FORMATS and "float64" not in config.dtypes else ""


def narrowed_by(implementation: Implementation, clause: Clause) -> str:
    """Return the declared limits that leave out sizes which a clause is about, as it says in its `Sizes:`."""
    config = implementation.config
    if not clause.sizes or not _limits(config, clause.component):
        return ""
    limits = config.limits if clause.component == "all" else config.limits_for(clause.component)
    narrow = any(_leaves_out(limits.of(_NAMES.get(name, name)), *ends) for name, ends in clause.sizes.items())
    narrow = narrow or ("head_width" in clause.sizes and _holds(limits.of("d_model"), clause.sizes["head_width"][1]))
    return _limits(config, clause.component) if narrow or _fixes_heads(limits) else ""


_NAMES = {"keys": "tokens", "queries": "tokens", "positions": "tokens"}


def too_narrow(implementation: Implementation, component: str) -> str:
    """Return why results of a component cannot be compared: declared limits leave rows of two features for its norms.

    A layer norm makes of two features their sign, so nothing that is small shows, and rounding turns it round.
    """
    for bound in implementation.bounds():
        whole = component in {bound.component.name, "all"}
        width = bound.limits.of("d_model").max
        if (
            whole
            and bound.variant.norm == "layernorm"
            and width is not None
            and width <= _TWO
            and bound.component.name in _WITH_NORMS
        ):
            return "its limits leave rows of two features, of which a norm keeps the sign only"
    return ""


_TWO = 2
_WITH_NORMS = {
    "TransformerBlock",
    "TinyTransformerLM",
    "EncoderLayer",
    "DecoderLayer",
    "Encoder",
    "Decoder",
    "Transformer",
}


def _leaves_out(limit: Range, low: int, high: int) -> bool:
    if limit.equals is not None:
        return True
    return (limit.min or low) > low or (limit.max or high) < high or (limit.multiple_of or 1) > 1


def _holds(whole: Range, widest: int) -> bool:
    """Whether a limit of d_model leaves out wide heads: it is fixed, or smaller than the widest."""
    return whole.equals is not None or (whole.max or widest) < widest


def _fixes_heads(limits: SizeLimits) -> bool:
    """Whether the number of heads, which no domain states, cannot be chosen."""
    heads = limits.of("num_heads")
    return heads.equals is not None or (heads.max is not None and heads.max < _HEADS)


def _limits(config: Config, component: str) -> str:
    """Return the key of the limits of a component; for clauses about all, of any."""
    if config.limits.sizes or config.limits.rank is not None:
        return "limits"
    names = list(config.components) if component == "all" else [component]
    return next((f"components.{name}.limits" for name in names if config.component(name).limits.sizes), "")
