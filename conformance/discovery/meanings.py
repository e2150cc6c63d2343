"""The meaning of arguments of a constructor or a settings object, judged by their names."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from conformkit.conformance.binding.aliases import likely_meaning, meanings
from conformkit.spec.components import Component

__all__ = [
    "LONGEST",
    "MOST_ROWS",
    "WINDOW",
    "as_the_other_side",
    "constant",
    "equal_sizes",
    "is_head_width",
    "is_mask",
    "is_settings",
    "is_window",
    "meant",
    "passed",
    "required_sizes",
    "sizes_of",
    "snake_case",
]

LONGEST = 256
"""Value for a part that needs the longest input, which in the contract only the model gets."""
MOST_ROWS = frozenset({"max_batch_size", "max_batch", "max_bsz"})
"""Names of the number of texts that a cache has room for."""
WINDOW = 3
"""Value for the number of keys that each query sees: short inputs show it."""
_WINDOWS = re.compile(r"(sliding|local|swa|att(entio)?n)?window(size|len(gth)?)?(left)?")
_HEAD_WIDTHS = {
    "headsize", "headdim", "dimhead", "dhead", "headwidth", "dk", "dv", "headchannels", "kdim", "vdim", "keydim",
    "valuedim", "perhead", "qkdim", "dkv",
}  # fmt: skip
_EITHER_WIDTH = {"hidden", "hiddendim", "dhidden", "dhid", "nhid"}
"""What some call the inner width of the feed-forward, and others the width of the model."""
_MASKS = {"mask", "attn_mask", "attention_mask", "src_mask", "tgt_mask", "causal_mask", "blocked", "bias", "attn_bias",
          "m", "msk", "att_mask", "look_ahead_mask", "allowed", "visible", "hidden_mask", "additive_mask"}  # fmt: skip
_INPUTS = {"input_dim", "in_dim", "dim_in", "input_size", "in_features", "input_width"}
"""Names of a width that the contract has once, the model's; elsewhere they may be another one."""
_OUTPUTS = {"d_out", "out_dim", "dim_out", "output_dim", "out_features"}
_LENGTHS = {"block_size", "max_len"}
_SIDE = r"(?:encoder|decoder|enc|dec|src|tgt|trg|source|target)"
_SIDED = re.compile(rf"^(n_|num_|)_?{_SIDE}_(?=.)|(?<=.)_(?:{_SIDE}|input)$", re.IGNORECASE)
_LANGUAGE = re.compile(r"src|tgt|trg|source|target", re.IGNORECASE)
_OF_BOTH_SIDES = {
    "vocab_size": ("tgt_vocab_size", "src_vocab_size"), "num_layers": ("num_encoder_layers", "num_decoder_layers"),
}  # fmt: skip
"""Sizes that some models have once, and the contract once for each side."""
_SETTINGS = {
    "config", "cfg", "conf", "args", "params", "hparams", "options", "opts", "opt", "settings", "modelargs", "hp",
    "modelconfig", "configuration", "c", "gptconfig", "s", "hps", "hyper", "spec", "modelparams",
}  # fmt: skip


def sizes_of(component: Component) -> list[str]:
    """Return the contract's names that a constructor's arguments may mean."""
    names = [argument.name for argument in component.arguments]
    return names + (["kv_heads"] if "num_heads" in names else [])


def required_sizes(component: Component) -> list[str]:
    """Return the names that it must get as arguments, or that limits must fix."""
    return [argument.name for argument in component.arguments if argument.required]


def meant(name: str, wanted: Collection[str]) -> str | None:
    """Return the expression in the contract's names for an argument of this name, if it is known."""
    if "dropout" in wanted and "drop" in name.lower() and not re.search("path|layer_?drop|token", name.lower()):
        return "dropout"
    if "causal" in wanted and _folded(name) == "bidirectional":
        return "not causal"
    return likely_meaning(name, wanted) or likely_meaning(_without_side(name), wanted)


def _without_side(name: str) -> str:
    """Return the name of a size of one side without the side: `encoder_ffn_dim`, `num_decoder_layers`.

    `n_enc` is a number of layers; a letter beside a language says nothing: `n_src` may be a number of words.
    """
    left = _SIDED.sub(r"\1", name)
    return name if len(left) == 1 and _LANGUAGE.search(name) else left


def passed(
    parameters: Sequence[Mapping[str, Any]], component: Component
) -> tuple[dict[str, Any], list[str], list[str]]:
    """Return arguments with known names, the contract's names without an argument, and arguments without a value."""
    known: dict[str, Any] = {}
    wanted = sizes_of(component)
    for parameter in sorted(parameters, key=lambda p: (p["name"] not in wanted, is_window(p["name"]))):
        ours = meant(parameter["name"], wanted)
        if ours in known.values():
            ours = next((m for m in meanings(parameter["name"], wanted) if m not in known.values()), ours)
        of_a_side = _without_side(parameter["name"]) != parameter["name"]
        if ours and (ours == "dropout" or of_a_side or ours not in known.values()):
            known[parameter["name"]] = ours
    _name_the_side(known, parameters, wanted)
    _tell_widths_apart(known, parameters, wanted)
    if "d_model" in known.values() and component.inputs[:1] == ("x",):
        known |= {p["name"]: "d_model" for p in parameters if p["name"] in _INPUTS and p["name"] not in known}
    missing = [name for name in required_sizes(component) if name not in known.values()]
    unknown = [p["name"] for p in parameters if p["required"] and p["name"] not in known]
    if any(p["name"] == "batch_first" for p in parameters):
        known["batch_first"] = True
    return {p["name"]: known[p["name"]] for p in parameters if p["name"] in known}, missing, unknown


def _name_the_side(known: dict[str, Any], parameters: Sequence[Mapping[str, Any]], wanted: Collection[str]) -> None:
    """Let `vocab_size` and `num_layers` be those of a side that has none of its own."""
    for parameter in (p for p in parameters if p["name"] not in known):
        sides = _OF_BOTH_SIDES.get(likely_meaning(parameter["name"], _OF_BOTH_SIDES) or "", ())
        free = [side for side in sides if side in wanted and side not in known.values()]
        if free:
            known[parameter["name"]] = free[0]


def as_the_other_side(parameters: Sequence[Mapping[str, Any]], component: Component) -> list[str]:
    """Return the arguments for one side that may be those of the other: `decoder_vocab_size` beside `vocab_size`."""
    known, _, _ = passed(parameters, component)
    once = {sides for name in known if (sides := _OF_BOTH_SIDES.get(likely_meaning(name, _OF_BOTH_SIDES) or ""))}
    ours = {side for sides in once for side in sides}
    return [name for name, mine in known.items() if mine in ours and _without_side(name) != name]


def equal_sizes(known: Mapping[str, Any], missing: Collection[str]) -> dict[str, str]:
    """Return the sizes of one side that no argument sets, each with that of the other side, which is set."""
    pairs = [pair for sides in _OF_BOTH_SIDES.values() for pair in (sides, sides[::-1])]
    return {lacking: other for lacking, other in pairs if lacking in missing and other in known.values()}


def _tell_widths_apart(known: dict[str, Any], parameters: Sequence[Mapping[str, Any]], wanted: Collection[str]) -> None:
    """Let `hidden` be the width of the model where no argument is the outer one."""
    if "d_model" not in wanted or "d_model" in known.values():
        return
    inner = [p["name"] for p in parameters if meant(p["name"], (*wanted, "d_ff")) == "d_ff"]
    vague = [name for name in inner if _folded(name) in _EITHER_WIDTH]
    others = [name for name in inner if name not in vague]
    if len(vague) == 1 and others:
        known |= {vague[0]: "d_model", others[0]: "d_ff"}
    elif len(vague) == 1 and ("num_heads" in known.values() or "d_ff" not in wanted):
        known |= {vague[0]: "d_model"}  # the inner width follows from it


def is_settings(name: str) -> bool:
    """Whether an argument of this name is an object or a dictionary that holds the sizes."""
    return _folded(name) in _SETTINGS


def is_head_width(name: str) -> bool:
    """Whether an argument of this name is the width of a head."""
    return _folded(name) in _HEAD_WIDTHS


def is_window(name: str) -> bool:
    """Whether an argument of this name may be the number of keys that each query sees, or the longest input."""
    return bool(_WINDOWS.fullmatch(_folded(name)))


def is_mask(name: str) -> bool:
    """Whether an argument of this name takes a mask for later positions."""
    return name.lower() in _MASKS or (name.endswith("_mask") and "padding" not in name)


def snake_case(name: str) -> str:
    """Return a name in lower case, its words apart: `feed_forward` of `FeedForward`."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def constant(name: str, component: Component) -> Any:
    """Return a value for an argument that the component's contract does not have; None if unknown."""
    folded = _folded(name)
    if is_window(name) and component.is_causal:
        return WINDOW
    if is_head_width(name):
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
        **dict.fromkeys(("rng", "randomstate", "nprng"), "rng"),
        **dict.fromkeys(("seed", "randomseed"), "seed"),
        "device": "'cpu'",
    }
    if name.lower() in _OUTPUTS:
        return "d_model"
    if folded in known:
        return known[folded]
    kinds = (
        ("expansion", 4),
        ("ffmult", 4),
        ("mlpratio", 4),
        ("theta", 10000.0),
        ("ropebase", 10000.0),
        ("rotarybase", 10000.0),
        ("drop", 0.0),
        ("qkv", False),
        ("bias", True),
        ("eps", 1e-5),
        *_OF_EXPERTS,
    )
    return next((value for word, value in kinds if word in folded), None)


_OTHERS: dict[str, Any] = {
    "vocab_size": 11, "num_layers": 1, "d_ff": "4 * d_model", "num_heads": 1, "kv_heads": 1,
}  # fmt: skip


_OF_EXPERTS = (("topk", 2), ("perto", 2), ("active", 2), ("sharedexpert", 1), ("expert", 4))
"""Numbers of experts by what names contain: a position goes through 2 of 4."""


def _folded(name: str) -> str:
    return name.lower().replace("_", "")
