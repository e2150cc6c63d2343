"""How the model generates: the method or function, how to call it, and how to request greedy text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from conformkit.conformance.assertions.draws import Draw
from conformkit.conformance.binding.aliases import meaning
from conformkit.conformance.binding.config import OPTIONS
from conformkit.conformance.discovery.bench import TROUBLE, Bench
from conformkit.conformance.discovery.items import Item
from conformkit.conformance.discovery.meanings import meant
from conformkit.conformance.discovery.proposal import Proposal
from conformkit.conformance.driver.errors import WorkerLost

__all__ = ["add_generation"]

_MODEL = "TinyTransformerLM"
_CALLED = re.compile(r"generate|generation|sampl(e|ing)|continue|complete|decode")
_SWITCHES = {"do_sample": (True, False), "sample": (True, False), "sampling": (True, False), "greedy": (False, True),
             "deterministic": (False, True)}  # fmt: skip
_OFF = {"top_k": "vocab_size", "top_p": 1.0, "temperature": 1.0, "min_p": 0.0, "typical_p": 1.0,
        "no_repeat_ngram_size": 0}  # fmt: skip
"""Values that turn an option off if its default is not None."""
_TRANSFORMERS = {
    "max_new_tokens": "max_new_tokens", "do_sample": True, "temperature": "temperature",
    "top_k": "0 if top_k is None else top_k", "top_p": "1.0 if top_p is None else top_p", "use_cache": False,
}  # fmt: skip
"""Named arguments of a `generate` with a generation_config, as the library transformers has it."""
_COUNTS = {"count", "steps", "n", "length", "maxgenlen", "maxlength", "numtokens", "maxnewtokens", "ntokens",
           "numsteps", "newtokens", "amount", "howmany", "k"}  # fmt: skip
_NO_CUT = {"filter_thres": 0.0}
"""Values that turn an option off which the contract does not have: the share of ids that x-transformers never draws."""
_COUNT = 3
_COUNTED = ("max_new_tokens", "T + max_new_tokens")
"""Whether new ids are counted, or those of the prompt too."""


def add_generation(proposal: Proposal, items: Sequence[Item], bench: Bench) -> None:
    """Declare how it generates, unless the kit finds that anyway; add a doubt if nothing generates."""
    own = (bench.export(_MODEL, proposal.table["path"])["methods"] or {}).get("generate") or ()
    if not any(_cuts_off(parameter) for parameter in own) and _length(proposal.table, bench) == "all":
        _sample_only(proposal, own, bench)
        return
    tables = list(_tables(proposal, items, bench))
    alone = [{**table, "prompts": prompts} for prompts in ("lists", "rows") for table in tables]
    for table in (*tables, *map(_sampled, tables), *alone, *map(_sampled, alone)):
        returns = _length({**proposal.table, "generate": table}, bench)
        if returns:
            proposal.table["generate"] = table | ({"returns": "new"} if returns == "new" else {})
            _sample_only(proposal, _arguments(table), bench)
            greedy = table.get("greedy")
            if greedy is False:
                proposal.doubts.append(
                    "nothing asks for greedy text, and a temperature of 0 fails: taken for one that samples"
                )
            elif greedy and greedy.get("top_k") == 1:
                proposal.doubts.append("greedy text is requested by top_k = 1: a temperature of 0 is refused")
            return
    proposal.doubts.append("no way to generate was found: declare [components.TinyTransformerLM.generate]")


def _sampled(table: dict[str, Any]) -> dict[str, Any]:
    """Return the declaration of what only samples."""
    return {**table, "greedy": False}


def _arguments(table: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return what a call passes besides the ids, as a signature: by the names of its arguments."""
    return [{"name": name} for name in {**table["call"][-1], **(table.get("greedy") or {})}]


def _sample_only(proposal: Proposal, signature: Sequence[Mapping[str, Any]], bench: Bench) -> None:
    """Declare that it only samples, if its text varies and it has no argument that could ask for greedy text."""
    asked = any(meaning(p["name"], ("temperature", "top_k")) or p["name"] in _SWITCHES for p in signature)
    if asked or not _varies(proposal.table, bench):
        return
    proposal.table["generate"] = {**proposal.table.get("generate", {}), "greedy": False}
    proposal.doubts.append("its texts vary with the seed and nothing asks for greedy ones: taken for one that samples")


def _varies(table: Mapping[str, Any], bench: Bench) -> bool:
    """Whether texts that should be greedy differ by the seed. Raises what is in TROUBLE."""
    instance = bench.subject(_MODEL, table).build(**bench.sizes)
    prompt = instance.example_inputs(Draw(0, "prompt"))[0]
    instance(prompt)  # which may make its parameters
    one, other = (instance.generate(prompt, _COUNT, greedy=True, seed=seed, temperature=0.0).out for seed in (0, 1))
    return not np.array_equal(one, other)


def _length(table: Mapping[str, Any], bench: Bench) -> str:
    """Return `all` or `new`, depending on which ids greedy text returns; nothing if that fails."""
    try:
        subject = bench.subject(_MODEL, table)
        if subject.bound.generation is None:
            return ""
        instance = subject.build(**bench.sizes)
        prompt = instance.example_inputs(Draw(0, "prompt"))[0]
        if table.get("generate", {}).get("greedy") is False:
            out = instance.generate(prompt, _COUNT, seed=0).out
        else:
            out = instance.generate(prompt, _COUNT, greedy=True, seed=0, temperature=0.0).out
    except WorkerLost:
        raise
    except TROUBLE:
        return ""
    rows, length = prompt.shape
    return {(rows, length + _COUNT): "all", (rows, _COUNT): "new"}.get(tuple(out.shape), "")


def _tables(proposal: Proposal, items: Sequence[Item], bench: Bench) -> Iterator[dict[str, Any]]:
    """Yield possible declarations, methods before functions, plain greedy decoding before other ways."""
    methods: Mapping[str, Any] = bench.export(_MODEL, proposal.table["path"])["methods"] or {}
    named = [(name, signature, False) for name, signature in methods.items() if _may_write(name, signature)]
    named += [(i.path, i.call, True) for i in items if i.kind == "function" and _may_write(i.name.lower(), i.call)]
    for path, signature, free in sorted(
        named, key=lambda entry: (entry[0] != "generate", not _CALLED.search(entry[0]))
    ):
        for count in _COUNTED:
            table = _table(path, signature or (), count, free=free)
            if table is not None:
                yield from _greedy_ways(table, signature or ())


def _may_write(name: str, signature: Sequence[Mapping[str, Any]] | None) -> bool:
    """Whether a name or the options of a call say that it generates: who takes a temperature draws ids."""
    return bool(_CALLED.search(name)) or any(meaning(p["name"], ("temperature",)) for p in signature or ())


def _table(path: str, signature: Sequence[Mapping[str, Any]], many: str, *, free: bool) -> dict[str, Any] | None:
    """Return the call of a method, or of a function that takes the model, by the names of its arguments.

    `many` is the expression for how many ids it is asked for.
    """
    if any(p["name"] == "generation_config" for p in signature):
        return {"path": path, "call": ["ids", dict(_TRANSFORMERS)], "options": ["temperature", "top_k", "top_p"]}
    usable = [p for p in signature if p["kind"] in {"positional", "keyword"}]
    positional = [p for p in usable if p["kind"] == "positional"]
    first = ["model", "ids"] if free else ["ids"]
    if len(positional) < len(first) or (free and not _is_model(positional[0]["name"])):
        return None
    rest = [p for p in usable if p not in positional[: len(first)]]
    count = next((p for p in rest if _is_count(p["name"])), None) or _asked_for(rest)
    if count is None:
        return None
    named: dict[str, Any] = {count["name"]: many}
    for parameter in (p for p in rest if p is not count):
        ours = meaning(parameter["name"], OPTIONS)
        if ours and ours not in {str(v).split(" ")[0] for v in named.values()}:
            named[parameter["name"]] = _value(ours, parameter)
        elif parameter["name"] in _NO_CUT:
            named[parameter["name"]] = _NO_CUT[parameter["name"]]
        elif parameter["required"] and meant(parameter["name"], ("block_size",)):
            named[parameter["name"]] = "block_size"
        elif parameter["required"]:
            return None
    options = [o for o in OPTIONS if any(str(v).split(" ")[0] == o for v in named.values())]
    return {"path": path, "call": [*first, named], "options": options}


def _asked_for(rest: Sequence[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    """Return the only argument that is required, unless its name means something else: a length has any name."""
    required = [p for p in rest if p["required"]]
    if len(required) > 1:
        required = [p for p in required if not meant(p["name"], ("block_size",))]
    return required[0] if len(required) == 1 and not meaning(required[0]["name"], OPTIONS) else None


def _cuts_off(parameter: Mapping[str, Any]) -> bool:
    """Whether an omitted option is still on, for example nucleus sampling by default."""
    return "if" in _value(meaning(parameter["name"], ("top_k", "top_p")) or "", parameter).split()


def _value(ours: str, parameter: Mapping[str, Any]) -> str:
    if ours in _OFF and not parameter["required"] and parameter["default"] != "None" and ours != "temperature":
        return f"{ours} if {ours} is not None else {_OFF[ours]}"
    return ours


def _greedy_ways(table: dict[str, Any], signature: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    named = table["call"][-1]
    switch = next((name for name in _SWITCHES if name in named or name in {p["name"] for p in signature}), None)
    by = {str(ours).split(" ")[0]: theirs for theirs, ours in named.items()}
    warm = {by["temperature"]: 1.0} if "temperature" in by else {}
    if switch:
        samples, greedy = _SWITCHES[switch]
        call = [*table["call"][:-1], {**named, switch: samples}]
        yield {**table, "call": call, "greedy": {switch: greedy} | (warm if switch not in named else {})}
        return
    if "temperature" in by:
        yield dict(table)
    if "top_k" in by:
        yield {**table, "greedy": {**warm, by["top_k"]: 1}}
    if not by.keys() & {"temperature", "top_k"}:
        yield {**table, "greedy": {}}


def _is_model(name: str) -> bool:
    return name.lower() in {"model", "m", "net", "lm", "gpt", "self", "network", "transformer", "decoder", "llm"}


def _is_count(name: str) -> bool:
    return bool(meaning(name, ["max_new_tokens"])) or name.lower().replace("_", "") in _COUNTS
