"""What only calls show of declared arguments: whether code computes something else for callers of the contract.

They leave out a flag at the call that asks for causality, pass by position what the contract requires, and the rest by
name. Code that gives other numbers then could be right only as conform.toml calls it: it is judged as they find it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import numpy as np

from conformkit.conformance.assertions.checks import ClauseFailure
from conformkit.conformance.assertions.draws import Draw
from conformkit.conformance.binding.abilities import abilities
from conformkit.conformance.binding.arguments import Arguments, Expression
from conformkit.conformance.binding.bound import Bound
from conformkit.conformance.binding.further import Further
from conformkit.conformance.driver.errors import ImplementationFailure
from conformkit.conformance.probing.first_results import first_result, may_be_meant
from conformkit.conformance.probing.layouts_alike import laid_out_anew
from conformkit.conformance.subject.component import Instance
from conformkit.spec.arrays import Array

__all__ = ["as_it_stands", "methods_as_they_stand", "with_its_defaults"]

_FLAG = Expression("causal")
_PLACED = "its arguments are passed by position, as the contract has them: it is judged so"
_ROWS = 2
"""The axes of ids (B, T)."""


def as_it_stands(instance: Instance) -> Bound:
    """Return how a component is bound so that it does what it does for callers of the contract."""
    bound = instance.subject.bound
    for note, other in _otherwise(bound):
        if _differs(instance, other):
            return replace(other, notes=(*bound.notes, f"{bound.component.name} gives other numbers {note}"))
    return bound


def with_its_defaults(instance: Instance) -> Bound:
    """Return how a component is bound, and what it is told that changes its numbers and no caller of the contract says.

    Where a policy does not allow that, it is bound without.
    """
    declared = bound = instance.subject.bound
    taken, left_out = False, dict[str, frozenset[str | int]]()
    for key, plain in declared.by_default:
        other = _passing(declared, key, plain.arguments)
        if other is None or (plain.instead and taken):
            continue
        others = _gives_others(instance.with_bound(declared), other, key)
        taken = taken if plain.alone else others is not None
        if not others:
            continue
        name, verb = bound.component.name, "constructed" if key == "construct" else "called"
        of = "" if key in {"construct", "call"} else f"{key.removeprefix('methods.')} of "
        sentence = f"{of}{name} is {verb} with {plain.words}, and gives other numbers without that"
        suffix = "" if key in {"construct", "call"} else ".call"
        kind, changed = "defaults", _changed(plain.arguments, _given(declared, key))
        if plain.refused and key not in left_out:
            bound, left_out[key] = _passing(bound, key, plain.arguments) or bound, changed
        elif plain.refused and not changed <= left_out[key]:
            kind = "path"  # one is left out already: without both it is something that nobody has tried
        elif plain.refused:
            continue
        bound = replace(bound, further=(*bound.further, Further(f"components.{name}.{key}{suffix}", kind, sentence)))
    return bound


def _given(bound: Bound, key: str) -> Arguments:
    """Return the arguments with which it is constructed, called, or a method of it is."""
    if key in {"construct", "call"}:
        return bound.construct if key == "construct" else bound.call
    if key == "generate":
        return bound.generation.call if bound.generation is not None else Arguments()
    return bound.methods[key.removeprefix("methods.")].call


def _changed(one: Arguments, other: Arguments) -> frozenset[str | int]:
    """Return the names and places of arguments that only one of them has, or that have another value."""
    mine, theirs = ({**dict(enumerate(a.positional)), **a.named} for a in (one, other))
    return frozenset(name for name in {*mine, *theirs} if name not in mine or mine[name] != theirs.get(name, mine))


def _passing(bound: Bound, key: str, arguments: Arguments) -> Bound | None:
    """Return it with other arguments where it is constructed, called, or a method of it is; None if it has none."""
    if key == "construct":
        return replace(bound, construct=arguments)
    if key == "call":
        return replace(bound, call=arguments)
    if key == "generate" and bound.generation is not None:
        return replace(bound, generation=replace(bound.generation, call=arguments))
    if (name := key.removeprefix("methods.")) in bound.methods:
        return replace(bound, methods={**bound.methods, name: replace(bound.methods[name], call=arguments)})
    return None


def _gives_others(instance: Instance, other: Bound, key: str) -> bool | None:
    """Whether it gives other numbers, or texts, when it is bound otherwise; None if nobody can call it so."""
    if key in {"construct", "call"}:
        return _differs(instance, other)
    call = _generated if key == "generate" else partial(_returned, name=key.removeprefix("methods."))
    try:
        return not _alike(call(instance.with_bound(other)), call(instance))
    except (ImplementationFailure, ClauseFailure):
        return None


def methods_as_they_stand(instance: Instance) -> Bound:
    """Return how the methods of a component are called so that they do what they do for callers of the contract."""
    bound = instance.subject.bound
    for key, call in bound.by_position.items():
        other = None if key in {"construct", "call"} else _passing(bound, key, call)
        if other is not None and _gives_others(instance.with_bound(bound), other, key):
            note = f"{key.removeprefix('methods.')} of {bound.component.name} gives other results if {_PLACED}"
            bound = replace(other, notes=(*bound.notes, note))
    return bound


def _generated(instance: Instance) -> Array:
    (ids, *_) = instance.example_inputs(Draw(0, "generate as it stands"))
    generation = instance.subject.bound.generation
    greedy = generation is not None and not generation.samples_only
    return instance.generate(ids, 3, seed=0, greedy=greedy).out


def _returned(instance: Instance, name: str) -> Array:
    """Return what a method gives for example inputs, and for the smallest numbers that it requires."""
    bound = instance.subject.bound
    method = bound.component.method(name)
    known = dict(zip(bound.component.inputs, instance.example_inputs(Draw(0, "methods as they stand")), strict=False))
    if "src" in known:
        known["memory"] = Draw(0, "memory").values(*known["src"].shape, instance.sizes["d_model"])
        known["memory_mask"] = known["src_mask"]
    options = {o.name: _OPTIONS[o.name] for o in method.options if o.required or bound.methods[name].insists(o.name)}
    inputs = (known.get(wanted) for wanted in method.inputs)
    return instance.call(*inputs, method=name, options=options, seed=0).out


_OPTIONS = {"max_new_tokens": 3, "bos_id": 1, "beam_width": 2, "eos_id": -1}


def _otherwise(bound: Bound) -> Iterator[tuple[str, Bound]]:
    """Yield other ways to bind it, the contract's own first."""
    construct = bound.by_position.get("construct", bound.construct)
    call = bound.by_position.get("call", bound.call)
    placed = replace(bound, construct=construct, call=call)
    if bound.causal == "flag":
        bare = replace(placed, call=_without_flag(placed.call), causal="always")
        note = "without its flag for causality than with True or with False: it is judged without"
        yield note, replace(bare, offers={**bound.offers, **abilities(bare)})
    note = f"if {_PLACED}"
    one_by_one = (replace(bound, construct=construct), replace(bound, call=call))
    yield from ((note, other) for other in (placed, *one_by_one) if other != bound)


def _differs(instance: Instance, other: Bound) -> bool | None:
    """Whether it gives other numbers when it is bound otherwise, whatever the flag says; None if that is refused."""
    inputs = instance.example_inputs(Draw(0, "as it stands"), further=0)
    try:
        again = instance.with_bound(other)
        if other.construct != instance.subject.bound.construct:
            again = again.subject.construct(instance.sizes, dtype=instance.dtype)
            instance = instance.subject.construct(instance.sizes, dtype=instance.dtype)  # a table is written to, too
            instance.scatter(Draw(0, "weights as it stands"))
            again.scatter(Draw(0, "weights as it stands"))
        return any(_other_numbers(again, instance, given) for given in (inputs, _ended(inputs)))
    except (ImplementationFailure, ClauseFailure):
        return None  # nobody can call it so


def _other_numbers(again: Instance, instance: Instance, inputs: tuple[Array, ...]) -> bool:
    """Whether its output is another one, or what callers take for it: the first array, whichever is declared."""
    wanted = [one(*inputs) for one in _flagged(instance)]
    bound = instance.subject.bound
    placed = bound.config.output is not None or bound.weights_output is not None
    first = first_result(again, inputs) if placed else None
    try:
        found = again(*inputs)
    except ImplementationFailure:
        if first is None or not laid_out_anew(first, wanted[0]):
            raise
        found = first.reshape(wanted[0].shape)  # there is no such place in what it returns otherwise
    except ClauseFailure:
        if may_be_meant(again, again.unchecked(*inputs)[1], wanted[0]):
            return True
        raise
    if not any(_alike(found, one) for one in wanted):
        return True
    if first is None or (own := first_result(instance, inputs)) is None:
        return False
    if laid_out_anew(first, found):
        return not any(_alike(first.ravel(), one.ravel()) for one in (own, *wanted))
    return own.shape != first.shape and may_be_meant(again, first, found)


def _ended(inputs: tuple[Array, ...]) -> tuple[Array, ...]:
    """Return inputs whose ids end in the usual one for padding, which code may find by itself."""
    ended = [array.copy() for array in inputs]
    if ended and ended[0].dtype.kind == "i" and ended[0].ndim == _ROWS:
        ended[0][1:, -2:] = 0
    return tuple(ended)


def _flagged(instance: Instance) -> Iterator[Instance]:
    values = (True, False) if instance.subject.bound.causal == "flag" else (instance.sizes.get("causal", True),)
    return (replace(instance, sizes={**instance.sizes, "causal": value}) for value in values)


def _alike(one: Array, other: Array) -> bool:
    return one.shape == other.shape and np.allclose(one, other, rtol=1e-3, atol=1e-6, equal_nan=True)


def _without_flag(call: Arguments) -> Arguments:
    first = next((place for place, value in enumerate(call.positional) if value == _FLAG), len(call.positional))
    return Arguments(call.positional[:first], {name: value for name, value in call.named.items() if value != _FLAG})
