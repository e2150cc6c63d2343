"""Masks of which a call gets nothing: those that no call of the contract has, and those whose name nobody knows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from conformkit.conformance.assertions.checks import Withheld
from conformkit.conformance.binding.arguments import Arguments, Expression
from conformkit.conformance.binding.bound import Bound
from conformkit.conformance.binding.config import ComponentConfig
from conformkit.conformance.binding.masks import MASKS, masks_of, never_given
from conformkit.conformance.binding.toml_text import lines
from conformkit.conformance.text import listed
from conformkit.spec.arrays import Array
from conformkit.spec.components import Component

__all__ = ["unpassed_masks", "withheld_mask"]


def unpassed_masks(
    component: Component, own: ComponentConfig, causal: str, *, required: bool
) -> Iterator[tuple[str, str]]:
    """Yield what is wrong with a declared call, and what to do: it names a mask that is never there.

    `causal` says how causality is requested, `required` whether every call gets a mask.
    """
    if component.several:
        yield from _of_several(component, own)
        return
    named = own.call.named.values() if own.call is not None else ()
    has_mask = any(isinstance(value, Expression) and value.text == "mask" for value in named)
    if has_mask and "mask" not in component.inputs and causal != "mask" and not required:
        switch = "" if causal == "construct" else 'causal = "mask" or '
        how = {"construct": "by the constructor", "flag": "by a flag"}.get(causal, f"not at all: it is {causal} causal")
        yield (
            f"is called with `mask`, but none is ever passed: causality is requested {how}",
            f"leave `mask` out of `call`, or add {switch}mask = {{ required = true }}",
        )


def _of_several(component: Component, own: ComponentConfig) -> Iterator[tuple[str, str]]:
    declared = {
        method.name: own.methods[method.name].call for method in component.methods if method.name in own.methods
    }
    inputs = {component.name: component.inputs, **{method.name: method.inputs for method in component.methods}}
    for name, call in {component.name: own.call, **declared}.items():
        if absent := never_given((call or Arguments()).names(), inputs[name]):
            given = ", ".join(mask for mask in inputs[name] if mask in MASKS) or "none"
            yield f"is called with {', '.join(absent)}, which no call of {name} has", f"its masks are: {given}"


def withheld_mask(bound: Bound, method: str | None, inputs: Mapping[str, Array]) -> Withheld | None:
    """Return which mask of a call hides something and is not passed, though an argument may be for it, or None.

    `inputs` are those of the contract's call, masks with True = may attend.
    """
    known = bound.methods[method].unread if method else bound.unread
    if not known:
        return None
    used = (bound.methods[method].call if method else bound.call).names()
    alone = "x" in inputs and not bound.offers.get("masks")  # a model makes the mask of later positions itself
    lost = (
        name for name, mask in inputs.items()
        if name in MASKS and _hides(mask, later=alone) and not masks_of({name: mask}, used)
    )  # fmt: skip
    name = next(lost, None)
    return _withheld(bound.component.name, method, known, name) if name is not None else None


def _hides(mask: Array, *, later: bool) -> bool:
    """Whether a mask hides a key; one that only comes later counts if `later`."""
    rows, keys = mask.shape[-2:]
    return not (mask if later or rows == 1 else mask | ~np.tri(rows, keys, dtype=np.bool_)).all()


def _withheld(component: str, method: str | None, known: Mapping[str, str], mask: str) -> Withheld:
    free = [name for name, ours in known.items() if not ours]
    what = f"{component}.{method}" if method else component
    meant = "its argument {} is" if len(free) == 1 else "its arguments {} are"
    problem = f"{what} was not given the {_WORDS[mask]}: nothing says what {meant.format(listed(free))} for"
    first, padding = free[0], mask.replace("mask", "padding")
    call = {"call": {name: ours or mask for name, ours in known.items() if ours or name == first}}
    place = f"components.{component}"
    told = lines(f"{place}.methods", {method: call}) if method else lines(place, call)
    advice = (
        f"if {first} is that mask, with True for what may be seen, declare in conform.toml:",
        *(f"    {text}" for text in told),
        f'or {first} = "{padding}" where it is (B, T), with True for padding',
    )
    return Withheld(what, problem, advice)


_WORDS = {"mask": "mask", "src_mask": "source's mask", "tgt_mask": "target's mask", "memory_mask": "memory's mask"}
