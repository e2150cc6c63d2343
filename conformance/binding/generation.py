"""How a model generates: the method or function, its arguments, and how greedy decoding is requested."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from conformkit.conformance.binding.aliases import meaning
from conformkit.conformance.binding.arguments import Arguments, Expression
from conformkit.conformance.binding.call_arguments import optional_for
from conformkit.conformance.binding.config import GenerateConfig
from conformkit.conformance.binding.language import ExpressionError
from conformkit.conformance.binding.lookups import with_inside
from conformkit.conformance.binding.signatures import Signature, call_from
from conformkit.spec.components import FURTHER, GENERATE

__all__ = ["SAMPLES", "Generation", "generation_of", "switched"]


@dataclass(frozen=True, slots=True)
class Generation:
    """How the model generates: a method, or a function that takes the model.

    `greedy`: arguments that request greedy decoding; without any, the values of `certain` do, wherever the call uses
    them. `own_greedy`: it is not requested by temperature 0, which may then be refused. `samples_only`: there is none.
    """

    method: str | None
    function: str | None
    call: Arguments
    greedy: Arguments
    new_only: bool
    own_greedy: bool = False
    samples_only: bool = False
    certain: Mapping[str, float] = field(default_factory=dict)
    prompts: str = "batch"
    """What a call takes: a `batch` of prompts, or one, as an array in `rows` and a list in `lists`."""
    mask: str | None = None
    lengths: str | None = None
    """Arguments that say which ids of prompts (B, T) are real, and how many of each row."""


def generation_of(
    config: GenerateConfig, export: Mapping[str, Any], free: Mapping[str, Any] | None
) -> Generation | None:
    """Find the method or function and its arguments; None if neither exists. Raises SignatureMismatch as for calls."""
    methods: Mapping[str, Any] = export["methods"] or {}
    if export["kind"] == "function" and config.call is not None:  # the methods of a factory's product are unknown
        methods = {config.path: ()}
    method = config.path if ":" not in config.path and config.path in methods else None
    described = methods[method] if method else (free or {}).get("call")
    if method is None and (free is None or config.path not in {"generate", free["path"]}):
        return None
    names = [a.name for a in (*GENERATE, *FURTHER) if a.name not in _EXTRAS or _offered(a.name, described or ())]
    required = {"ids", "max_new_tokens"} | (set() if method else {"model"})
    contract = names if method else ["model", *names]
    switch = None if config.call else _switch(described or ())
    call = config.call or call_from(_without(described or (), switch), [*contract, "seed"], required)
    if switch is not None:
        call = replace(call, named={**call.named, switch: SAMPLES[switch]})
    greedy = Arguments((), {switch: not SAMPLES[switch]}) if switch else Arguments()
    function = None if method else (free or {}).get("path")
    own = config.greedy is not None or switch is not None
    samples_only = config.greedy is False
    greedy = Arguments() if samples_only else config.greedy or greedy
    certain = {} if own else _certain(call)
    taken = with_inside(export if method else free or {}, described, method or "")
    padding = {what: optional_for(what, taken or ()) for what in ("mask", "lengths")}
    return Generation(
        method, function, call, greedy, config.returns == "new", own, samples_only, certain, config.prompts, **padding
    )


def switched(call: Arguments, described: Signature) -> Arguments:
    """Set a switch between sampling and greedy decoding by the temperature, if both are arguments."""
    switch = _switch(described)
    if switch is None or "temperature" not in call.names():
        return call
    return replace(call, named={**call.named, switch: Expression(f"temperature {'>' if SAMPLES[switch] else '=='} 0")})


_OFF = {
    "min_p": ("0", "0.0"), "typical_p": ("1", "1.0"), "repetition_penalty": ("1", "1.0"),
    "presence_penalty": ("0", "0.0"), "frequency_penalty": ("0", "0.0"), "no_repeat_ngram_size": ("0",),
}  # fmt: skip
_EXTRAS: Mapping[str, tuple[str, ...]] = {
    "eos_id": ("None",), "use_cache": ("True", "False"), **{a.name: ("None", *_OFF[a.name]) for a in FURTHER}
}  # fmt: skip
"""Options of generation whose names are trusted only if their default is one of these."""


def _offered(name: str, described: Signature) -> bool:
    return any(meaning(p["name"], [name]) and p["default"] in _EXTRAS[name] for p in described)


SAMPLES = {"do_sample": True, "sample": True, "sampling": True, "greedy": False, "deterministic": False}
"""Switches between sampling and greedy decoding, and their value for sampling."""


def _switch(described: Signature) -> str | None:
    """Return the argument that is such a switch: it has such a name, and a boolean default, if any."""
    found = (p["name"] for p in described if p["name"] in SAMPLES and p["default"] in {None, "None", "True", "False"})
    return next(found, None)


def _without(described: Signature, name: str | None) -> Signature:
    """Return a signature in which one argument has no position; arguments after it are passed by name."""
    return [{**p, "kind": "keyword", "required": False} if p["name"] == name else p for p in described]


def _certain(call: Arguments) -> Mapping[str, float]:
    """Return the values with which a call requests greedy decoding, in an object or an expression too."""
    used = call.names()
    if "temperature" in used and _has_value(call, {**dict.fromkeys(used, 1), "temperature": 0.0}):
        return {"temperature": 0.0}
    return {"top_k": 1} if "top_k" in used else {}


def _has_value(call: Arguments, values: Mapping[str, float]) -> bool:
    try:
        call.template(values)
    except ExpressionError:
        return False
    return True
