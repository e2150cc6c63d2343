"""How many keys attention sees: a window that an argument sets, or a number of the code, shows in long inputs alone.

The first position of an input is changed, and what changes with it are as many results as a window has keys.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from conformkit.conformance.assertions.draws import Draw
from conformkit.conformance.discovery.bench import TROUBLE, Bench
from conformkit.conformance.discovery.meanings import is_window
from conformkit.conformance.discovery.proposal import Proposal
from conformkit.conformance.driver.errors import WorkerLost
from conformkit.conformance.subject.component import Instance
from conformkit.spec.components import component

__all__ = ["declare_window"]

_LONGEST = 600
"""The longest input with which clauses about every size call a part."""
_CAUSAL = ("SelfAttention", "MultiHeadAttention", "TransformerBlock", "TinyTransformerLM")
_DECIDED = "declare `window` under [variant] if that many are meant"


def declare_window(proposal: Proposal, bench: Bench, known: int) -> None:
    """Declare the window of a causal component; leave open whether it is right if an argument says another number.

    `known` is what short inputs have shown. What some call a window of 3 is the query's own key and two before it, what
    others call so has three before it.
    """
    table = proposal.table
    if proposal.component not in _CAUSAL or table.get("causal") == "never":
        return
    keys = _keys(proposal, bench)
    if keys and proposal.component == "SelfAttention":  # its definition has no window
        proposal.table = {**table, "limits": {**table.get("limits", {}), "tokens": {"max": keys}}}
        proposal.doubts.append(f"it sees {keys} keys: judged up to so many positions")
    elif keys and keys != known:
        proposal.table = {**table, "variant": {**table.get("variant", {}), "window": keys}}
    if keys and component(proposal.component).is_language_model and _ends_after_one(proposal, bench, keys):
        chosen = {**proposal.table.get("variant", {}), "window_layers": "even"}
        proposal.table = {**proposal.table, "variant": chosen}
    asked = _asked(table.get("construct", {})) or _asked(table.get("globals", {}))
    if asked and keys and keys != asked[1]:
        proposal.left_open = (f"{asked[0]} = {asked[1]} makes it see {keys} keys, its own position included", _DECIDED)


def _asked(given: Any) -> tuple[str, int] | None:
    """Return the argument that sets a window, in settings too, and the number that it is given."""
    for name, value in given.items() if isinstance(given, Mapping) else ():
        if is_window(name) and isinstance(value, int):
            return name, value
        if inner := _asked(value):
            return inner
    return None


def _ends_after_one(proposal: Proposal, bench: Bench, keys: int) -> bool:
    """Whether the second layer of a model sees everything, where with a window it would see less than all.

    Layers take turns then, or only the first one has the window: a clause about more layers tells these apart.
    """
    return 2 * keys - 1 < _tokens(proposal) and not _keys(proposal, bench, layers=2)


def _tokens(proposal: Proposal) -> int:
    limit = proposal.table.get("limits", {}).get("tokens", {})
    return min(_LONGEST, limit.get("max", _LONGEST) if isinstance(limit, Mapping) else _LONGEST)


def _keys(proposal: Proposal, bench: Bench, layers: int = 1) -> int:
    """Return the number of keys that a query sees through the layers; 0 where it sees all of as many as are allowed."""
    tokens = _tokens(proposal)
    own = {argument.name for argument in component(proposal.component).arguments}
    sizes = {name: size for name, size in (("num_layers", layers), ("block_size", tokens)) if name in own}
    try:
        return bench.built(proposal.component, proposal.table, lambda it: _changed(it, tokens), **sizes)
    except WorkerLost:
        raise
    except TROUBLE:
        return 0


def _changed(instance: Instance, tokens: int) -> int:
    """Return how many results change with the first position; 0 if all do, or others than the first ones."""
    one, other = (instance.example_inputs(Draw(n, "window"), batch=1, tokens=tokens, further=0)[0] for n in (0, 1))
    changed = one.copy()
    changed[:, 0] = other[:, 0] if one.ndim > 2 else (one[:, 0] + 1) % instance.sizes["vocab_size"]
    differs = (instance(one) != instance(changed))[0].any(axis=-1)
    keys = int(differs.sum())
    return keys if 0 < keys < len(differs) and differs[:keys].all() else 0
