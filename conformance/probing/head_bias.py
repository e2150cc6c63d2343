"""Whether the head of a model has a bias: how many numbers one more id of the vocabulary adds.

GPT-2's and Llama's heads have none, the handout's has one. Both are right, so what is not declared is found out. The
number of parameters tells it whatever else the model does: each id has one row of d_model numbers in each table, and
one number in a bias.
"""

from __future__ import annotations

import math

from conformkit.conformance.binding.bound import Bound
from conformkit.conformance.binding.toml_text import choice_line
from conformkit.conformance.subject.component import Instance
from conformkit.spec.variants import described

__all__ = ["head_bias", "head_bias_note"]

_MORE = 6
_VOCABULARY = {"TinyTransformerLM": "vocab_size", "Transformer": "tgt_vocab_size", "BertForPreTraining": "vocab_size"}


def head_bias(instance: Instance) -> bool | None:
    """Whether the head has a bias; None if it has no head, or something is declared, or its numbers show neither.

    Raises DriverError.
    """
    bound = instance.subject.bound
    vocabulary = _VOCABULARY.get(bound.component.name)
    if vocabulary is None or "head_bias" in bound.declared:
        return None
    few = instance.sizes[vocabulary]
    larger = instance.subject.sizes(**{**instance.sizes, vocabulary: few + _MORE})
    if larger[vocabulary] == few:
        return any(math.prod(p["shape"]) == few for p in instance.trainable)
    other = instance.subject.construct(larger, dtype=instance.dtype)
    if len(other.listing) != len(instance.listing):
        other.make_lazy_parameters()
    added = other.count() - instance.count()
    each, rest = divmod(added, larger[vocabulary] - few)
    single = each % instance.sizes["d_model"]
    return None if rest or single > 1 else single == 1


def head_bias_note(bound: Bound, found: bool) -> str:
    """Return a note about an undeclared choice that is judged as it is."""
    line, what = choice_line("head_bias", found), described("head_bias", found)
    return f"{bound.component.name} has {what}, as many have, and is judged so; `{line}` under [variant] declares it"
