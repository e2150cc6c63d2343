"""Build each component once, call it once, and find out where its weights are and how accurately it computes."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import cast

import numpy as np

from conformkit.conformance.assertions.checks import ClauseFailure, NotApplicable
from conformkit.conformance.assertions.draws import Draw
from conformkit.conformance.binding.adapters import adapters
from conformkit.conformance.binding.arguments import Expression
from conformkit.conformance.binding.bound import Bound
from conformkit.conformance.binding.declarations import is_first
from conformkit.conformance.binding.patterns import shapes, to_canonical
from conformkit.conformance.binding.rules import PatternError, Rule
from conformkit.conformance.binding.sizes import NoSizeError
from conformkit.conformance.binding.solve import Unassignable
from conformkit.conformance.driver.errors import DriverError, ImplementationFailure
from conformkit.conformance.probing.constants import constants
from conformkit.conformance.probing.first_results import first_result, may_be_meant, taking_the_first
from conformkit.conformance.probing.head_bias import head_bias, head_bias_note
from conformkit.conformance.probing.kept_graphs import keeps_graphs
from conformkit.conformance.probing.layouts_alike import laid_out_anew
from conformkit.conformance.probing.placements import named_clearly, placements
from conformkit.conformance.probing.rounding import computes_in_float32, imprecision
from conformkit.conformance.subject.component import Instance, Subject
from conformkit.spec.arrays import Array
from conformkit.spec.components import Parameter
from conformkit.spec.tolerances import Precision, tolerance

__all__ = ["EXACTLY", "FITS_FLOAT32", "ROUNDING", "error_of", "probe"]

_FITS = 1e-6
"""Relative error below which no better layout is looked for: far above float64 rounding, far below any mistake."""
FITS_FLOAT32 = 2e-5
"""Relative error up to which the best layout counts as found."""
ROUNDING = 5e-7
"""Relative error that float32 rounding explains in one component, about eight units; more is a mistake."""
EXACTLY = 1e-12
"""Relative error far above float64's own rounding."""
_KEPT_BESIDE = re.compile(r"\w+\(\w+, (tuple|list|dict)\(")
"""A result and, where attention weights may stand, what a derivative by hand keeps: `tuple(ndarray, tuple(…))`."""
_KEEPS_GRAPHS = (
    "the cache of {} keeps the graph of the call before, so that gradients are not judged: right in code that only "
    "generates; to train it, keep `keys.detach()`"
)
_AGAIN = 5.0
"""How many times this error a confirmation may show: other draws round otherwise, a wrong layout is off by far more."""


@np.errstate(all="ignore")  # an implementation may return anything
def probe(
    subject: Subject, dtypes: tuple[str, ...], *, gradients: bool, known: Mapping[str, str], tries: int | None = None
) -> Bound:
    """Return how a component is bound, with what only a trial can show: number format, abilities, weights.

    `known` gives the weights of its parts. `tries` is the maximum number of weight assignments to try, by default
    unlimited. A component that can't be built or called keeps the error as its `failure`.
    """
    component = _Probe(subject)
    try:
        instance = component.first_instance(dtypes)
        instance = component.with_output(instance)
        component.take_together(instance)
        instance = component.as_it_stands(instance)
        instance = component.with_abilities(instance, float32="float32" in dtypes, gradients=gradients)
        instance = component.with_mask_kinds(instance)
        component.tell_polarity(instance)
        instance = component.with_methods(instance)
        instance = component.with_head(instance)
        component.bind_weights(instance, known, tries)
    except DriverError as failure:
        return replace(component.bound, failure=failure)
    except (ClauseFailure, NotApplicable, NoSizeError, PatternError) as problem:
        return replace(component.bound, rules=None, unbound=(str(problem), *getattr(problem, "details", ())))
    return component.bound


class _Probe:
    """One component, and how it is bound as far as that is known; results are kept if a later step fails."""

    def __init__(self, subject: Subject) -> None:
        self.subject = subject
        self.bound = subject.bound

    def learn(self, instance: Instance, bound: Bound) -> Instance:
        """Take over how the component is bound from now on; return the instance with that."""
        self.bound = bound
        return instance.with_bound(bound)

    def first_instance(self, dtypes: tuple[str, ...]) -> Instance:
        """Build in the first number format that the implementation accepts, and call it once."""
        failure: ImplementationFailure | None = None
        for dtype in dtypes:
            self.bound = replace(self.bound, dtype=dtype, precision=cast("Precision", dtype))
            try:
                instance = self.subject.with_bound(self.bound).build(dtype=dtype)
                if self.bound.component.several:
                    instance = self._with_calls(instance)
                instance = self._with_causality(self._called(instance))
            except ImplementationFailure as refused:
                failure = failure or refused
                continue
            before = len(instance.trainable)
            instance.list_again()
            made = self.subject.link.is_torch and len(instance.trainable) > before  # NumPy's may be left by the call
            return self.learn(instance, replace(self.bound, grows=made))
        assert failure is not None
        self.bound = replace(self.bound, dtype="float64", precision="float64")
        raise failure

    def _called(self, instance: Instance) -> Instance:
        """Call it for the first time: without positions (T,) or with another mask than (T, T) if it refuses them."""
        inputs = instance.example_inputs(Draw(0, "first call"), further=0)
        try:
            instance(*inputs)
        except ImplementationFailure:
            if (unplaced := self._without_positions(instance, inputs)) is not None:
                return unplaced
            from conformkit.conformance.probing.mask_trial import accepted_shape  # noqa: PLC0415 - hardly ever needed

            if not (shape := accepted_shape(instance, inputs)):
                self._tell_layout(instance, inputs)
                raise
            note = f"{self.bound.component.name} refuses a mask (T, T), and gets one of shape {shape}"
            shaped = replace(self.bound.mask, shape=shape)
            return self.learn(instance, replace(self.bound, mask=shaped, notes=(*self.bound.notes, note)))
        return instance

    def _tell_layout(self, instance: Instance, inputs: tuple[Array, ...]) -> None:
        """Note that a call works with positions before the batch, which conform.toml may say."""
        config = self.bound.config
        if config.layout is not None or "q" in self.bound.component.inputs:
            return
        turned = replace(self.bound, config=replace(config, layout="sequence first"))
        with suppress(ImplementationFailure, ClauseFailure):
            instance.with_bound(turned)(*inputs)
            name = self.bound.component.name
            note = f"{name} can be called with positions first, (T, B, D), and not with the batch first"
            line = f'layout = "sequence first" under [components.{name}]'
            notes = dict.fromkeys((*self.bound.notes, f"{note}; if that is meant, write {line}"))
            self.bound = replace(self.bound, notes=tuple(notes))

    def _without_positions(self, instance: Instance, inputs: tuple[Array, ...]) -> Instance | None:
        """Return it with positions left at their default, if it then can be called: it may take them as (B, T)."""
        bound = self.bound
        named = {
            theirs: ours
            for theirs, ours in bound.call.named.items()
            if theirs in bound.insisted or ours != Expression("positions")
        }
        if bound.config.call is not None or len(named) == len(bound.call.named):
            return None
        unplaced = replace(bound, call=replace(bound.call, named=named))
        try:
            instance.with_bound(unplaced)(*inputs)
        except ImplementationFailure:
            return None
        return self.learn(instance, unplaced)

    def _with_causality(self, instance: Instance) -> Instance:
        """Find out whether a model that takes a mask needs a causal one."""
        bound = self.bound
        if "ids" not in bound.component.inputs or bound.config.causal or bound.causal == "mask":
            return instance
        if "mask" not in bound.call.names() or bound.component.several:
            return instance
        from conformkit.conformance.probing.mask_trial import is_causal_with_mask  # noqa: PLC0415 - hardly ever needed

        masked = replace(bound, causal="mask")
        if not is_causal_with_mask(instance.with_bound(masked), instance):
            return instance
        note = f"{bound.component.name} hides later ids only if its call has a mask: a causal one is passed"
        return self.learn(instance, replace(masked, notes=(*bound.notes, note)))

    def _with_calls(self, instance: Instance) -> Instance:
        """Find out how masks are passed, and whether a decoder is causal without one."""
        from conformkit.conformance.probing.mask_trial import is_causal_by_itself, mask_forms, own_forms  # noqa: PLC0415

        instance = self.learn(instance, replace(self.bound, masks=mask_forms(instance)))
        instance = self.learn(instance, replace(self.bound, masks=own_forms(instance)))
        if self.bound.config.causal is None and is_causal_by_itself(instance):
            instance = self.learn(instance, replace(self.bound, causal="always"))
        return instance

    def with_output(self, instance: Instance) -> Instance:
        """Judge the first output, unless the file says what it is: another one could hide what the code returns."""
        config = self.bound.config
        if is_first(config.output, self.bound.component.name):
            return instance
        inputs = instance.example_inputs(Draw(0, "outputs"), further=0)
        chosen = instance.unchecked(*inputs)[1]
        other = first_result(instance, inputs)
        if other is None:
            return instance
        name, sentence = self.bound.component.name, "returns another array of the output's size first"
        if not laid_out_anew(other, chosen):
            return self.learn(instance, replace(self.bound, contradicted=may_be_meant(instance, other, chosen)))
        if np.allclose(other.ravel(), chosen.ravel(), equal_nan=True):
            return instance
        if config.others:
            note = f"{name} {sentence}, which conform.toml names and which is not judged"
            return self.learn(instance, replace(self.bound, contradicted=True, notes=(*self.bound.notes, note)))
        note = f'{name} {sentence}: it is judged, unless conform.toml says what it is (others = {{ 0 = "…" }})'
        first = taking_the_first(self.bound)
        return self.learn(instance, replace(first, notes=(*self.bound.notes, note)))

    def take_together(self, instance: Instance) -> None:
        """Find out whether code that is called for each sequence of a batch takes the batch too, with other numbers."""
        config = self.bound.config
        if config.layout != "one sequence":
            return
        inputs = instance.example_inputs(Draw(0, "a batch"), further=0)
        alone = instance(*inputs)
        whole = instance.with_bound(replace(self.bound, config=replace(config, layout=None)))
        try:
            together = whole(*inputs)
        except (ImplementationFailure, ClauseFailure):
            return
        if together.shape == alone.shape and not np.allclose(together, alone, rtol=1e-3, equal_nan=True):
            self.bound = replace(self.bound, splits=True)

    def as_it_stands(self, instance: Instance) -> Instance:
        """Judge what callers of the contract find, where that is something else than what conform.toml calls."""
        if self.bound.causal != "flag" and not (self.bound.by_position or self.bound.by_default):
            return instance
        from conformkit.conformance.probing.defaults import (  # noqa: PLC0415 - often not needed
            as_it_stands,
            methods_as_they_stand,
            with_its_defaults,
        )

        instance = self._learn_anew(instance, as_it_stands(instance.with_bound(self.bound)))
        instance = self._learn_anew(instance, with_its_defaults(instance))
        return self.learn(instance, methods_as_they_stand(instance))

    def _learn_anew(self, instance: Instance, bound: Bound) -> Instance:
        """Take over how it is built and called from now on; if that is another way, look again at what comes first."""
        before = self.bound
        instance = self.learn(instance, bound)
        if (bound.construct, bound.call) == (before.construct, before.call):
            return instance
        fresh = instance.subject.construct(instance.sizes, dtype=instance.dtype)
        fresh.scatter(Draw(0, "outputs as it stands"))
        with suppress(ImplementationFailure):  # without the declared place, whoever judges it finds that
            self.with_output(fresh)
        return instance.with_bound(self.bound)

    def with_abilities(self, instance: Instance, *, float32: bool, gradients: bool) -> Instance:
        """Observe a call: what it returns, in which format, and whether it has modes."""
        instance = self.learn(instance, replace(self.bound, offers={**self.bound.offers, "float32": float32}))
        inputs = instance.example_inputs(Draw(0, "abilities"), further=0)
        outcome = instance.call(*inputs, watch=True)
        weights = self.bound.weights_output
        silent = weights is None and self.bound.config.output is None
        if self.bound.component.name == "ScaledDotProductAttention" and silent:
            several = outcome.structure.startswith(("tuple", "list"))
            weights = 1 if several and not _KEPT_BESIDE.match(outcome.structure) else None
        offers = {
            **self.bound.offers,
            "gradients": gradients,
            "modes": bool(outcome.modes),
            "float64": self.bound.dtype == "float64" and outcome.dtype == "float64",
            "weights": weights is not None,
        }
        instance = self.learn(instance, replace(self.bound, offers=offers, weights_output=weights))
        if not gradients or not keeps_graphs(instance):
            return instance
        note = _KEEPS_GRAPHS.format(self.bound.component.name)
        without = {**self.bound.offers, "gradients": False}
        return self.learn(instance, replace(self.bound, offers=without, notes=(*self.bound.notes, note)))

    def with_mask_kinds(self, instance: Instance) -> Instance:
        """Pass only Boolean masks to attention that refuses others in words, unless its kinds are declared."""
        bound = self.bound
        if bound.component.inputs[:1] != ("q",) or bound.config.mask is not None or not bound.offers["float-masks"]:
            return instance
        from conformkit.conformance.probing.mask_trial import (  # noqa: PLC0415 - core alone has it
            reads_as_boolean,
            refuses_floats,
        )

        if said := refuses_floats(instance):
            note = f"{bound.component.name} refuses a mask of floats, and gets Boolean ones only: {said}"
        elif reads_as_boolean(instance):
            note = f"{bound.component.name} gets Boolean masks only, as its documentation says"
        else:
            return instance
        mask, offers = replace(bound.mask, kinds=("bool",)), {**bound.offers, "float-masks": False}
        return self.learn(instance, replace(bound, mask=mask, offers=offers, notes=(*bound.notes, note)))

    def tell_polarity(self, instance: Instance) -> None:
        """Note that masks seem to be read the other way round, which conform.toml may say: no verdict changes."""
        if self.bound.causal != "mask":
            return
        from conformkit.conformance.probing.mask_trial import other_polarity  # noqa: PLC0415 - not all code takes masks

        if true := other_polarity(instance):
            name, how = self.bound.component.name, {"attend": "visible", "hide": "hidden"}[true]
            note = f"masks of {name} seem inverted: later positions are hidden only where True means {how}"
            line = f'mask = {{ true = "{true}" }} under [components.{name}]'
            self.bound = replace(self.bound, notes=(*self.bound.notes, f"{note}; if that is meant, write {line}"))

    def with_methods(self, instance: Instance) -> Instance:
        """Leave out methods whose results are not those of the contract's methods of these names."""
        if not self.bound.methods:
            return instance
        if "segments" in self.bound.component.inputs:
            instance = self._with_second_head(instance)
            from conformkit.conformance.probing.named_results import by_their_names  # noqa: PLC0415 - BERT's alone

            instance = self.learn(instance, replace(self.bound, methods=by_their_names(instance)))
        from conformkit.conformance.probing.mask_trial import unfit_methods  # noqa: PLC0415 - core does without

        for name, note in unfit_methods(instance):
            methods = {other: method for other, method in self.bound.methods.items() if other != name}
            offers = {**self.bound.offers, name: False}
            self.bound = replace(self.bound, methods=methods, offers=offers, notes=(*self.bound.notes, note))
        return instance.with_bound(self.bound)

    def with_head(self, instance: Instance) -> Instance:
        """Find out what parts a model has of which either is right, if nothing is declared: heads, and their bias."""
        found = head_bias(instance)
        if found is None or found == self.bound.variant.head_bias:
            return instance
        bound = replace(self.bound, variant=self.bound.variant.but(head_bias=found))
        return self.learn(instance, replace(bound, notes=(*bound.notes, head_bias_note(bound, found))))

    def _with_second_head(self, instance: Instance) -> Instance:
        from conformkit.conformance.probing.second_head import second_head, second_head_note  # noqa: PLC0415 - as above

        found = second_head(instance)
        if not found:
            return instance
        variant = self.bound.variant.but(**found)
        bound = replace(self.bound, variant=variant, notes=(*self.bound.notes, *second_head_note(self.bound, found)))
        return self.learn(instance, bound)

    def bind_weights(self, instance: Instance, known: Mapping[str, str], tries: int | None) -> None:
        """Fill it with noise, call it, and find out where its weights are and how accurately it computes."""
        if not instance.subject.link.is_torch:
            instance = self.learn(instance, replace(self.bound, constants=_constants(instance)))
        hidden = tuple(p["name"] for p in instance.counted if self.bound.conceals(p["name"]))
        instance = self.learn(instance, replace(self.bound, concealed=hidden))
        inputs = instance.example_inputs(Draw(0, "weights"), further=0)  # equal lengths: see DET-HISTORY-LENGTH
        instance.scatter(Draw(0, "scatter"))
        output = instance(*inputs)
        if self.bound.config.weights:
            instance = self.learn(instance, replace(self.bound, rules=self.subject.declared))
            instance = self.learn(instance, _declared(instance, inputs, output, known, tries))
        else:
            instance = self.learn(instance, _searched(instance, inputs, output, known, tries))
        if self.bound.precision != "float64" or self.bound.dtype != "float64":
            return
        if self.bound.fits:
            self.bound = _as_precise_as(self.bound, imprecision(instance.with_bound(self.bound)))
        elif self.bound.rules:
            self.bound = replace(self.bound, precision="float32" if computes_in_float32(instance) else "float64")


def _constants(instance: Instance) -> tuple[str, ...]:
    """Return which arrays are no parameters, whether they are ignored or not: ignored ones may hide a parameter."""
    found, bound = constants(instance), instance.subject.bound
    if not bound.config.ignore:
        return found
    opened = replace(bound, config=replace(bound.config, ignore=()))
    return tuple(sorted({*found, *constants(instance.with_bound(opened))}))


def _declared(
    instance: Instance, inputs: tuple[Array, ...], output: Array, known: Mapping[str, str], tries: int | None
) -> Bound:
    """Use the declared weights, which must fit the shapes; what they leave open on both sides is searched for.

    So are parts of which only a prefix is declared, or rules of their own that do not hold here.
    """
    bound, ours = instance.subject.bound, instance.canonical
    listed = {p["name"]: tuple(p["shape"]) for p in instance.listing}
    own = {rule.target for rule in bound.config.weights if not rule.subtree}
    rules = tuple(r for r in bound.rules or () if r.target in own or shapes([r], ours).keys() <= listed.keys())
    bound = replace(bound, rules=rules)
    wanted = shapes(rules, ours)
    wrong = [f"{n} has shape {listed[n]}, conform.toml says {s}" for n, s in wanted.items() if listed.get(n, s) != s]
    absent = [f"{n} is in conform.toml, not in the implementation" for n in wanted if n not in listed]
    unsaid = [f"{p['name']} {tuple(p['shape'])} is not in conform.toml" for p in instance.trainable
              if p["name"] not in wanted]  # fmt: skip
    raw = {name: a.astype(np.float64) for name, a in instance.read_raw().items()}
    if wrong or absent:
        return _without_weights(instance, *wrong, *absent, *unsaid)
    canonical = to_canonical(rules, raw, ours, instance.sizes)
    lacking = [f"{name} is not placed" for name in ours if name not in canonical]
    if lacking and unsaid:
        return _searched(instance.with_bound(bound), inputs, output, known, tries, given=rules)
    if lacking or unsaid:
        return _without_weights(instance, *lacking, *unsaid)
    return _with_precision(instance, bound, error_of(instance, canonical, inputs, output))


def _searched(
    instance: Instance, inputs: tuple[Array, ...], output: Array, known: Mapping[str, str], tries: int | None,
    *, given: tuple[Rule, ...] = (),
) -> Bound:  # fmt: skip
    """Try assignments, the most plausible first, until one reproduces the output, and another output after it.

    They are about what the given rules do not place. Where none does, names are believed if they are clear; a guess is
    not.
    """
    bound, ours, bare = instance.subject.bound, instance.canonical, not instance.subject.link.is_torch
    theirs = {p["name"]: tuple(p["shape"]) for p in instance.trainable}
    raw = {name: a.astype(np.float64) for name, a in instance.read_raw().items()}
    if given:
        said = to_canonical(given, raw, ours, instance.sizes)
        theirs = {name: shape for name, shape in theirs.items() if name not in shapes(given, ours)}
    open_ = {name: parameter for name, parameter in ours.items() if not given or name not in said}
    first: tuple[Rule, ...] | None = None
    best: tuple[float, tuple[Rule, ...]] = (np.inf, ())
    enough, found = _near(instance)
    try:
        for rest in placements(theirs, open_, instance.sizes, known, bare=bare, limit=tries):
            rules = (*given, *rest)
            first = first or rules
            try:
                canonical = to_canonical(rules, raw, ours, instance.sizes)
            except PatternError:  # a candidate that does not fit does not rule out the others
                continue
            error = error_of(instance, canonical, inputs, output)
            if error < min(best[0], found) and not _confirmed(instance, rules, found):
                continue
            if error < best[0]:
                best = (error, rules)
            if error < enough:
                break
    except Unassignable as nothing:
        if first is None:
            return _without_place(instance, nothing)
    if best[0] >= found:
        return _by_name(instance, first or (), theirs, open_, known, given)
    placed = _with_precision(instance, replace(bound, rules=best[1]), best[0])
    renamed = _relabelled(best[1], first) if first is not None and best[1] != first else []
    return replace(placed, notes=(*placed.notes, *renamed))


def _confirmed(instance: Instance, rules: tuple[Rule, ...], found: float) -> bool:
    """Whether these rules reproduce the output for other weights and inputs, too."""
    if not rules:
        return True
    inputs = instance.example_inputs(Draw(0, "confirmed inputs"), further=0)
    output = instance.scatter(Draw(0, "confirmed weights"))(*inputs)
    raw = {name: a.astype(np.float64) for name, a in instance.read_raw().items()}
    canonical = to_canonical(rules, raw, instance.canonical, instance.sizes)
    return error_of(instance, canonical, inputs, output) < _AGAIN * found


def _by_name(
    instance: Instance, first: tuple[Rule, ...], theirs: Mapping[str, tuple[int, ...]], ours: Mapping[str, Parameter],
    known: Mapping[str, str], given: tuple[Rule, ...],
) -> Bound:  # fmt: skip
    """Believe names that are clear although no assignment fits: the code is wrong, or of another variant."""
    bare = not instance.subject.link.is_torch
    if theirs and first:
        named = named_clearly(theirs, ours, instance.sizes, known, bare=bare)
        if named is None:
            return _unsure(instance, first)
        first = (*given, *named)
    return replace(instance.subject.bound, rules=first)


_NO_ORDER = "no order of your weights reproduces your numbers, and their names do not tell which is which"


def _unsure(instance: Instance, guess: tuple[Rule, ...], why: str = _NO_ORDER) -> Bound:
    """Leave the weights unbound, with both lists: no order of them fits, and names do not say which is which."""
    theirs = ", ".join(f"{p['name']} {list(p['shape'])}" for p in instance.trainable)
    ours = ", ".join(f"{name} {list(p.shape)}" for name, p in instance.canonical.items())
    return replace(_without_weights(instance, why, f"yours: {theirs}", f"the definition's: {ours}"), guess=guess)


def _near(instance: Instance) -> tuple[float, float]:
    """Return the errors below which no better layout is searched for, and below which the best one counts as found.

    In half precision a wrong layout is off by several times the rounding error: by a tenth or more.
    """
    if instance.subject.half:
        explained = instance.subject.tolerance(instance.subject.bound.component.depth)
        return explained / 2, explained
    return _FITS, FITS_FLOAT32


def _without_place(instance: Instance, nothing: Unassignable) -> Bound:
    """Name the parameters without a counterpart, on both sides; where each one alone has one, name them all."""
    theirs, ours = (", ".join(names) for names in (nothing.theirs, nothing.ours))
    if not theirs and not ours:
        return _unsure(instance, (), "each of your weights has a place, but not all of them together")
    yours = f"yours, not matched: {theirs}" if theirs else "all of yours are matched, and the definition has more"
    return _without_weights(instance, yours, f"the definition's: {ours or 'all of its own are matched'}")


def _without_weights(instance: Instance, *problems: str) -> Bound:
    """Leave the weights unbound; with as many numbers as the definition has, they cannot be called wrong."""
    same_count = instance.count() == sum(math.prod(p.shape) for p in instance.canonical.values())
    beside = () if same_count else adapters(instance.listing)
    return replace(instance.subject.bound, rules=None, unbound=problems, same_count=same_count, adapters=beside)


def error_of(instance: Instance, canonical: Mapping[str, Array], inputs: tuple[Array, ...], output: Array) -> float:
    """Return how far an output is from the definition's with these weights, relative to its largest number."""
    instance.weights = dict(canonical)
    want = instance.expected(*inputs)
    if want.shape != output.shape:
        return float("inf")
    error = float(np.abs(output - want).max(initial=0.0)) / max(float(np.abs(want).max(initial=0.0)), 1e-30)
    return error if np.isfinite(error) else float("inf")


def _with_precision(instance: Instance, bound: Bound, error: float) -> Bound:
    """Say how well the definition fits; a float64 result right only to float32 precision was computed in float32."""
    bound = replace(bound, fits=error < _near(instance)[1], error=error)
    depth = bound.component.depth
    # float32 frequencies change the few positions of a probe only slightly; later ones show it
    least = EXACTLY if bound.variant.positions == "rotary" else tolerance("float64", 4)
    if bound.dtype != "float64" or not least < error < ROUNDING * depth:
        return bound
    return replace(bound, precision="float32", notes=(*bound.notes, _coarse(bound, error)))


def _as_precise_as(bound: Bound, error: float) -> Bound:
    """Say how precise it is where no mistake is so small: one that computes in float32 somewhere is judged so."""
    bound = replace(bound, error=max(bound.error, error))
    if not EXACTLY < error < ROUNDING * bound.component.depth:
        return bound
    return replace(bound, precision="float32", notes=(*bound.notes, _coarse(bound, error)))


def _coarse(bound: Bound, error: float) -> str:
    """Say how far it is off, and what can be that little: nothing tells these causes apart."""
    causes = "a step in float32, a constant of few digits, or a small ε that the definition does not have"
    return f"{bound.component.name} is off by {error:.0e} in float64, as by {causes}; judged as float32"


def _relabelled(found: tuple[Rule, ...], first: tuple[Rule, ...]) -> list[str]:
    """Note which parameters are not what their names suggest."""
    expected = {rule.target: [part.name for part in rule.parts] for rule in first}
    return [
        f"your {rule.target} is used as {', '.join(p.name for p in rule.parts)}"
        for rule in found
        if expected.get(rule.target, names := [part.name for part in rule.parts]) != names
    ]
