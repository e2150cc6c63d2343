"""Whether a BERT has the head for whole texts: the pooler, and in pretraining the next sentence. Numbers tell.

RoBERTa has neither, a BERT for tokens no pooler. All are right, so what is not declared is found out.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from conformkit.conformance.binding.bound import Bound
from conformkit.conformance.subject.component import Instance
from conformkit.spec.variants import described, written

__all__ = ["second_head", "second_head_note"]

_CHOICE = {"BertModel": "pooler", "BertForPreTraining": "next_sentence_head"}


def second_head(instance: Instance) -> dict[str, bool]:
    """Return the choice that its number of parameters shows; nothing if it is as declared, or shows neither.

    A bias of the other head, which need not be declared either, may be missing at the same time.
    """
    bound = instance.subject.bound
    choice = _CHOICE.get(bound.component.name)
    if choice is None or choice in bound.declared:
        return {}
    flipped = {choice: not getattr(bound.variant, choice)}
    biases = [{}, {"head_bias": not bound.variant.head_bias}] if "head_bias" not in bound.declared else [{}]
    if any(_has_parameters_of(instance, bias) for bias in biases):
        return {}
    return flipped if any(_has_parameters_of(instance, {**flipped, **bias}) for bias in biases) else {}


def second_head_note(bound: Bound, found: Mapping[str, bool]) -> Iterator[str]:
    """Yield a note about an undeclared choice that is judged as it is."""
    for choice, value in found.items():
        line, what = written(choice, value), described(choice, value)
        yield f"{bound.component.name} has {what}, which is right as well; `{line}` under [variant] declares it"


def _has_parameters_of(instance: Instance, changes: Mapping[str, bool]) -> bool:
    bound = instance.subject.bound
    parameters = bound.component.parameters(instance.sizes, bound.variant.but(**changes))
    return instance.count() == sum(math.prod(parameter.shape) for parameter in parameters.values())
