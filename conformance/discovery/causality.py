"""How a component is made causal, found from its arguments and from the effect of later inputs.

`never` is not written for code that looks at later positions: if the contract needs a causal mask, that is the most
frequent mistake. It is offered as a line that the author may add. A part that its name calls an encoder's, in code
without a language model, is meant for complete texts.
"""

from __future__ import annotations

from itertools import product
from typing import Any

from conformkit.conformance.binding.config import MASK_SHAPES
from conformkit.conformance.discovery.bench import TROUBLE, Bench
from conformkit.conformance.discovery.calling import Call, masked_by
from conformkit.conformance.discovery.proposal import Proposal
from conformkit.conformance.driver.errors import WorkerLost
from conformkit.spec.components import Component

__all__ = ["looks_ahead", "settled"]

_NEVER = 'causal = "never"'
_NOT = "not causal"
"""What `bidirectional` in a constructor is taken for."""
_KINDS = (("bool", "attend"), ("bool", "hide"), ("float", "attend"))


def settled(
    component: Component, proposal: Proposal, call: Call, names: frozenset[str], bench: Bench, *, encodes: bool = False
) -> None:
    """Complete a table with its call and its causality. Raises what is in TROUBLE where no call succeeds.

    `encodes`: its name says that it is meant for complete texts.
    """
    table = proposal.table
    table["call"] = call.written(mask=call.required)
    if "mask" not in names and not any(argument.name == "causal" for argument in component.arguments):
        bench.shown(component.name, table)
        return
    if "mask" in names:
        _by_held_mask(component, table, bench)
    elif "causal" in names:
        table["causal"] = "construct"
        _not_by_distances(component, proposal, call, bench)
    elif call.flag and not (call.mask and not _holds(component, table | _flag(call), bench)):
        table |= _flag(call) if not _holds(component, table | _off(call), bench) else {"causal": "always"}
    elif not call.required and _holds(component, table | {"causal": "always"}, bench):
        table["causal"] = "always"
    elif call.mask:
        _by_mask(component, proposal, call, bench)
    elif any(_by_any_mask(component, proposal, masked_by(call, name), bench) for name in call.open):
        return
    elif call.lengths:
        table["causal"] = "never"
        proposal.doubts.append(f"only {call.lengths} hides keys, which the contract's call has not: judged without it")
    elif encodes:
        bench.shown(component.name, table | {"causal": "never"})
        table["causal"] = "never"
        proposal.doubts.append("it looks at later positions, as an encoder does; if it should not, delete `causal`")
    else:
        table["causal"] = "always"
        why = "it attends to later positions, and no argument prevents that"
        proposal.doubts.append(f"{why}. Kept as a mistake; if it is meant for complete texts, declare")
        proposal.offered.append((_NEVER, why))


def _by_held_mask(component: Component, table: dict[str, Any], bench: Bench) -> None:
    """Check that the mask that its constructor gets hides later positions. Raises ValueError if it does not."""
    table["causal"] = "construct"
    bench.shown(component.name, table)
    if not _holds(component, table, bench):
        message = "the mask that its constructor gets hides nothing in this form"
        raise ValueError(message)


def _not_by_distances(component: Component, proposal: Proposal, call: Call, bench: Bench) -> None:
    """Take causality from a mask where `bidirectional` says something else, as it does of T5's buckets of distances."""
    table = proposal.table
    if not call.mask or _NOT not in table["construct"].values() or _holds(component, table, bench):
        return
    left = {name: value for name, value in table["construct"].items() if value != _NOT}
    proposal.table = {**table, "construct": left}
    if not _by_any_mask(component, proposal, call, bench):
        proposal.table = table


def looks_ahead(proposal: Proposal) -> bool:
    """Whether it looks at later positions, and its author may say that this is meant."""
    return any(line == _NEVER for line, _ in proposal.offered)


def _flag(call: Call) -> dict[str, Any]:
    """Next to a mask, a flag may only be a hint."""
    return {"causal": "flag", "call": call.written(flag=True)}


def _off(call: Call) -> dict[str, Any]:
    """With the flag off: what is causal even then is so always, whatever the flag says."""
    named = [{**part, str(call.flag): False} if isinstance(part, dict) else part for part in call.written(flag=True)]
    return {"causal": "always", "call": named}


def _by_mask(component: Component, proposal: Proposal, call: Call, bench: Bench) -> None:
    """Find the kind, shape and meaning of True with which a causal mask makes it causal."""
    if not _by_any_mask(component, proposal, call, bench):
        proposal.table = {**proposal.table, "causal": "mask", "call": call.written(mask=True)}
        proposal.doubts.append(f"no mask passed as {call.mask} hides later positions. Kept as a mistake")


def _by_any_mask(component: Component, proposal: Proposal, call: Call, bench: Bench) -> bool:
    """Whether an argument, whatever its name is, makes it causal as a mask in some form; the first form is taken."""
    table = {**proposal.table, "causal": "mask", "call": call.written(mask=True)}
    for (kind, true), shape in product(_KINDS, MASK_SHAPES):
        mask: dict[str, Any] = {"kinds": [kind]} | ({"true": true} if true != "attend" else {})
        mask |= {"shape": shape} if shape != "T T" else {}
        if _holds(component, {**table, "mask": mask}, bench):
            proposal.table = {**table, "mask": _also_float(component, table, mask, bench)}
            _tell(proposal, call, true)
            return True
    return False


def _also_float(component: Component, table: dict[str, Any], mask: dict[str, Any], bench: Bench) -> dict[str, Any]:
    """Add masks of numbers if they are accepted too, in the same shape."""
    if mask["kinds"] == ["bool"] and _holds(component, {**table, "mask": {**mask, "kinds": ["float"]}}, bench):
        mask = {**mask, "kinds": ["bool", "float"]}
    return mask


def _tell(proposal: Proposal, call: Call, true: str) -> None:
    if true == "hide":
        proposal.doubts.append(f"True in {call.mask} hides, as tried; if True should mean visible, it is a mistake")


def _holds(component: Component, table: dict[str, Any], bench: Bench) -> bool:
    try:
        return bench.is_causal(component.name, table)
    except WorkerLost:
        raise
    except TROUBLE:
        return False
