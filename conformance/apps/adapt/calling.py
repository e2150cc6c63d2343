"""How to call a candidate: inputs by position; masks, flags and positions by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from conformkit.conformance.binding.aliases import meaning
from conformkit.spec.components import Component

__all__ = ["Call", "call_of"]

_MASKS = {"mask", "attn_mask", "attention_mask", "src_mask", "tgt_mask", "causal_mask", "blocked", "bias", "attn_bias",
          "m", "msk", "att_mask", "look_ahead_mask", "allowed", "visible", "hidden_mask", "additive_mask"}  # fmt: skip
_TARGETS = {"targets", "target", "labels", "label", "y", "tgt_ids", "target_ids"}
_FIXED = {"use_cache": False, "need_weights": False, "start_pos": 0, "past_len": 0}


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
    usable = [p for p in signature if p["kind"] in {"positional", "keyword"}]
    positional = [p for p in usable if p["kind"] == "positional"]
    first = inputs
    if len(inputs) == 1 and [_letter(p["name"]) for p in positional[:3]] == ["q", "k", "v"]:
        first = inputs * 3
    rest = [p for p in usable if p not in positional[: len(first)]]
    mask = next((p for p in rest if _is_mask(p["name"])), None)
    flag = next((p["name"] for p in rest if meaning(p["name"], ["causal"]) and p is not mask), "")
    named = {p["name"]: _FIXED[p["name"]] for p in rest if p["name"] in _FIXED}
    known = {*named, flag, mask["name"] if mask else ""}
    spare = tuple(p["name"] for p in rest if p["required"] and p["name"] not in known)
    targets = next((p["name"] for p in rest if p["name"] in _TARGETS), "") if inputs == ("ids",) else ""
    return Call(first, named, mask["name"] if mask else "", flag, bool(mask and mask["required"]), spare, targets)


def _letter(name: str) -> str | None:
    return meaning(name.removeprefix("x").removeprefix("_") or name, "qkv")


def _is_mask(name: str) -> bool:
    return name.lower() in _MASKS or (name.endswith("_mask") and "padding" not in name)
