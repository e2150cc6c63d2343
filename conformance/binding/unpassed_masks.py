"""Masks that conform.toml passes to a call, and that no call of the contract ever has: they would be left out."""

from __future__ import annotations

from collections.abc import Iterator

from conformkit.conformance.binding.arguments import Arguments, Expression
from conformkit.conformance.binding.config import ComponentConfig
from conformkit.conformance.binding.masks import MASKS, never_given
from conformkit.spec.components import Component

__all__ = ["unpassed_masks"]


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
