"""Choices that were made but not declared: the results are those of another variant of the definition.

Searched for if an implementation does not conform. No verdict changes: an undeclared choice counts as a mistake, and a
declaration would make it right. A choice is reported only if that variant of the definition reproduces the numbers of
the implementation from its weights, at two sizes, and the declared variant does not; biases also where the parameters
show them (layers.py), since code can be wrong besides them. Components whose clauses hold are as declared.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import Any

from conformkit.conformance.assertions.checks import ClauseFailure, NotApplicable
from conformkit.conformance.binding.rules import PatternError
from conformkit.conformance.binding.sizes import NoSizeError
from conformkit.conformance.binding.toml_text import choice_line
from conformkit.conformance.diagnosis import (
    search_experts,
    search_families,
    search_latent,
    search_rare,
    search_relative,
    search_rotary,
    search_window_base,
)
from conformkit.conformance.diagnosis.inactive_choices import OF_QK_NORM, distinct, effective, without_effect
from conformkit.conformance.diagnosis.layers import variant_of_layers
from conformkit.conformance.diagnosis.looked_for import (
    ANYWHERE,
    LAYERS_OF_STACKS,
    RARE_SHAPING,
    SHAPING,
    STACKS,
    every,
    of_topic,
    rare,
    usual,
)
from conformkit.conformance.diagnosis.variant_trial import FEW_PLACEMENTS, Trial, takes_pad_id
from conformkit.conformance.driver.errors import DriverError, WorkerLost
from conformkit.conformance.engine.implementation import Implementation
from conformkit.conformance.engine.results import Result, Undeclared, Verdict
from conformkit.conformance.subject.component import Subject
from conformkit.spec.choices.record import IN_SCORES
from conformkit.spec.clauses import clause
from conformkit.spec.components import PARTS
from conformkit.spec.components import component as component_of
from conformkit.spec.variants import FAMOUS, FREE, LATENTS, VIT, Variant, alternatives

__all__ = ["ANYWHERE", "Search", "Trials", "searched"]

_SEARCHED_FIRST = {
    "TransformerBlock": ("MultiHeadAttention", "FeedForward"),
    "TinyTransformerLM": ("TransformerBlock", "MultiHeadAttention", "FeedForward"),
    "EncoderLayer": ("CrossAttention",),
    "DecoderLayer": ("CrossAttention", "EncoderLayer"),
    "Transformer": ("CrossAttention", "EncoderLayer", "DecoderLayer"),
    "BertModel": ("BertEmbeddings",),
    "BertForPreTraining": ("BertEmbeddings", "BertModel"),
}
"""By component, those whose choices are its own, too, and are looked for before."""
_SIZES = (
    {"d_model": 48, "num_heads": 12, "d_ff": 28},
    {"d_model": 48, "num_heads": 24, "d_ff": 20, "pad_id": 2},
)
"""Numbers of heads with different divisors: two sizes distinguish `2` from `num_heads // 6`, and from `pad_id + 1`."""
_ONE_VOCABULARY = {"src_vocab_size": 13, "tgt_vocab_size": 13}
_CONSIDERED = 4000
_COMPUTED = 300
_NEARLY = 0.01
_FAR_BETTER = 0.1
_RARE_COMPUTED = 4000
_NEAR_FAMILIES = 2000
_OF_A_LATENT = 6
_RANKED = 8
_ASSIGNED = 16
"""Limits of the search in one component, in variants; with RANKED, every assignment of parameters is tried.

ASSIGNED are tried for each variant that is near a known model. Of variants with rare choices, RARE_COMPUTED
are tried in a run, which looks for choices where code is wrong, and all for a draft; NEAR_FAMILIES near presets.
NEARLY is how far numbers may be off, relative to the largest, for one more change to be tried, and FAR_BETTER how much
less another ε must be off where none is exact.
"""
Fits = Callable[[Variant], bool]
Trials = dict[tuple[int, tuple[tuple[str, int], ...]], Trial]
"""By identity of a bound component and sizes; another search takes them up, with all distances that were computed."""
_TROUBLE = (DriverError, ClauseFailure, NotApplicable, NoSizeError, PatternError)


def searched(
    implementation: Implementation, results: Iterable[Result] | None = None, *,
    far: Container[str] = ANYWHERE, trials: Trials | None = None,
) -> Search:  # fmt: skip
    """Look in all components for choices that the numbers show and conform.toml does not; see `Search`."""
    search = Search(results, far=far, trials=trials)
    for subject in implementation.subjects():
        search.look_at(subject)
    return search


class Search:
    """Goes through the components in building order; a whole has the choices of its parts.

    With results, only components with failed clauses are examined, and the wholes that contain findings. Rare
    choices, of which there are thousands together, are looked for in the components of `far` alone.
    """

    def __init__(
        self, results: Iterable[Result] | None, *, far: Container[str] = ANYWHERE, trials: Trials | None = None
    ) -> None:
        judged = None if results is None else list(results)
        self._red = None if judged is None else set(_red(judged))
        """Components of which some clause fails, here or where it blocks another one; None: all."""
        self._blocked = {r.clause.component for r in judged or () if r.verdict is Verdict.BLOCKED}
        self._found: dict[str, Variant | None] = {}
        """By component, the variant whose numbers it gives; None if there is none."""
        self._declared: dict[str, Variant] = {}
        self._free: dict[str, frozenset[str]] = {}
        """By component, the choices of which either is right, since none is declared."""
        self._known: dict[str, str] = {}
        self._far = far
        self.left: set[str] = set()
        """Components whose numbers no near variant gives, and which `far` does not contain."""
        self.trials: Trials = {} if trials is None else trials
        self.suggested: dict[str, Sequence[Variant]] = {}
        """By component, variants that a look at one of its calls suggests: tried before all others."""
        self.inexplicable: set[str] = set()
        """Components whose numbers no variant gives, as that look says: no others are tried."""
        self.by_layers: set[str] = set()
        """Components whose numbers no variant gives, with the parameters of the one that was found."""
        self._lost = False
        """Whether its process ended or did not answer: then the search stops."""

    def found(self, component: str) -> Variant | None:
        """Return the variant whose numbers a component gives; None if there is none, or it was not examined."""
        return self._found.get(component)

    def _has_tables(self) -> bool:
        """Whether some component has a table of relative positions, or is declared to have one."""
        return any(
            v is not None and v.positions == "relative" for v in (*self._found.values(), *self._declared.values())
        )

    def known(self) -> dict[str, str]:
        """Return the weight assignments found for parts."""
        return dict(self._known)

    def fork(self) -> Search:
        """Return an independent copy of this search."""
        other = Search(None)
        other._found, other._declared, other._known = dict(self._found), dict(self._declared), dict(self._known)
        other._free = dict(self._free)
        other.suggested, other.inexplicable = self.suggested, self.inexplicable
        return other

    def look_at(self, subject: Subject) -> None:
        """Find the variant of a component, unless a part of it has none or it has no choices of its own."""
        name = subject.name
        if not self.examines(name):
            return
        self._declared[name] = subject.variant
        self._free[name] = frozenset(FREE) - subject.bound.declared
        self._found[name] = None
        if self._lost or any(self._found.get(part, subject.variant) is None for part in _SEARCHED_FIRST.get(name, ())):
            return
        if not self._in_question(subject):
            if name in self._blocked and not subject.bound.fits:
                return  # something else may be wrong with it
            self._found[name] = subject.variant
            self._known |= {rule.target: rule.source for rule in subject.bound.rules or ()}
            return
        wide = search_rotary.needs_width(self._with_parts(name, subject.variant))
        self._try(subject, self._variant, search_rotary.WIDE[0] if wide else _SIZES[0])
        narrow = self.found(name)
        turned = narrow is not None and narrow.positions == "rotary" and not wide  # few pairs show no scaling
        if narrow is None and name not in self._far:
            return
        if (narrow is None or turned) and "rotary_scaling" in rare(name):
            self._try(subject, self._rotary_variant, search_rotary.WIDE[0])
            self._found[name] = self.found(name) or narrow

    def examines(self, name: str) -> bool:
        """Whether it looks at this component: also at a stack of which no layer was, such as one of torch's layers."""
        return name in ANYWHERE or (name in STACKS and STACKS[name] not in self._found)

    def _try(self, subject: Subject, search: Callable[[Trial], Variant | None], sizes: Mapping[str, int]) -> None:
        """Find the variant of a component at these sizes."""
        try:
            fitting = subject.bound.rules if subject.bound.fits else None  # nearly right: numbers may hide in rounding
            known = {**self._known, **{rule.target: rule.source for rule in fitting or ()}}
            key = (id(subject.bound), tuple(sizes.items()))
            if key not in self.trials:
                self.trials[key] = _trial(subject, known, sizes)
            trial = self.trials[key]
            self._found[subject.name] = found = search(trial)
            if found is not None:
                self._known |= {rule.target: rule.source for rule in trial.rules(found, trial.close) or ()}
        except WorkerLost:
            self._lost = True
        except _TROUBLE:
            return

    def _in_question(self, subject: Subject) -> bool:
        """Whether one of its clauses fails, its weights are nowhere, or some part differs from what is declared."""
        name = subject.name
        if self._red is None or name in self._red or subject.bound.rules is None:
            return True
        return name in _SEARCHED_FIRST and bool(self._changes())

    def _variant(self, trial: Trial) -> Variant | None:
        """Return the variant whose numbers it gives: the declared one, another one, or none."""
        found = self._giving(trial)
        return found and self._with_nearest_eps(trial, found)

    def _giving(self, trial: Trial) -> Variant | None:
        """Return a variant whose numbers it gives, if only up to what one computation in float32 explains."""
        declared = trial.subject.variant
        if trial.gives(declared, trial.exact):
            return declared
        loose = declared if trial.gives(declared, trial.close) else None
        suggested = self._first(trial, self.suggested.get(trial.subject.name, ()), loose)
        if suggested is not None or trial.subject.name in self.inexplicable:
            return suggested or loose
        near = list(islice(self._candidates(trial), _COMPUTED))
        found = self._first(trial, near, loose)
        found = found or self._first(trial, self._beside_the_nearest(trial, near), loose)
        for rarer in (self._mixture, self._with_two_bases, self._latent, self._with_table):
            found = found or rarer(trial, loose)
        if not found and trial.subject.name not in self._far:
            self.left.add(trial.subject.name)
            return loose or self._of_layers(trial)
        if not found and "window" in rare(trial.subject.name):
            trial.forget_ranks()
            found = self._first(trial, islice(self._families(trial), _NEAR_FAMILIES), loose)
        if not found:
            trial.forget_ranks()
            most = None if self._red is None else _RARE_COMPUTED
            found = self._first(trial, islice(self._rare_candidates(trial), most), loose)
        if not found and not loose and self._red is None and trial.subject.bound.component.decodes:
            found = self._near(trial, trial.close)
        return found or loose or self._of_layers(trial)

    def _with_nearest_eps(self, trial: Trial, found: Variant) -> Variant:
        """Return this variant, or it with another ε of norms that gives the numbers far better.

        What is computed in float32 on the way, such as a table of positions, hides which one is exact.
        """
        name = trial.subject.name
        if "norm_eps" not in usual(name) or "norm_eps" in self._settled(name) or trial.gives(found, trial.exact):
            return found
        others = [found.but(norm_eps=eps) for eps in _usual_values("norm_eps", found.norm_eps)]
        return trial.nearest(others, _FAR_BETTER * trial.distance(found)) or found

    def _of_layers(self, trial: Trial) -> Variant | None:
        """Return the variant whose biases it has, where it is bound to none: what else is wrong is judged under it."""
        name, bound = trial.subject.name, trial.subject.bound
        if self._red is None or bound.rules is not None or bound.same_count:
            return None
        found = variant_of_layers(trial, self._with_parts(name, trial.subject.variant), usual(name))
        if found is not None:
            self.by_layers.add(name)
        return found

    def _beside_the_nearest(self, trial: Trial, tried: Sequence[Variant]) -> Iterator[Variant]:
        """Yield what gives nearly its numbers with one more choice changed, such as ε."""
        nearest = trial.nearest(tried, _NEARLY)
        name = trial.subject.name
        own = [choice for choice in usual(name) if choice not in self._settled(name)] if nearest else []
        found = (nearest.but(**{c: v}) for c in own if nearest for v in _usual_values(c, getattr(nearest, c)))
        yield from filter(trial.has_parameters_of, distinct(found, name))

    def _mixture(self, trial: Trial, loose: Variant | None) -> Variant | None:
        """Return the variant with other experts whose numbers it gives; None if there is none."""
        name = trial.subject.name
        base, settled = self._with_parts(name, trial.subject.variant), self._settled(name)
        if "experts" not in every(name) or "experts" in settled:
            return None
        own = [choice for choice in usual(name) if choice not in settled]
        candidates = list(distinct(search_experts.mixtures(base, own, trial.lacking), name))
        for error in (trial.exact,) if loose else (trial.exact, trial.close):
            for variant in candidates:
                if trial.gives(variant, error) and (least := self._confirmed(trial, variant, error)):
                    return least
        return None

    def _latent(self, trial: Trial, loose: Variant | None) -> Variant | None:
        """Return the variant with a latent whose numbers attention gives, at two sizes; None if there is none."""
        if trial.subject.name != "MultiHeadAttention":
            return None
        base = self._with_parts(trial.subject.name, trial.subject.variant)
        candidates = list(
            distinct(search_latent.latents(base, trial.trainable, trial.sizes, trial.lacking), "MultiHeadAttention")
        )
        for error in (trial.exact,) if loose else (trial.exact, trial.close):
            for variant in candidates:
                if (rules := trial.rules(variant, error, _OF_A_LATENT)) is not None:
                    known = {rule.target: rule.source for rule in rules}
                    if found := _at_other_sizes(trial, variant, known):
                        return found
        return None

    def _with_table(self, trial: Trial, loose: Variant | None) -> Variant | None:
        """Return the variant with relative positions whose numbers it gives; None if there is none."""
        name = trial.subject.name
        base = self._with_parts(name, trial.subject.variant)
        if name == "CrossAttention":  # it has no table, and comes before what has one
            return self._first(trial, [base.but(score_scale=not base.score_scale)], loose)
        if "relative_buckets" not in every(name):
            return None
        own = [choice for choice in usual(name) if choice not in {*self._settled(name), "positions"}]
        for table in search_relative.with_tables(base, trial.trainable, trial.sizes, name):
            candidates = distinct(_in_order(table, own, own, trial.has_parameters_of), name)
            fitting = islice(filter(trial.has_parameters_of, candidates), _COMPUTED)
            if found := self._first(trial, fitting, loose):
                return found
        return None

    def _with_two_bases(self, trial: Trial, loose: Variant | None) -> Variant | None:
        """Return the variant with a base of its own in layers with the window; None if there is none.

        Its parts, which are layers with the window, get both bases: they show one.
        """
        name = trial.subject.name
        if not trial.subject.bound.component.is_language_model:
            return None
        base, settled = self._with_parts(name, trial.subject.variant), self._settled(name)
        own = [
            choice
            for choice in (*usual(name), *(c for c in rare(name) if c in of_topic("model")))
            if choice not in settled
        ]
        candidates = search_window_base.two_bases(base, own, trial.has_parameters_of)
        found = self._first(trial, islice(distinct(candidates, name), _COMPUTED), loose)
        if found:
            parts = {
                part: self._found.get(part) for part in _SEARCHED_FIRST[name] if "window_rotary_base" in every(part)
            }
            both = {
                part: search_window_base.in_all_layers(known, found)
                for part, known in parts.items()
                if known is not None
            }
            self._found.update(both)
        return found

    def _rotary_variant(self, trial: Trial) -> Variant | None:
        """Return the variant with rare choices about rotary positions whose numbers it gives; None if there is none."""
        name = trial.subject.name
        base = self.found(name) or self._with_parts(name, trial.subject.variant)
        settled = self._settled(name)
        own = [choice for choice in usual(name) if choice not in settled]
        if base.positions != "rotary" and "positions" in settled:
            return None
        if trial.gives(base, trial.exact) and self._confirmed(trial, base, trial.exact):
            return base
        found = search_rotary.rotary_variants(base, own, trial.has_parameters_of)
        return self._first(trial, (effective(variant, name) for variant in found), None)

    def _near(self, trial: Trial, error: float) -> Variant | None:
        """Return the first variant near a well-known model whose numbers it gives; None if there is none.

        It takes seconds: for drafts only, of a model none of whose parts was found.
        """
        for variant in islice(self._near_famous(trial), _COMPUTED):
            if trial.gives(variant, error, _ASSIGNED) and (least := self._confirmed(trial, variant, error, _ASSIGNED)):
                return least
        return None

    def _first(self, trial: Trial, candidates: Iterable[Variant], loose: Variant | None) -> Variant | None:
        """Return the first of these variants whose numbers it gives, exactly if the declared one gives them loosely."""
        tried: list[Variant] = []
        for variant in candidates:
            tried.append(variant)
            if trial.gives(variant, trial.exact, 1) and (least := self._confirmed(trial, variant, trial.exact)):
                return least
        trial.rank(tried[:_RANKED])
        for error in (trial.exact,) if loose else (trial.exact, trial.close):
            for variant in tried:
                if trial.gives(variant, error, 1) and (least := self._confirmed(trial, variant, error)):
                    return least
        return None

    def _confirmed(self, trial: Trial, variant: Variant, error: float, most: int = FEW_PLACEMENTS) -> Variant | None:
        """Return a variant without changes that have no effect; None if it does not fit at other sizes."""
        least = self._least(trial, variant, error, most)
        if "sinusoidal" == trial.subject.variant.positions != least.positions and trial.starts_from_sinusoids(least):
            return None  # the declared choice, only trainable
        known = {rule.target: rule.source for rule in trial.rules(least, error, most) or ()}
        sizes = search_rotary.WIDE[1] if search_rotary.needs_width(least) else _SIZES[1]
        again = _another(trial, {**trial.known, **known}, sizes)
        return least if again is None or again.gives(least, again.close, most) else None

    def _candidates(self, trial: Trial) -> Iterator[Variant]:
        """Yield variants that would have its parameters, those with the fewest undeclared choices first."""
        name, declared = trial.subject.name, trial.subject.variant
        base = self._with_parts(name, declared)
        own = [c for c in usual(name) if c not in self._settled(name)]
        found = _in_order(base, own, usual(name), trial.has_parameters_of)
        yield from filter(trial.has_parameters_of, distinct(found, name, effective(declared, name)))

    def _rare_candidates(self, trial: Trial) -> Iterator[Variant]:
        """Yield variants that would have its parameters and have some rare choice."""
        name = trial.subject.name
        base, settled = self._with_parts(name, trial.subject.variant), self._settled(name)
        settled |= set(of_topic("rotary"))
        own, others = ([c for c in choices if c not in settled] for choices in (usual(name), rare(name)))
        if others:
            yield from distinct(
                search_rare.rare_variants(
                    base, own, others, trial.has_parameters_of, trial.shown, partial(without_effect, name=name)
                ),
                name,
            )

    def _families(self, trial: Trial) -> Iterator[Variant]:
        """Yield variants that would have its parameters and are those of a family but for a number or two."""
        name = trial.subject.name
        base, settled = self._with_parts(name, trial.subject.variant), self._settled(name)
        own = [choice for choice in every(name) if choice not in settled]
        yield from distinct(
            search_families.near_families(
                base, own, trial.has_parameters_of, trial.shown, partial(without_effect, name=name)
            ),
            name,
        )

    def _near_famous(self, trial: Trial) -> Iterator[Variant]:
        """Yield variants that would have its parameters and are near a well-known model, the nearest first.

        Far from what is declared there are too many; but what people write is a known model with a change or two.
        """
        name = trial.subject.name
        base, settled = self._with_parts(name, trial.subject.variant), self._settled(name)
        own = [c for c in every(name) if c not in settled and c not in of_topic("rotary")]
        shapes = [choice for choice in own if choice in SHAPING | RARE_SHAPING]
        others = [choice for choice in own if choice in usual(name) and choice not in {*shapes, "norm_eps"}]
        known = dict.fromkeys(base.but(**{c: getattr(famous, c) for c in own}) for famous in FAMOUS.values())
        shaped = (v for famous in known for v in search_rare.changed(famous, shapes, 2) if trial.has_parameters_of(v))
        yield from distinct((v for one in shaped for v in search_rare.changed(one, others, 1)), name)

    def _settled(self, name: str) -> set[str]:
        """Return the choices shown by the parts of a component, except whether positions are added."""
        parts = [part for part in _SEARCHED_FIRST.get(name, ()) if self._found.get(part) is not None]
        return {choice for part in parts for choice in every(part) if self._shows(part, choice)} - {"positions"}

    def _shows(self, part: str, choice: str) -> bool:
        """Whether a component's numbers show a choice.

        Those of attention show norms only where it has some; limits are reached where no norm precedes the network.
        """
        if choice == "gate_limit" and self._found.get("FeedForward") is not None:
            return part == "FeedForward"
        found = self._found.get(part)
        hidden = choice in OF_QK_NORM and found is not None and found.qk_norm == "none" and not found.has_latent
        return not (part == "MultiHeadAttention" and hidden)

    def _with_parts(self, name: str, declared: Variant) -> Variant:
        """Return the declared variant with the choices that other components have shown."""
        changes: dict[str, Any] = {}
        for part, choice in self._changes():
            if choice in every(name):
                found = self._found[part]
                changes[choice] = getattr(found, choice)
        return declared.but(**changes)

    def _least(self, trial: Trial, variant: Variant, error: float, most: int) -> Variant:
        """Take back each change without which the numbers are the same."""
        declared = trial.subject.variant
        for choice in (choice for choice in every(trial.subject.name) if choice not in LATENTS):
            without = variant.but(**{choice: getattr(declared, choice)})
            if without != variant and trial.gives(without, error, most):
                variant = without
        return variant

    def _changes(self) -> list[tuple[str, str]]:
        """Return component and choice wherever the finding differs from the declaration."""
        return [
            (name, choice)
            for name, found in self._found.items()
            for choice in every(name)
            if found is not None and getattr(found, choice) != getattr(self._declared[name], choice)
        ]

    def entries(self) -> list[Undeclared]:
        """Return one entry per choice, or one per component if components differ in it; none for free choices."""
        entries: dict[tuple[str, Any, str], Undeclared] = {}
        for name, choice in self._changes():
            if choice in self._free[name] or (choice in search_relative.BESIDE_A_TABLE and not self._has_tables()):
                continue
            actual = getattr(self._found[name], choice)
            declared = getattr(self._declared[name], choice)
            table = f"components.{name}.variant" if self._others_differ(name, declared, choice) else "variant"
            key = (choice, actual, table)
            entries.setdefault(key, Undeclared(name, choice, declared, actual, table, choice_line(choice, actual)))
        return list(entries.values())

    def _others_differ(self, part: str, declared: Any, choice: str) -> bool:
        """Whether another component, which shows this choice, has it as declared.

        The ε of a layer is that of the stacks made of it, where it shows in the last digits only.
        """
        actual = getattr(self._found[part], choice)
        showing = [name for name in self._found if choice in every(name) and self._shows(name, choice)]
        if choice == "norm_eps" and part in LAYERS_OF_STACKS:
            showing = [name for name in showing if part not in PARTS.get(name, ())]
        if choice == "positions":
            turns = bool(IN_SCORES & {declared, actual})
            showing = [n for n in showing if (n == "PositionalEncoding") != turns or component_of(n).is_language_model]
        found = [variant for name in showing if (variant := self._found[name]) is not None]
        return any(getattr(variant, choice) != actual for variant in found)


def _red(results: Iterable[Result]) -> Iterator[str]:
    """Yield the components of clauses that fail, and of those that block others."""
    for result in results:
        if result.verdict.red:
            yield result.clause.component
        if result.blocked_by:
            yield clause(result.blocked_by).component


def _trial(subject: Subject, known: Mapping[str, str], sizes: Mapping[str, int]) -> Trial:
    """Try a component at these sizes; one that has one table for both languages refuses two vocabularies."""
    try:
        return Trial.of(subject, known, **sizes)
    except DriverError:
        if subject.name != "Transformer":
            raise
        return Trial.of(subject, known, **sizes, **_ONE_VOCABULARY)


def _another(trial: Trial, known: Mapping[str, str], sizes: Mapping[str, int]) -> Trial | None:
    """Try the component at other sizes; None if there are none."""
    sizes = {name: size for name, size in sizes.items() if name != "pad_id" or takes_pad_id(trial.subject)}
    try:
        again = Trial.of(trial.subject, known, **sizes)
    except _TROUBLE:
        return None
    return again if again.sizes != trial.sizes else None


def _at_other_sizes(trial: Trial, variant: Variant, known: Mapping[str, str]) -> Variant | None:
    """Return a variant with a latent whose widths are right at other sizes, too; as it is if there are none."""
    again = _another(trial, {**trial.known, **known}, search_latent.OTHER_SIZES)
    if again is None:
        return variant
    alike = {name: getattr(variant, name) for name in ("norm", "norm_bias", "norm_eps", "output_bias", "positions")}
    others = search_latent.latents(variant, again.trainable, again.sizes, again.lacking)
    for other in distinct(others, trial.subject.name):
        found = search_latent.generalized(variant, other, trial.sizes, again.sizes)
        if found and all(getattr(other, n) == value for n, value in alike.items()) and again.gives(other, again.close):
            return found
    return None


def _in_order(base: Variant, own: Sequence[str], all_of_them: Sequence[str], fits: Fits) -> Iterator[Variant]:
    """Yield a base, its single changes, known models, then fitting choices of the component, the nearest first.

    Choices that add or remove parameters come first: few of them give the right number of parameters.
    """
    yield base
    for choice in dict.fromkeys([*own, *all_of_them]):
        values = _usual_values(choice, getattr(base, choice))
        yield from (base.but(**{choice: value}) for value in sorted(values, key=lambda v: v == "rotary"))
    for famous in (*FAMOUS.values(), *([VIT] if "pooling" in all_of_them else [])):
        yield base.but(**{choice: getattr(famous, choice) for choice in own})
        yield base.but(**{choice: getattr(famous, choice) for choice in all_of_them})
    shaping = [choice for choice in own if choice in SHAPING]
    shaped = [v for v in islice(search_rare.changed(base, shaping, values=_usual_values), _CONSIDERED) if fits(v)]
    others = [choice for choice in own if choice not in SHAPING or choice == "positions"]
    for variant in shaped:
        yield from islice(search_rare.changed(variant, others, values=_usual_values), _COMPUTED)


def _usual_values(choice: str, value: Any) -> tuple[Any, ...]:
    """Return the other usual values of a choice."""
    return tuple(other for other in alternatives(choice, value) if search_rare.is_usual(choice, other))
