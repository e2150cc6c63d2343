"""How calls with several arrays reach an implementation that declares nothing: guessed from names, then from order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from conformkit.conformance.binding.aliases import meaning
from conformkit.conformance.binding.arguments import Arguments, Expression
from conformkit.conformance.binding.call_arguments import means_nothing
from conformkit.conformance.binding.masks import KNOWN, MASKS
from conformkit.conformance.binding.selectors import Selector
from conformkit.conformance.binding.signatures import Signature, SignatureMismatch, call_from, named_from
from conformkit.spec.components import Argument

__all__ = ["BoundMethod", "call_of", "insisted_on", "insists", "left_out", "takes_apart", "unread"]


@dataclass(frozen=True, slots=True)
class BoundMethod:
    """A method of the contract: its own name, its arguments, those without a default, what to take of the result.

    A name with a colon is that of a function.
    """

    name: str
    call: Arguments
    insisted: frozenset[str] = field(default_factory=frozenset)
    output: Selector = None
    unread: Mapping[str, str] = field(default_factory=dict)
    """See `unread`."""

    def insists(self, ours: str) -> bool:
        """Whether an argument of the contract is required there, whatever its name is."""
        named = {
            theirs for theirs, value in self.call.named.items() if isinstance(value, Expression) and value.text == ours
        }
        return bool((named | {ours}) & self.insisted)


_MASK = {
    "src_mask", "padding_mask", "pad_mask", "self_attn_mask", "self_attention_mask", "src_padding_mask", "enc_mask",
    "encoder_mask", "slf_attn_mask", "key_mask", "src_pad_mask", "source_mask",
}  # fmt: skip
"""The name of a mask that is the only one."""


def call_of(signature: Signature, inputs: Sequence[str], options: Sequence[Argument] = ()) -> Arguments:
    """Map the arrays of a call and its options by name, those with unknown names by order.

    Raises SignatureMismatch if one of them has no argument, or a required argument of theirs has no value.
    """
    if _reads_one_memory(signature, inputs):
        found = call_of(signature, ["memory" if name == "key" else name for name in inputs if name != "value"], options)
        return _keys_for_memory(found)
    apart = takes_apart(signature)
    known = {name: Expression(value) for name, value in KNOWN.items() if _has(signature, name)}
    if "src_key_padding_mask" in known and "mask" in inputs:
        known["src_key_padding_mask"] = Expression("padding")
    required = [name for name in inputs if name not in MASKS]
    masks = [name for name in inputs if name in MASKS and not apart]
    if "src_mask" in masks and "memory_mask" not in masks and "tgt_mask" in masks:
        masks.append("memory_mask")  # a model whose call takes it gets the source's
    rest = [_named(p, masks) for p in signature if p["name"] not in known]
    required += [option.name for option in options if option.required]
    contract = [*required, *masks, *(option.name for option in options if not option.required)]
    try:
        found = named_from(rest, contract, set(required))
    except SignatureMismatch:
        if options:
            raise
        found = call_from(rest, contract, set(required))
        _check_places(rest, found, required)
    _check_by_name(found, options)
    named = {_own(signature, name, masks): value for name, value in found.named.items()}
    return Arguments(found.positional, {**named, **known, **_causality(signature, inputs, apart=apart)})


def _reads_one_memory(signature: Signature, inputs: Sequence[str]) -> bool:
    """Whether keys and values come from one argument: (x, memory), with or without a mask."""
    if "value" not in inputs:
        return False
    sources = {meaning(p["name"], ("query", "key", "value")) for p in signature}
    arrays = [p for p in signature if p["required"] and not _is_mask(p["name"])]
    named = any(meaning(p["name"], ("memory",)) for p in signature if not _is_mask(p["name"]))
    return not {"key", "value"} <= sources and len(arrays) <= 2 and (named or len(arrays) == 2)


def _is_mask(name: str) -> bool:
    return name in KNOWN or name in _MASK or meaning(name, MASKS) is not None


def _keys_for_memory(arguments: Arguments) -> Arguments:
    key = {"memory": Expression("key")}
    return Arguments(
        tuple(key.get(getattr(value, "text", ""), value) for value in arguments.positional),
        {name: key.get(getattr(value, "text", ""), value) for name, value in arguments.named.items()},
    )


def takes_apart(signature: Signature) -> bool:
    """Whether padding is passed separately from other masks, by the names of torch or of lectures."""
    return any(KNOWN.get(p["name"], p["name"]) != p["name"] for p in signature)


def insisted_on(signature: Signature | None) -> frozenset[str]:
    """Return the arguments without a default, or with an end id as default, which would end texts early."""
    return frozenset(p["name"] for p in signature or () if p["required"] or _ends_by_default(p))


def left_out(signature: Signature, given: Arguments) -> list[str]:
    """Return the arguments without a default that are not passed."""
    places = [p["name"] for p in signature if p["kind"] == "positional"]
    passed = {*places[: len(given.positional)], *given.named}
    return [p["name"] for p in signature if p["required"] and p["name"] not in passed]


def unread(signature: Signature | None, given: Arguments) -> dict[str, str]:
    """Return what each argument gets, where one that may be a mask gets nothing; empty if there is no such one.

    That is one which is None by default and whose name says nothing else: it gets an empty text.
    """
    places = [p["name"] for p in signature or () if p["kind"] == "positional"]
    passed = {**dict(zip(places, given.positional, strict=False)), **given.named}
    free = (p["name"] for p in signature or () if p["default"] == "None" and not p["required"])
    found = {name: "" for name in free if name not in passed and means_nothing(name)}
    texts = {name: value.text for name, value in passed.items() if isinstance(value, Expression)}
    return {**texts, **found} if found else {}


def insists(signature: Signature, call: Arguments, ours: str) -> bool:
    """Whether an argument without a default is passed this input of the contract."""
    places = [p["name"] for p in signature if p["kind"] == "positional"]
    passed = {**dict(zip(places, call.positional, strict=False)), **call.named}
    insisted = {p["name"] for p in signature if p["required"]}
    return any(isinstance(a, Expression) and a.text == ours for name, a in passed.items() if name in insisted)


def _ends_by_default(parameter: Mapping[str, Any]) -> bool:
    return meaning(parameter["name"], ("eos_id",)) is not None and parameter.get("default") not in {None, "None"}


def _has(signature: Signature, name: str) -> bool:
    return any(p["name"] == name for p in signature)


def _named(parameter: Mapping[str, Any], masks: Sequence[str]) -> Mapping[str, Any]:
    """Call a mask `mask` if it is the only one."""
    alone = "mask" in masks and parameter["name"] in _MASK
    return {**parameter, "name": "mask"} if alone else parameter


def _own(signature: Signature, name: str, masks: Sequence[str]) -> str:
    if name == "mask" and "mask" in masks and not _has(signature, "mask"):
        return str(next((p["name"] for p in signature if p["name"] in _MASK), name))
    return name


def _check_places(signature: Signature, found: Arguments, required: Sequence[str]) -> None:
    """Raise SignatureMismatch if an array would, by position only, go to an argument named like a mask."""
    positional = [p["name"] for p in signature if p["kind"] == "positional"]
    placed = dict(zip((getattr(value, "text", "") for value in found.positional), positional, strict=False))
    if misplaced := [ours for ours in required if _is_mask(placed.get(ours, ""))]:
        raise SignatureMismatch(misplaced, [], {})


def _check_by_name(found: Arguments, options: Sequence[Argument]) -> None:
    """Raise SignatureMismatch if an option went to an argument that may mean something else."""
    ours = {option.name for option in options}
    doubtful = {
        theirs: value.text for theirs, value in found.named.items() if value.text in ours - {meaning(theirs, ours)}
    }
    if doubtful:
        raise SignatureMismatch(list(doubtful.values()), list(doubtful), {})


def _causality(signature: Signature, inputs: Sequence[str], *, apart: bool) -> dict[str, Expression]:
    """If padding is separate, the other mask of the target hides later positions."""
    if not apart or not {"tgt_mask"} & set(inputs):
        return {}
    found = (p["name"] for p in signature if meaning(p["name"], ["tgt_mask"]) and p["name"] not in KNOWN)
    return {name: Expression("causality") for name in list(found)[:1]}
