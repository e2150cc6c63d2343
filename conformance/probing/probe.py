"""Build each component once, call it once, and find out where its weights are and how accurately it computes."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, cast

import numpy as np

from conformkit.conformance.assertions.checks import ClauseFailure, NotApplicable
from conformkit.conformance.assertions.draws import Draw
from conformkit.conformance.binding.patterns import shapes, to_canonical
from conformkit.conformance.binding.rules import PatternError, Rule, folded, parse_rule
from conformkit.conformance.binding.sizes import NoSizeError
from conformkit.conformance.binding.solve import Theirs, Unassignable, assignments, families
from conformkit.conformance.driver.errors import DriverError, ImplementationFailure
from conformkit.conformance.probing.constants import constants
from conformkit.conformance.subject.component import Instance, Subject
from conformkit.spec.arrays import Array
from conformkit.spec.components import Parameter
from conformkit.spec.tolerances import Precision, tolerance

__all__ = ["ROUNDING", "placements", "probe"]

_FITS = 1e-6
"""Relative error below which no better layout is looked for: far above float64 rounding, far below any mistake."""
_FITS_FLOAT32 = 2e-5
"""Relative error up to which the best layout counts as found."""
ROUNDING = 5e-7
"""Relative error that float32 rounding explains in one component, some eight times its unit; more is a mistake."""
_DEPTH = {
    "TransformerBlock": 2, "TinyTransformerLM": 5, "EncoderLayer": 2, "DecoderLayer": 3, "Encoder": 4, "Decoder": 6,
    "Transformer": 10,
}  # fmt: skip
"""How many components a result of the probe passes."""
_TRIES = 1000
"""Enough for four square matrices in any order and any consistent layout, whatever their names say."""
_TRIES_OF_A_WHOLE = 400
"""What is built of other components, whose layouts are known by then."""


@np.errstate(all="ignore")  # what an implementation returns may be anything
def probe(subject: Subject, dtypes: tuple[str, ...], *, gradients: bool, known: Mapping[str, str]) -> dict[str, str]:
    """Fill in what only a trial tells: number format, abilities, weights. Return what was learnt about their places.

    A component that can't even be built or called keeps what it met as its `failure`.
    """
    bound = subject.bound
    try:
        instance = _first_instance(subject, dtypes)
        bound.offers["float32"] = "float32" in dtypes
        _abilities(instance, gradients=gradients)
        if bound.methods:
            from conformkit.conformance.probing.mask_trial import settle_methods  # noqa: PLC0415 - core does without

            settle_methods(instance)
        return _bind_weights(instance, known)
    except DriverError as failure:
        bound.failure = failure
    except (ClauseFailure, NotApplicable, NoSizeError, PatternError) as problem:
        bound.rules, bound.unbound = None, (str(problem), *getattr(problem, "details", ()))
    return {}


def _first_instance(subject: Subject, dtypes: tuple[str, ...]) -> Instance:
    """Build in the first number format that the implementation accepts, and call it once."""
    failure: ImplementationFailure | None = None
    for dtype in dtypes:
        subject.bound.dtype = dtype
        subject.bound.precision = cast("Precision", dtype)
        try:
            instance = subject.build(dtype=dtype)
            if subject.bound.component.profile == "seq2seq":
                _settle_calls(instance)
            instance(*instance.example_inputs(Draw(0, "first call"), further=0))
        except ImplementationFailure as refused:
            failure = failure or refused
            continue
        listed = subject.link.request({"op": "parameters", "handle": instance.handle}, {})
        instance.listing = listed.header["parameters"]
        return instance
    assert failure is not None
    subject.bound.dtype, subject.bound.precision = "float64", "float64"
    raise failure


def _settle_calls(instance: Instance) -> None:
    from conformkit.conformance.probing.mask_trial import settle_causality, settle_masks  # noqa: PLC0415 - as above

    settle_masks(instance)
    if instance.subject.bound.config.causal is None:
        settle_causality(instance)


def _abilities(instance: Instance, *, gradients: bool) -> None:
    bound = instance.subject.bound
    inputs = instance.example_inputs(Draw(0, "abilities"), further=0)
    outcome = instance.call(*inputs, watch=True)
    bound.offers |= {"gradients": gradients, "modes": bool(outcome.modes), "float64": bound.dtype == "float64"}
    bound.offers["float64"] = bound.offers["float64"] and outcome.dtype == "float64"
    if bound.component.name == "ScaledDotProductAttention":
        silent = bound.weights_output is None and bound.config.output is None
        if silent and outcome.structure.startswith(("tuple", "list")):
            bound.weights_output = 1
    bound.offers["weights"] = bound.weights_output is not None


def _bind_weights(instance: Instance, known: Mapping[str, str]) -> dict[str, str]:
    bound = instance.subject.bound
    if not instance.subject.link.is_torch:
        bound.constants = constants(instance)
    inputs = instance.example_inputs(Draw(0, "weights"), further=0)  # no other length: DET-HISTORY-LENGTH
    instance.scatter(Draw(0, "scatter"))
    output = instance(*inputs)
    if bound.config.weights:
        _judge_declared(instance, inputs, output)
    else:
        theirs = {p["name"]: tuple(p["shape"]) for p in instance.trainable}
        raw = {name: a.astype(np.float64) for name, a in instance.read_raw().items()}
        _search(instance, theirs, raw, inputs, output, known)
    if not bound.fits and bound.precision == "float64" and bound.rules:
        from conformkit.conformance.probing.rounding import computes_in_float32  # noqa: PLC0415 - for wrong ones

        bound.precision = "float32" if computes_in_float32(instance) else "float64"
    return {rule.target: rule.source for rule in bound.rules or ()}


def _judge_declared(instance: Instance, inputs: tuple[Array, ...], output: Array) -> None:
    """Take the declared weights; they must place everything and fit the shapes."""
    bound = instance.subject.bound
    bound.rules = instance.subject.declared
    ours = instance.canonical
    listed = {p["name"]: tuple(p["shape"]) for p in instance.listing}
    wanted = shapes(bound.rules, ours)
    wrong = [f"{n} has shape {listed[n]}, the file says {s}" for n, s in wanted.items() if listed.get(n, s) != s]
    absent = [f"{n} is in the file, not in the implementation" for n in wanted if n not in listed]
    unsaid = [f"{p['name']} {tuple(p['shape'])} is in the implementation, not in the file" for p in instance.trainable
              if p["name"] not in wanted]  # fmt: skip
    raw = {name: a.astype(np.float64) for name, a in instance.read_raw().items()}
    if wrong or absent:
        _do_without(instance, *wrong, *absent, *unsaid)
        return
    canonical = to_canonical(bound.rules, raw, ours, instance.sizes)
    lacking = [f"{name} is placed nowhere" for name in ours if name not in canonical]
    if lacking or unsaid:
        _do_without(instance, *lacking, *unsaid)
        return
    _settle_precision(instance, _error(instance, canonical, inputs, output))


def _search(
    instance: Instance, theirs: Mapping[str, tuple[int, ...]], raw: Mapping[str, Array],
    inputs: tuple[Array, ...], output: Array, known: Mapping[str, str],
) -> tuple[Rule, ...]:  # fmt: skip
    """Try assignments in the order of their plausibility until one reproduces the output."""
    bound, ours = instance.subject.bound, instance.canonical
    first: tuple[Rule, ...] | None = None
    best: tuple[float, tuple[Rule, ...]] = (np.inf, ())
    enough, found = _near(instance)
    try:
        for rules in placements(
            theirs, ours, instance.sizes, known, bare=not instance.subject.link.is_torch, limit=instance.subject.tries
        ):  # fmt: skip
            first = first or rules
            try:
                canonical = to_canonical(rules, raw, ours, instance.sizes)
            except PatternError:  # one candidate that does not fit leaves the others
                continue
            error = _error(instance, canonical, inputs, output)
            if error < best[0]:
                best = (error, rules)
            if error < enough:
                break
    except Unassignable as nothing:
        if first is None:
            _give_up(instance, nothing)
            return ()
    matched = best[0] < found
    bound.rules = best[1] if matched else first or ()
    if matched:
        _settle_precision(instance, best[0])
        if first is not None and bound.rules != first:
            bound.notes += _relabelled(bound.rules, first)
    return bound.rules


def _near(instance: Instance) -> tuple[float, float]:
    """Return below which error no better layout is looked for, and below which the best one counts as found.

    In half precision a wrong layout is off by several times what rounding explains, by a tenth and more.
    """
    if instance.subject.half:
        explained = instance.subject.tolerance(_DEPTH.get(instance.subject.name, 1))
        return explained / 2, explained
    return _FITS, _FITS_FLOAT32


def _give_up(instance: Instance, nothing: Unassignable) -> None:
    """Name what has no place on both sides."""
    theirs, ours = (", ".join(names) or "none" for names in (nothing.theirs, nothing.ours))
    _do_without(instance, f"yours, without a place: {theirs}", f"the definition's: {ours}")


def _do_without(instance: Instance, *problems: str) -> None:
    """Leave the weights unbound; with as many numbers as the definition has, nobody can say that they are wrong."""
    bound = instance.subject.bound
    bound.rules, bound.unbound = None, problems
    bound.same_count = instance.count() == sum(math.prod(p.shape) for p in instance.canonical.values())


def placements(
    theirs: Mapping[str, tuple[int, ...]], canonical: Mapping[str, Parameter], sizes: Mapping[str, Any],
    known: Mapping[str, str], *, bare: bool, limit: int | None = None,
) -> Iterator[tuple[Rule, ...]]:  # fmt: skip
    """Yield rules that place all parameters: first those in which numbers in names count heads, then those without.

    Where there are none, layers may be counted from another number than 0.

    `bare` parameters are arrays whose matrices usually are (in, out). Raises Unassignable at the end when there are
    none in one of these ways.
    """
    ours, counts = _folded(canonical)
    heads = {n for n in (sizes.get("num_heads"), sizes.get("kv_heads")) if n}
    limit = limit or (_TRIES_OF_A_WHOLE if any(name.count(".") > 1 for name in ours) else _TRIES)
    layers = set(counts.values()) or {sizes.get("num_layers", 0)} - {0}
    tried: list[list[Theirs]] = []
    problem: Unassignable | None = None
    placed = False
    for shifted, numbered in itertools.product((False, True), (heads, set[int]())):
        counted = families(theirs, layers=layers, heads=numbered, bare=bare, shifted=shifted)
        if counted in tried or (shifted and placed):
            continue
        tried.append(counted)
        try:
            for assignment in assignments(counted, ours, known, limit, counts):
                placed = True
                yield tuple(parse_rule(t.name, layout.source) for t, layout in assignment)
        except Unassignable as nothing:
            problem = problem or nothing
    if problem is not None and not placed:
        raise problem


def _folded(ours: Mapping[str, Parameter]) -> tuple[dict[str, Parameter], dict[str, int]]:
    """Name layers by {i}, since they are alike; return with them of which name there are how many."""
    counts = Counter(folded(name) for name in ours)
    alike = {folded(name): parameter for name, parameter in ours.items()}
    return alike, {name: counts[name] for name in alike if "{i}" in name}


def _error(instance: Instance, canonical: Mapping[str, Array], inputs: tuple[Array, ...], output: Array) -> float:
    instance.weights = dict(canonical)
    want = instance.expected(*inputs)
    if want.shape != output.shape:
        return float("inf")
    error = float(np.abs(output - want).max(initial=0.0)) / max(float(np.abs(want).max(initial=0.0)), 1e-30)
    return error if np.isfinite(error) else float("inf")


def _settle_precision(instance: Instance, error: float) -> None:
    """A float64 result that is right only to float32 precision was computed in float32 somewhere."""
    bound = instance.subject.bound
    bound.fits = error < _near(instance)[1]
    depth = _DEPTH.get(bound.component.name, 1)
    # frequencies in float32 turn the few positions of a probe by little; later ones tell
    least = 1e-12 if bound.variant.positions == "rotary" else tolerance("float64", 4)
    if bound.dtype == "float64" and least < error < ROUNDING * depth:
        bound.precision = "float32"
        what = f"{bound.component.name} computes in float32 somewhere inside"
        bound.notes.append(f"{what} (off by {error:.0e} in float64); judged as float32")


def _relabelled(found: tuple[Rule, ...], first: tuple[Rule, ...]) -> list[str]:
    """Say which parameters turned out not to be what their names suggest."""
    expected = {rule.target: [part.name for part in rule.parts] for rule in first}
    return [
        f"your {rule.target} is used as {', '.join(p.name for p in rule.parts)}"
        for rule in found
        if expected.get(rule.target, names := [part.name for part in rule.parts]) != names
    ]
