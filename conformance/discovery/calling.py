"""How to call a candidate: inputs by position; masks, flags and positions by name."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import takewhile
from typing import Any

from conformkit.conformance.binding.aliases import meaning
from conformkit.conformance.discovery.meanings import is_mask
from conformkit.spec.components import Component

__all__ = ["NEEDED", "Call", "call_of", "masked_by", "numbered", "without_a_flag"]

_TARGETS = {"targets", "target", "labels", "label", "y", "tgt_ids", "target_ids"}
_FIXED = {"use_cache": False, "need_weights": False, "start_pos": 0, "past_len": 0}
_LENGTHS = {"valid_lens", "valid_len", "valid_lengths", "lengths", "lens", "seq_lens"}
NEEDED: Mapping[str, Any] = {
    **dict.fromkeys(("layer", "layer_idx", "layer_id", "layer_index", "offset", "start", "pos_offset", "position"), 0),
    **dict.fromkeys(("cache", "kv_cache", "past", "past_key_value", "past_key_values", "layer_past"), "None"),
    **dict.fromkeys(("input_pos", "positions"), "positions"),
    **dict.fromkeys(("position_ids", "pos_ids", "token_positions"), "position_ids"),
    **dict.fromkeys(("padding_mask", "key_padding_mask", "pad_mask", *sorted(_LENGTHS)), "None"),
}  # fmt: skip
"""Values for arguments without a default that the contract's call has no use for, and what numbers positions."""
_TABLES = re.compile(r"cos|sin|freq|rope|rot|angle|position_emb|pos_emb|phase", re.IGNORECASE)
"""Names of tables of a rotation."""
_MAX_MASK_GUESSES = 4
"""So many arguments of unknown names are tried as a mask."""
_AT_LEAST = 2
"""Arguments called like queries, keys or values that make it attention of three inputs."""


@dataclass(frozen=True, slots=True)
class Call:
    """Arguments of the call as written in conform.toml.

    `mask` and `flag` are the names of arguments that take a mask or a boolean for causality, `required` says that the
    mask can't be omitted. `spare` are unknown arguments without a default.
    """

    positional: tuple[str, ...]
    named: dict[str, Any] = field(default_factory=dict)
    mask: str = ""
    flag: str = ""
    required: bool = False
    spare: tuple[str, ...] = ()
    targets: str = ""
    """The argument that takes the targets of a model."""
    lengths: str = ""
    """The argument that says how many keys each query sees."""
    tables: tuple[str, ...] = ()
    """Arguments for tables of a rotation that are None by default."""
    open: tuple[str, ...] = ()
    """Arguments that are None by default and whose names say nothing: one may take a mask."""

    @property
    def unknown(self) -> tuple[str, ...]:
        """Unknown arguments without a default, besides tables that a model may hand to its parts."""
        return tuple(name for name in self.spare if not _TABLES.search(name))

    def written(self, *, mask: bool = False, flag: bool = False, targets: bool = False) -> list[Any]:
        """Return the value of `call = `, with the mask, the flag or the targets passed."""
        named = dict(self.named)
        named |= {self.mask: "mask"} if mask and self.mask else {}
        named |= {self.flag: "causal"} if flag and self.flag else {}
        named |= {self.targets: "ids"} if targets else {}
        return [*self.positional, *([named] if named else [])]


def call_of(component: Component, signature: Sequence[Mapping[str, Any]] | None) -> Call:
    """Return how to call an object with this signature as the component."""
    inputs = tuple(name for name in component.inputs if name != "mask")
    if signature is None:
        return Call(inputs)
    if inputs == ("q", "k", "v"):
        inputs = _in_their_order(inputs, signature)
    usable = [p for p in signature if p["kind"] in {"positional", "keyword"}]
    positional = [p for p in usable if p["kind"] == "positional"]
    first = inputs
    if len(inputs) == 1:
        first = inputs * max(1, _apart(positional))
    rest = [p for p in usable if p not in positional[: len(first)]]
    mask = next((p for p in rest if is_mask(p["name"])), None)
    flag = next((p["name"] for p in rest if meaning(p["name"], ["causal"]) and p is not mask), "")
    named = {p["name"]: _FIXED[p["name"]] for p in rest if p["name"] in _FIXED}
    named |= {p["name"]: NEEDED[p["name"]] for p in rest if p["required"] and p["name"] in NEEDED and p is not mask}
    known = {*named, flag, mask["name"] if mask else ""}
    spare = tuple(p["name"] for p in rest if p["required"] and p["name"] not in known)
    targets = next((p["name"] for p in rest if p["name"] in _TARGETS), "") if inputs == ("ids",) else ""
    lengths = next((p["name"] for p in rest if p["name"] in _LENGTHS), "")
    required = bool(mask and mask["required"])
    known |= {targets, lengths, *NEEDED}
    open_ = tuple(p["name"] for p in rest if p["default"] == "None" and p["name"] not in known)
    tables = tuple(name for name in open_ if _TABLES.search(name) and inputs == ("x",))
    may_mask = tuple(name for name in open_ if name not in tables)[:_MAX_MASK_GUESSES]
    return Call(first, named, mask["name"] if mask else "", flag, required, spare, targets, lengths, tables, may_mask)


def _in_their_order(inputs: tuple[str, ...], signature: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """Return queries, keys and values in the order in which a function takes them: `attention(K, Q, V)`."""
    names = [p["name"] for p in signature if p["kind"] == "positional"][: len(inputs)]
    found = tuple(meaning(name, inputs) or name[-1:].lower() for name in names)
    return found if sorted(found) == sorted(inputs) else inputs


def numbered(call: Call) -> Iterator[Call]:
    """Yield the call, and the call with the other form of positions: for each text, or once for all."""
    yield call
    for one, other in (("positions", "position_ids"), ("position_ids", "positions")):
        if one in call.named.values():
            yield replace(call, named={name: other if value == one else value for name, value in call.named.items()})


def without_a_flag(call: Call, signature: Sequence[Mapping[str, Any]] | None) -> Call:
    """Return the call of attention with masks in which nothing is hidden that no mask hides: `causal=True` is off."""
    on = any(p["name"] == call.flag and p["default"] == "True" for p in signature or ())
    return replace(call, named={**call.named, call.flag: False}) if on else call


def masked_by(call: Call, name: str) -> Call:
    """Return the call with an argument whose name says nothing as the mask."""
    return replace(call, mask=name, open=())


def _apart(positional: Sequence[Mapping[str, Any]]) -> int:
    """Return how many inputs come first that are queries, keys and values in any order; 0 if it is one input."""
    letters = [_letter(p["name"]) for p in positional[:3]]
    run = list(takewhile(lambda letter: letter is not None, letters))
    apart = len(run) >= _AT_LEAST and (run[0] == "q" or len(run) == len("qkv")) and len(set(run)) == len(run)
    return len(run) if apart else 0


def _letter(name: str) -> str | None:
    return meaning(name.removeprefix("x").removeprefix("_") or name, "qkv")
