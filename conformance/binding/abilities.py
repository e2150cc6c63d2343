"""What a component can do, as its signatures and declarations say, and what a declaration alone takes away."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from conformkit.conformance.binding.aliases import meaning
from conformkit.conformance.binding.arguments import Expression
from conformkit.conformance.binding.bound import Bound
from conformkit.conformance.binding.config import OPTIONS
from conformkit.conformance.binding.masks import NAMES as MASK_NAMES
from conformkit.conformance.binding.signatures import Signature

__all__ = ["MEMORIES", "TARGETS", "abilities", "exemptions"]

TARGETS = frozenset({"tgt_mask", "tgt_padding", "tgt_lengths"})
"""What tells a decoder which positions of its target are padding."""
MEMORIES = frozenset(f"{side}_{form}" for side in ("memory", "src") for form in ("mask", "padding", "lengths"))
"""What tells a decoder which rows of its memory are padding."""
_ANY = {"target-masks": ("tgt_mask", TARGETS), "memory-masks": ("memory_mask", MEMORIES)}
"""By ability, the mask of the contract's call, and what a call may take in its place."""


def abilities(bound: Bound) -> dict[str, bool]:
    """Return what a component can do, by name."""
    named = bound.construct.names()
    settable = bound.causal in {"construct", "mask", "flag"}
    taken = bound.call.names()
    takes = bool(taken & set(MASK_NAMES)) if bound.component.several else "mask" in taken
    options = bound.generation.call.names() if bound.generation else _taken_by(bound, "generate")
    declared = bound.config.generate.options if bound.config.generate else None
    offered = options if declared is None else declared
    samples_only = bound.generation is not None and bound.generation.samples_only
    return {
        "dropout": "dropout" in named,
        "pad-id": "pad_id" in named,
        "causal-on": settable or bound.causal == "always",
        "causal-off": settable or bound.causal == "never",
        "masks": takes and bool(bound.mask.kinds),
        "bool-masks": takes and "bool" in bound.mask.kinds,
        "float-masks": takes and "float" in bound.mask.kinds,
        **{name: bool(taken & said) for name, (mask, said) in _ANY.items() if mask in bound.component.inputs},
        "any-rank": bound.limits.rank is None,
        "own-values": {"key", "value"} <= taken,
        **({"segments-optional": _may_leave_out(bound, "segments")} if "segments" in bound.component.inputs else {}),
        **dict.fromkeys(bound.methods, True),
        "generate": (bound.generation is not None or "generate" in bound.methods) and not bound.generation_stub,
        **({"length-penalty": "length_penalty" in _taken_by(bound, "beam_search"),
            "beam-eos-id": "eos_id" in _taken_by(bound, "beam_search")} if "beam_search" in bound.methods else {}),
        "greedy": not samples_only,
        "samples": samples_only or "temperature" in offered,
        **{name.replace("_", "-"): name in offered for name in OPTIONS},
    }  # fmt: skip


def _may_leave_out(bound: Bound, ours: str) -> bool:
    """Whether a call takes this input, by a name that has a default."""
    places = [name for name, value in bound.call.named.items() if isinstance(value, Expression) and value.text == ours]
    return bool(places) and not bound.insisted.intersection(places)


def _taken_by(bound: Bound, method: str) -> frozenset[str]:
    return bound.methods[method].call.names() if method in bound.methods else frozenset()


def exemptions(bound: Bound, export: Mapping[str, Any], *, causal: str) -> dict[str, str]:
    """Return the abilities that it would have without a declaration, with the key that takes each away.

    `causal` is how causality would be requested if nothing were declared about it.
    """
    found: dict[str, str] = {}
    place = f"components.{bound.component.name}"
    for key, other in _undeclared(bound, causal):
        found |= {
            name: f"{place}.{key}" for name, there in abilities(other).items() if there and not bound.offers[name]
        }
    own, masks = bound.config, ("masks", "bool-masks", "float-masks")
    for name, (mask, _) in _ANY.items():
        if own.call is not None and bound.offers.get(name) is False and _takes(export["call"], mask):
            found[name] = f"{place}.call"
    if own.call is not None and not bound.offers["masks"] and bound.mask.kinds and _takes(export["call"], "mask"):
        found |= dict.fromkeys(masks, f"{place}.call")
    if own.construct is not None:
        left_out = {argument.name for argument in bound.component.arguments} - bound.construct.names()
        named = (name.replace("_", "-") for name in left_out if _takes(export["construct"], name))
        found |= dict.fromkeys(named, f"{place}.construct")
    if own.generate is not None and own.generate.call is not None and bound.generation is not None:
        described = (export["methods"] or {}).get(bound.generation.method)
        lost = [name for name in OPTIONS if not bound.offers[name.replace("_", "-")] and _takes(described, name)]
        found |= {name.replace("_", "-"): f"{place}.generate.call" for name in lost}
    return found


def _undeclared(bound: Bound, causal: str) -> Iterator[tuple[str, Bound]]:
    """Yield keys, and the component as it would be without each of them."""
    own = bound.config
    if own.mask is not None:
        yield "mask.kinds", replace(bound, mask=replace(bound.mask, kinds=("bool", "float")))
    if own.causal is not None:
        yield "causal", replace(bound, causal=causal)
    if own.generate is not None and own.generate.options is not None:
        opened = replace(own.generate, options=None)
        yield "generate.options", replace(bound, config=replace(own, generate=opened))
    if own.generate is not None and own.generate.greedy is False and bound.generation is not None:
        yield "generate.greedy", replace(bound, generation=replace(bound.generation, samples_only=False))
    if own.limits.rank is not None:
        yield "limits", replace(bound, limits=replace(bound.limits, rank=None))


def _takes(described: Signature | None, argument: str) -> bool:
    return any(meaning(p["name"], [argument]) for p in described or ())
