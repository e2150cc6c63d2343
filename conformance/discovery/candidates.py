"""Which of an implementation's names may be which component, ranked by name and signature."""

from __future__ import annotations

import re
from collections.abc import Sequence

from conformkit.conformance.binding.aliases import meaning
from conformkit.conformance.binding.translations import in_english
from conformkit.conformance.discovery.calling import call_of
from conformkit.conformance.discovery.construction import NO_PARTS, Parts, ways
from conformkit.conformance.discovery.items import Item
from conformkit.conformance.discovery.meanings import meant, passed, required_sizes, snake_case
from conformkit.conformance.discovery.passed_weights import is_whole, takes_weights
from conformkit.spec.components import Component

__all__ = ["LIKELY", "UNFINISHED", "named", "near_miss", "ranked"]

LIKELY = 3
"""From this rank on, the name identifies the component, whatever its numbers are."""
UNFINISHED = "is not implemented yet"
"""How `near_miss` ends for code that is still to be written."""
_EXACT = 10
_NAMES = {
    "ScaledDotProductAttention": r"scaled|dot_?product|sdpa|attend|attention|attn",
    "SelfAttention": r"^(single_?)?(head_?)?(self_?)?(attention_?)?(head)?$",
    "MultiHeadAttention": r"multi_?head|mha|attention|attn|mixer|(^|_)(msa|mla)",
    "FeedForward": r"feed_?f|ffn|mlp|(^|_)ff(wd)?($|_)|position_?wise|swi_?glu|geglu",
    "PositionalEncoding": r"posit|pos_?enc|pos_?emb|sinus|wave|^pe$",
    "TransformerBlock": r"block|(decoder|encoder|transformer|make|build|^)_?layer$",
    "TinyTransformerLM": r"lm(_?head_?model)?$|model|gpt|transformer$|llama|language|(^|_)net(work)?$|^decoder$",
    "CrossAttention": r"cross|multi_?head|mha|attention|attn",
    "TokenEmbedding": r"(^|token_?|input_?|word_?)embed(ding)?s?$",
    "EncoderLayer": r"(enc|encoder)_?(layer|block)$",
    "DecoderLayer": r"(dec|decoder)_?(layer|block)$",
    "Encoder": r"encoder(_?stack)?$",
    "Decoder": r"decoder(_?stack)?$",
    "Transformer": r"transformer$|seq_?2_?seq|encoder_?decoder|translat|nmt|conditional_?gen",
    "BertEmbeddings": r"embedding",
    "BertModel": r"bert|encoder$|model$",
    "BertForPreTraining": r"pre_?train|masked|mlm|lm$|heads?$|bert",
    "PatchEmbedding": r"patch",
    "VisionTransformer": r"vi_?t($|for)|vision|image|classif|model$|transformer$",
}
_NOT = {
    "ScaledDotProductAttention": r"multi|mask|flash",
    "MultiHeadAttention": r"block|layer$|model|scaled",
    "FeedForward": r"block|layer$|model",
    "PositionalEncoding": r"apply|rotat|freq|rotary|rope|ro_?pe($|_)|alibi|relative",
    "TransformerBlock": r"norm|attention|attn|mlp|lm",
    "TinyTransformerLM": r"block|layer$|norm|attention|attn|mlp|config|train|output",
    "Decoder": r"encoder",
    "BertModel": r"layer$|block$|embed|attention|pool|config|lm$|head|pre_?train|masked",
    "BertForPreTraining": r"layer$|block$|embed|attention|pool|config|^mlm_?head",
    "VisionTransformer": r"layer$|block$|embed|attention|config|head$|encoder$",
}
_SMALL = re.compile(r"(norm|normalization|config|cfg|args|arguments|settings|options|cache|linear|dense|optimizer)$")
"""How names end of what is no component, such as a norm or an object of settings."""
_MIXTURE = re.compile(r"moe|mixture|experts")
"""In names of networks made of several, in each of which a plain one is found as well."""
_MAX_CANDIDATES = 8
_SIZES_OF_A_MODEL = 4
"""So many of a model's sizes show that a function makes one, whatever it is called."""
_WEIGHTS_PASSED = "is a function with its weights as arguments: write a wrapper class that keeps them as attributes"
_NO_INPUT = "is a function that takes no input: write a class that is called with one"


def ranked(
    component: Component, items: Sequence[Item], taken: Sequence[str], parts: Parts = NO_PARTS
) -> list[tuple[int, Item]]:
    """Return at most eight candidates for this component with their ranks, the most plausible first."""
    found = [(_rank(component, item), item) for item in items if item.path not in taken and _may_be(component, item)]
    found = [(rank, item) for rank, item in found if rank >= 0 and ways(component, item, items, parts)]
    return sorted(found, key=lambda pair: (not _is_mixture(component, pair[1].name), -pair[0]))[:_MAX_CANDIDATES]


def near_miss(component: Component, items: Sequence[Item], taken: Sequence[str], refusals: Sequence[str]) -> str:
    """Return why an object with this component's name can't be it, and what to write; empty if there is none."""
    for item in items:
        if item.path in taken or not component.arguments or not named(component, item.name):
            continue
        spare = call_of(component, item.call).spare if item.kind == "class" else ()
        if spare:
            more = f"its call needs {', '.join(spare)}, which the contract does not have"
            return f"{item.path} has its name, but {more}: write a wrapper class whose call creates them"
        if item.kind == "function" and (_reads(component, item) or _sized(component, item) < 2):
            return f"{item.path} {_WEIGHTS_PASSED if _reads(component, item) else _NO_INPUT}"
        why = next((text for text in refusals if text.startswith(f"{item.path}:")), "")
        if why and "NotImplementedError" in why:
            return f"{item.path} {UNFINISHED}"
        if why and item.kind == "class":
            return f"{why}: declare with construct and call how it is built and called"
    return ""


def _reads(component: Component, item: Item) -> bool:
    """Whether a function's first argument is the component's input, not a size."""
    first = next((p["name"] for p in item.call or () if p["kind"] == "positional"), "")
    return bool(meaning(first, component.inputs)) and not meant(first, required_sizes(component))


def _may_be(component: Component, item: Item) -> bool:
    if item.kind in {"mapping", "numbers"}:
        return False
    if component.name == "ScaledDotProductAttention":
        return item.kind == "function" and _takes_three(item)
    if item.kind == "function":
        sized = _sized(component, item) > 1 or _only_sizes(component, item) or takes_weights(component, item)
        if component.is_language_model and is_whole(item) and takes_weights(component, item):
            return True
        makes_it = component.is_language_model and _sized(component, item) >= _SIZES_OF_A_MODEL
        return sized and (named(component, item.name) or (makes_it and not _reads(component, item)))
    if _SMALL.search(snake_case(item.name)) and not named(component, item.name):
        return False
    return item.kind == "class" and not call_of(component, item.call).unknown


def _takes_three(item: Item) -> bool:
    names = [p["name"] for p in item.call or () if p["kind"] == "positional"]
    return len(names) > 2 and sorted(meaning(n, "qkv") or n[-1:] for n in names[:3]) == ["k", "q", "v"]


def _sized(component: Component, item: Item) -> int:
    """Return how many of the component's required arguments a factory takes."""
    known, _, _ = passed([p for p in item.call or () if p["kind"] in {"positional", "keyword"}], component)
    return len(set(known.values()) & set(required_sizes(component)))


def _only_sizes(component: Component, item: Item) -> bool:
    """Whether a function requires the model's width and nothing that is no size: `FeedForward(dim, mult=4)`."""
    usable = [p for p in item.call or () if p["kind"] in {"positional", "keyword"}]
    known, _, unknown = passed(usable, component)
    return not unknown and any(p["required"] and known.get(p["name"]) == "d_model" for p in usable)


def named(component: Component, name: str) -> bool:
    """Whether this name is that of the component, in whatever language."""
    return any(_is_name(component, one) for one in (name, *in_english(name)))


def _is_name(component: Component, name: str) -> bool:
    words = snake_case(name)
    forbidden = _NOT.get(component.name)
    if forbidden and re.search(forbidden, words):
        return False
    return bool(re.search(_NAMES[component.name], words) or re.search(_NAMES[component.name], name.lower()))


def _is_mixture(component: Component, name: str) -> bool:
    return component.name == "FeedForward" and bool(_MIXTURE.search(name.lower()))


def _rank(component: Component, item: Item) -> int:
    is_named = named(component, item.name) or _is_mixture(component, item.name)
    rank = _EXACT * (item.name in {component.export, component.name}) + 4 * is_named
    if component.name == "SelfAttention":
        return rank if rank and "num_heads" not in _meanings(item) else -1
    if component.is_language_model:
        rank += 2 * any(p["name"] in {"idx", "ids", "input_ids", "tokens"} for p in item.call or ())
    return rank + (component.name != "ScaledDotProductAttention" and item.kind == "class")


def _meanings(item: Item) -> set[str]:
    return {meant(p["name"], ("num_heads",)) or "" for p in item.construct or ()}
