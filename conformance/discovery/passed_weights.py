"""Functions that get their weights as arguments: who makes the weights, or their shapes, guessed by names.

`attention_apply(params, x, num_heads)` beside `attention_init(rng, d_model)`, or `feed_forward(x, W1, b1, W2, b2)`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from conformkit.conformance.binding.aliases import meaning
from conformkit.conformance.binding.parameters import PARAMETERS, USUAL
from conformkit.conformance.discovery.calling import NEEDED, Call, call_of
from conformkit.conformance.discovery.items import Item
from conformkit.conformance.discovery.meanings import constant, is_mask, is_settings, meant, sizes_of, snake_case
from conformkit.conformance.discovery.settings_objects import made_of
from conformkit.spec.components import Component

__all__ = ["Weighted", "is_whole", "pairs", "takes_weights", "weighted"]

_INPUTS = {"inputs", "input", "inp", "hidden", "hidden_states", "h"}
"""Further names of what is read."""
_FED = {"in", "input", "inputs", "hidden", "token", "tokens", "features", "embedded", "data", "batch"}
_IDS = {"indices", "ids", "tokens", "idx"}
_STATES = {"features", "states", "activations", "embeddings", "vectors", "sequence", "seq", "x"}
_OF_WEIGHTS = {"weight", "weights", "bias", "proj", "kernel", "table", "num", "n", "size", "dim"}
"""Words in the names of what a function reads, and of what it does not."""
_LAYERS = {"blocks", "layers"}
"""Names of weights that elsewhere are numbers of layers."""
_MAKES = {"init", "initialize", "initialise", "create", "make", "new", "random", "get", "build"}
_SAYS_NOTHING = {*_MAKES, "apply", "forward", "fwd", "fn", "fun", "params", "parameters", "weights", "state", "layer",
                 "self", "multi", "head", "causal", "transformer"}  # fmt: skip
_WHOLE = {"model", "gpt", "gpt2", "lm", "transformer", "network", "net"}
"""What is left of the names of a whole model's functions."""
_SHORT = {"attn": "attention", "mha": "attention", "multihead": "attention", "multiheadattention": "attention",
          "ffn": "mlp", "ff": "mlp", "feed": "mlp", "feedforward": "mlp"}  # fmt: skip
_LISTS = ("blocks", "layers", "h")
"""Names of lists of blocks in the weights of a model."""
_KEYS = {"MultiHeadAttention": ("attn", "attention", "mha", "self_attn", "self_attention"),
         "FeedForward": ("mlp", "ffn", "ff", "feed_forward")}  # fmt: skip
"""Names of parts in the weights of a block."""
_NUMBERS = {"theta", "rope_theta", "rotary_base", "rope_base", "eps"}
"""Names of numbers that a function needs besides its weights."""
_RANDOM = {"rng": "rng", "generator": "rng", "randomstate": "rng", "random": "rng", "key": "seed", "seed": "seed",
           "prngkey": "seed", "rngkey": "seed"}  # fmt: skip
_VECTOR = re.compile(r"^(b|be|bias|g|gamma|beta|ln|norm|scale|shift|offset|gain)(?![a-z]*w)|bias|gamma|beta|(^|_)b\d*$")
_OF_NORM = re.compile(r"^(g|be|ln|norm|gamma|beta|scale|shift|gain|offset)")
_INNER = re.compile(r"(^|_|w|b|fc|lin|linear|dense)(1|3)($|_)|up|gate|fc(?!_?2)|expand|_in$|hidden")
_ATTENDS = re.compile(r"^(w|b)?_?(q|k|v|o)$|query|key|value|attn|w_?out", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Weighted:
    """Who makes the weights of a function, as conform.toml has it, and how the function is called."""

    parameters: Any
    call: Call
    doubt: str


def pairs(component: Component, construct: Mapping[str, Any]) -> Iterator[Weighted]:
    """Yield ways to use a function that gives a pair of functions, init and apply, as JAX's stax has them."""
    inputs = tuple(name for name in component.inputs if name != "mask")
    width = ["d_model"] if "d_model" in construct.values() and "x" in inputs else []
    for source, shape in product(("rng", "seed"), ([], [["2", "5", *width]])):
        yield Weighted([source, *shape], Call((PARAMETERS, *inputs)), "it gives a pair of functions, init and apply")


def is_whole(item: Item) -> bool:
    """Whether the name of a function says no more than that it computes: `forward`, `apply`."""
    return not _stem(item.name)


def takes_weights(component: Component, item: Item) -> bool:
    """Whether a function reads the component's input, and takes what only weights can be."""
    if item.kind != "function" or not component.arguments or component.several:
        return False
    return bool(_input_of(component, item)) and bool(_weights_of(component, item))


def _input_of(component: Component, item: Item) -> str:
    """Return the argument that is read; nothing where none or several may be."""
    names = [p["name"] for p in item.call or () if p["required"]]
    found = [name for name in names if _is_input(component, name)]
    found = found or [name for name in names if _is_fed(component, name)]
    return found[0] if len(found) == 1 else ""


def _is_input(component: Component, name: str) -> bool:
    known = meaning(name, component.inputs) and not meant(name, sizes_of(component))
    return bool(known) or name.lower() in _INPUTS


def _is_fed(component: Component, name: str) -> bool:
    """Whether a name says that something goes in: `in_features`, which elsewhere is a width, or `token_ids`."""
    words = set(snake_case(name).split("_"))
    reads_ids = "ids" in component.inputs
    return bool(words & _FED) and bool(words & (_IDS if reads_ids else _STATES)) and not words & _OF_WEIGHTS


def weighted(component: Component, item: Item, items: Sequence[Item]) -> Iterator[Weighted]:
    """Yield ways to make the weights of a function and to call it, the most plausible first."""
    weights = _weights_of(component, item)
    whole = [name for name in weights if name in USUAL] if len(weights) == 1 else []
    call = _call(component, item, weights, whole)
    held = [p["name"] for p in item.call or () if p["required"] and _holds_settings(p["name"])]
    if held and (made := made_of(component, item, items)) is not None:
        call = replace(call, named={**call.named, **dict.fromkeys(held, made)}, spare=())
    own = list(_makers(component, item, items))
    for made, said in own or (_parts_of_wholes(component, item, items) if whole else ()):
        yield Weighted(made, call, said)
    if not whole:
        for shapes in _shapes(component, weights):
            yield Weighted(shapes, call, "the shapes of its weights are guessed by their names")


def _weights_of(component: Component, item: Item) -> list[str]:
    """Return the required arguments that are no input, no size, no mask and no flag."""
    sizes = (*sizes_of(component), "num_heads", "causal")
    read = _input_of(component, item)
    return [
        name for name in (p["name"] for p in item.call or () if p["required"])
        if name != read and not is_mask(name) and not _holds_settings(name)
        and (name in {*USUAL, *_LAYERS} or not (_is_input(component, name) or meant(name, sizes) or _is_given(name)))
    ]  # fmt: skip


def _holds_settings(name: str) -> bool:
    """Whether an argument is an object that holds the sizes, and not the weights, which some call `params` too."""
    return is_settings(name) and name not in USUAL


def _is_given(name: str) -> bool:
    """Whether an argument is a number or positions, which the contract's call has not: `max_seq_len`, `theta`."""
    return name in NEEDED or name in _NUMBERS or bool(meant(name, ("block_size",)))


def _call(component: Component, item: Item, weights: Sequence[str], whole: Sequence[str]) -> Call:
    """Return the call with everything by name, without the weights that go by their own names."""
    signature = item.call or ()
    wanted = [name for name in (*sizes_of(component), "num_heads") if name not in {"dropout", "causal"}]
    read = _input_of(component, item)
    required = [p["name"] for p in signature if p["required"] and p["name"] not in {*weights, read}]
    sizes = {name: meant(name, wanted) for name in required}
    sizes = {name: ours for name, ours in sizes.items() if ours and not _is_input(component, name)}
    sizes |= {name: constant(name, component) for name in required if name not in {*sizes, *NEEDED} and _is_given(name)}
    rest = [p for p in signature if p["name"] not in weights and p["name"] not in sizes]
    rest.sort(key=lambda p: p["name"] != read)
    found = call_of(component, rest)
    places = [p["name"] for p in rest if p["kind"] in {"positional", "keyword"}]
    named = dict(zip(places, found.positional, strict=False))
    return replace(found, positional=(), named={**dict.fromkeys(whole, PARAMETERS), **named, **found.named, **sizes})


def _makers(component: Component, item: Item, items: Sequence[Item]) -> Iterator[tuple[dict[str, Any], str]]:
    """Yield the functions whose names say that they make these weights, with their arguments."""
    for other in items:
        if other.kind != "function" or other is item or not _makes(component, other, item):
            continue
        given = _arguments(component, other, items)
        if given is not None:
            yield {"object": other.path, "arguments": given}, f"its weights are made by {other.name}"


def _parts_of_wholes(component: Component, item: Item, items: Sequence[Item]) -> Iterator[tuple[dict[str, Any], str]]:
    """Yield entries of what makes a block or a model: the part that is called like the function, or as is usual."""
    keys = list(dict.fromkeys((item.name.rpartition(".")[2], *_KEYS.get(component.name, ()))))
    for other in items:
        words = _stem(other.name) - {"block"}
        is_block = not words and bool(_words(other.name) & {"block", "layer"})
        if other.kind != "function" or not _words(other.name) & _MAKES or words - _WHOLE:
            continue
        given = _arguments(component, other, items)
        of_block = component.name != "TransformerBlock"
        if given is None or (is_block and not of_block):
            continue
        places = keys if is_block else [f"{where}.0{f'.{key}' if of_block else ''}" for where in _LISTS for key in keys]
        for place in dict.fromkeys(places):
            made = {"object": other.path, "arguments": given, "output": place}
            yield made, f"its weights are taken from {place} of what {other.name} makes"


def _makes(component: Component, other: Item, item: Item) -> bool:
    words = _words(other.name)
    if not words & _MAKES:
        return False
    theirs, own = _stem(other.name), _stem(item.name)
    if component.is_language_model and not theirs - _WHOLE and not own - _WHOLE - {"apply"}:
        return True
    return bool(theirs) and theirs == own


def _words(name: str) -> set[str]:
    return set(snake_case(name.rpartition(".")[2]).split("_"))


def _stem(name: str) -> set[str]:
    return {_SHORT.get(word, word) for word in _words(name) - _SAYS_NOTHING if word} - {"forward", ""}


def _arguments(component: Component, maker: Item, items: Sequence[Item]) -> dict[str, Any] | None:
    """Return the arguments of a function that makes weights; None if one has no value."""
    found: dict[str, Any] = {}
    for parameter in maker.call or ():
        name = parameter["name"]
        if _holds_settings(name) and (made := made_of(component, maker, items)) is not None:
            found[name] = made
            continue
        value = meant(name, [size for size in sizes_of(component) if size != "dropout"])
        value = value or (_RANDOM.get(name.lower().replace("_", "")) if parameter["required"] else None)
        value = constant(name, component) if value is None and parameter["required"] else value
        if value is None and parameter["required"]:
            return None
        if value is not None:
            found[name] = value
    return found


def _shapes(component: Component, names: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Yield shapes by the names of the arguments: matrices (in, out), then (out, in)."""
    if component.name not in {"MultiHeadAttention", "FeedForward", "TransformerBlock", "SelfAttention"}:
        return
    found = {name: _shape(component, name) for name in names}
    yield found
    yield {name: shape[::-1] for name, shape in found.items()}


def _shape(component: Component, name: str) -> list[str]:
    """Return the shape of one array, (in, out) for a matrix."""
    words = snake_case(name)
    attends = component.name in {"MultiHeadAttention", "SelfAttention"} or bool(_ATTENDS.search(name))
    inner = not attends and bool(_INNER.search(words)) and not _OF_NORM.search(words)
    if _VECTOR.search(words):
        return ["d_ff" if inner else "d_model"]
    if attends:
        return ["d_model", "3 * d_model" if "qkv" in words else "d_model"]
    return ["d_model", "d_ff"] if inner else ["d_ff", "d_model"]
