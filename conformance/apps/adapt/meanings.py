"""What arguments of a constructor or a settings object stand for, judged by their names."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from conformkit.conformance.binding.aliases import meaning
from conformkit.spec.components import Component

__all__ = ["LONGEST", "constant", "is_settings", "meant", "passed", "required_sizes", "sizes_of"]

LONGEST = 256
"""What is passed where a part wants to know the longest input, which the contract tells the whole only."""
_MORE: dict[str, frozenset[str]] = {
    "d_model": frozenset({"ndim", "channels", "nchannels", "dimmodel", "embd", "embsize", "featuredim",
                          "hiddensize", "size", "c", "modelsize", "residualdim", "dresid", "nfeatures"}),
    "num_heads": frozenset({"numhead", "nhead", "headcount", "attentionheads", "numattnheads", "attnheads"}),
    "kv_heads": frozenset({"kvheads", "nkv", "numkv", "keyvalueheads", "nkvheads", "numkvgroups", "nkvgroups"}),
    "d_ff": frozenset({"dimff", "mlphidden", "mlpwidth", "innerdim", "ffsize", "ffwidth", "dffn",
                       "ffnhidden", "dmlp", "mlpsize", "inner", "feedforwarddim", "ffnhiddensize", "hiddensizeff"}),
    "vocab_size": frozenset({"numembeddings", "vocablen", "vocabdim", "dvocab", "voc"}),
    "num_layers": frozenset({"nblock", "numblock", "nblocks", "layercount"}),
    "block_size": frozenset({"seqlength", "maxseq", "maxtokens", "contextlen", "window", "maxlen", "maxcontext",
                             "maxpositions", "npositions", "nctx", "contextwindow", "maxsequencelength", "nseq",
                             "positions"}),
    "max_len": frozenset({"nctx", "maxpositions", "contextlen", "contextlength", "maxtokens", "maxseq", "seqlength"}),
    "causal": frozenset({"iscausal", "usecausalmask", "causalmask", "maskfuture"}),
}  # fmt: skip
_HEAD_WIDTHS = {"headsize", "headdim", "dimhead", "dhead", "headwidth", "dk", "dv", "headchannels", "kdim", "vdim"}
_OUTPUTS = {"d_out", "out_dim", "dim_out", "output_dim", "out_features"}
_LENGTHS = {"block_size", "max_len"}
_SETTINGS = {
    "config", "cfg", "conf", "args", "params", "hparams", "options", "opts", "opt", "settings", "modelargs", "hp",
    "modelconfig", "configuration", "c", "gptconfig",
}  # fmt: skip


def sizes_of(component: Component) -> list[str]:
    """Return the names that a constructor's arguments may stand for."""
    names = [argument.name for argument in component.arguments]
    return names + (["kv_heads"] if "num_heads" in names else [])


def required_sizes(component: Component) -> list[str]:
    """Return those that it must be told, or that limits must fix."""
    return [argument.name for argument in component.arguments if argument.required]


def meant(name: str, wanted: Collection[str]) -> str | None:
    """Return the expression in the contract's names that an argument of this name is, if it is one."""
    if "dropout" in wanted and "drop" in name.lower() and not re.search("path|layer_?drop|token", name.lower()):
        return "dropout"
    if "causal" in wanted and _folded(name) == "bidirectional":
        return "not causal"
    known = meaning(name, wanted)
    return known or next((ours for ours in wanted if _folded(name) in _MORE.get(ours, ())), None)


def passed(
    parameters: Sequence[Mapping[str, Any]], component: Component
) -> tuple[dict[str, Any], list[str], list[str]]:
    """Return the arguments whose names say what they are, the contract's that have no place, theirs without a value."""
    known: dict[str, Any] = {}
    wanted = sizes_of(component)
    for parameter in sorted(parameters, key=lambda p: p["name"] not in wanted):
        ours = meant(parameter["name"], wanted)
        if ours and (ours == "dropout" or ours not in known.values()):
            known[parameter["name"]] = ours
    missing = [name for name in required_sizes(component) if name not in known.values()]
    unknown = [p["name"] for p in parameters if p["required"] and p["name"] not in known]
    if any(p["name"] == "batch_first" for p in parameters):
        known["batch_first"] = True
    return {p["name"]: known[p["name"]] for p in parameters if p["name"] in known}, missing, unknown


def is_settings(name: str) -> bool:
    """Whether an argument of this name is an object or a dictionary that holds the sizes."""
    return _folded(name) in _SETTINGS


def constant(name: str, component: Component) -> Any:
    """Return what an argument is given that the component's contract does not have; None where nobody knows."""
    folded = _folded(name)
    if folded in _HEAD_WIDTHS:
        return "d_model // num_heads" if "num_heads" in sizes_of(component) else "d_model"
    other = meant(name, ("block_size", "max_len", "vocab_size", "num_layers", "d_ff", "num_heads", "kv_heads"))
    if other is not None:
        return LONGEST if other in _LENGTHS else _OTHERS[other]
    known = {
        "layeridx": 0,
        "layerid": 0,
        "layer": 0,
        "layernumber": 0,
        "batchfirst": True,
        "multipleof": 1,
        "ffndimmultiplier": "None",
    }
    if name.lower() in _OUTPUTS:
        return "d_model"
    if folded in known:
        return known[folded]
    kinds = (("drop", 0.0), ("qkv", False), ("bias", True), ("eps", 1e-5))
    return next((value for word, value in kinds if word in folded), None)


_OTHERS: dict[str, Any] = {
    "vocab_size": 11, "num_layers": 1, "d_ff": "4 * d_model", "num_heads": 1, "kv_heads": 1,
}  # fmt: skip


def _folded(name: str) -> str:
    return name.lower().replace("_", "")
