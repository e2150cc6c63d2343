"""Whether a BERT has the head for whole texts: the pooler, and in pretraining the next sentence. Numbers tell.

RoBERTa has neither, a BERT for tokens no pooler, a masked-language model round a whole BERT a pooler that nothing
reads. All are right, so what is not declared is found out.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from itertools import combinations

from conformkit.conformance.binding.bound import Bound
from conformkit.conformance.binding.toml_text import choice_line
from conformkit.conformance.subject.component import Instance
from conformkit.spec.variants import described

__all__ = ["second_head", "second_head_note"]

_CHOICES = {"BertModel": ("pooler",), "BertForPreTraining": ("next_sentence_head", "pooler")}
"""By component, the choices that may be undeclared; the first one is told."""


def second_head(instance: Instance) -> dict[str, bool]:
    """Return the choices that its number of parameters shows; nothing if they are as declared, or it shows neither.

    A bias of the other head, which need not be declared either, may be missing at the same time.
    """
    bound = instance.subject.bound
    biases = [{}, {"head_bias": not bound.variant.head_bias}] if "head_bias" not in bound.declared else [{}]
    for changes in _changes(bound):
        if any(_has_parameters_of(instance, {**changes, **bias}) for bias in biases):
            return changes
    return {}


def _changes(bound: Bound) -> Iterator[dict[str, bool]]:
    """Yield changes of the choices that are not declared: none, the first one, the second one, both.

    `pooler = false` for the whole code may be about BERT alone, whose heads then have one. That the head for the next
    sentence has none is a choice to declare.
    """
    name = bound.component.name
    free = [choice for choice in _CHOICES.get(name, ()) if choice not in bound.declared]
    if name == "BertForPreTraining" and "pooler" in bound.declared - bound.config.variant.keys():
        free.append("pooler")
    for number in range(len(free) + 1):
        for changed in combinations(free, number):
            changes = {choice: not getattr(bound.variant, choice) for choice in changed}
            after = bound.variant.but(**changes)
            unpooled = name == "BertForPreTraining" and after.next_sentence_head and not after.pooler
            if not (changed and unpooled):
                yield changes


def second_head_note(bound: Bound, found: Mapping[str, bool]) -> Iterator[str]:
    """Yield a note about an undeclared choice that is judged as it is."""
    for choice in found.keys() & {_CHOICES[bound.component.name][0]}:
        line, what = choice_line(choice, found[choice]), described(choice, found[choice])
        yield f"{bound.component.name} has {what}, as some have, and is judged so; `{line}` under [variant] declares it"


def _has_parameters_of(instance: Instance, changes: Mapping[str, bool]) -> bool:
    bound = instance.subject.bound
    parameters = bound.component.parameters(instance.sizes, bound.variant.but(**changes))
    return instance.count() == sum(math.prod(parameter.shape) for parameter in parameters.values())
