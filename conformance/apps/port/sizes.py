"""The sizes of a checkpoint: from its config.json, the command, and the shapes of its tensors."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from conformkit.conformance.apps.port.checkpoint import WeightStore
from conformkit.conformance.apps.port.family import families
from conformkit.conformance.apps.port.problems import Unportable
from conformkit.conformance.apps.port.sides import Side
from conformkit.conformance.apps.port.source import matched
from conformkit.conformance.binding.axes import groups_of
from conformkit.conformance.binding.config import canonical_axes
from conformkit.conformance.binding.expressions import evaluate
from conformkit.conformance.binding.rules import Rule
from conformkit.spec.positional_encoding import first_position
from conformkit.spec.variants import Variant

__all__ = ["BLOCK", "sizes_of"]

_MIN_SHARE = 0.9
"""The share of names that have to be those of a family for a guess."""
BLOCK = 64
"""Positions where neither the checkpoint nor its settings say how many there are."""
_NAMED = ("vocab_size", "d_model", "num_heads", "num_layers", "d_ff", "block_size")
_SHARED = "d_model // num_heads"
"""How wide heads are where they share the width of the model."""
_LETTERS = {"m": "d_model", "f": "d_ff", "v": "vocab_size", "t": "rows", "d": "head_width", "e": "experts"}


def sizes_of(side: Side, checkpoint: WeightStore, given: Mapping[str, int]) -> dict[str, Any]:
    """Return all sizes of a checkpoint; those `given` hold. Raises Unportable if one cannot be known."""
    found: dict[str, int] = dict(given)
    places = list(_places(side.rules, checkpoint))
    if not any(layer is not None for *_, layer in places) and any(r.layered and _is_counted(r) for r in side.rules):
        raise _of_another_family(side, checkpoint, "none" if not places else "hardly any")
    layers = [layer for *_, layer in places if layer is not None]
    if layers:
        found.setdefault("num_layers", max(layers) + 1)
    if "rows" not in found and "block_size" in found and side.variant.positions == "learned":
        found["rows"] = found["block_size"] + first_position(side.variant, {})
    for _ in range(3):
        for rule, shape, _ in places:
            _solve(rule, shape, found)
        _derive(side.variant, found)
    if "rows" in found:
        found.setdefault("block_size", found["rows"] - first_position(side.variant, {}))
    found.setdefault("block_size", BLOCK)
    missing = [name for name in _NAMED if name not in found]
    if missing:
        options = " ".join(f"--size {name}=N" for name in missing)
        problem = f"the shapes in {checkpoint.place} do not tell {', '.join(missing)}"
        raise Unportable(problem, advice=(f"give its config.json with --config, or {options}",))
    each, rest = divmod(found["d_model"], found["num_heads"])
    if side.variant.head_width == _SHARED and found.get("head_width", each) == each and rest:
        said = f"num_heads is {found['num_heads']}, expected a divisor of d_model = {found['d_model']}"
        raise Unportable(f"{checkpoint.place}: {said}", advice=("config.json or --size says another number of heads",))
    return {name: found[name] for name in (*_NAMED, "kv_heads", "head_width") if name in found}


def _of_another_family(side: Side, checkpoint: WeightStore, how_many: str) -> Unportable:
    """Return what to say of a file with other names, and whose names they are."""
    some = ", ".join(list(checkpoint.entries)[:3])
    best = max(families().values(), key=lambda known: (_fitting(known.rules, checkpoint), not known.parent))
    guess = (f"its names are those of {best.name}",) if _fitting(best.rules, checkpoint) >= _MIN_SHARE else ()
    wanted = f"wanted {', '.join(rule.target for rule in side.rules[:3])}, …"
    problem = f"{checkpoint.place} has {how_many} of the weights of {side.title}: is it of another family?"
    return Unportable(problem, advice=(*guess, f"it has {some}, …", wanted))


def _fitting(rules: Sequence[Rule], checkpoint: WeightStore) -> float:
    """Return the share of a file's tensors that have a place in some rules."""
    there = {(rule.target, layer, shape) for rule, shape, layer in _places(rules, checkpoint)}
    return len(there) / max(len(checkpoint.entries), 1)


def _places(rules: Iterable[Rule], checkpoint: WeightStore) -> Iterator[tuple[Rule, tuple[int, ...], int | None]]:
    """Yield the rules with the shapes of the tensors that they are about, and the number of the layer."""
    rules = list(rules)
    simple = {r.target.replace("{i}", "0").replace("{e}", "0") for r in rules}
    shown = matched(checkpoint, simple, lambda _: False)
    for rule in rules:
        if not _is_counted(rule):
            continue
        pattern = re.compile(re.escape(rule.target).replace(r"\{i\}", r"(\d+)").replace(r"\{e\}", r"\d+"))
        for name, entry in shown.entries.items():
            match = pattern.fullmatch(name)
            if match and not any(rule.stacks(part) for part in rule.parts):
                yield rule, entry.shape, int(match[1]) if match.groups() else None


def _is_counted(rule: Rule) -> bool:
    """Whether a rule is about one tensor, of the whole, of each layer or of each expert."""
    return not re.search(r"\{(?![ie]\})", rule.target) and not rule.subtree


def _solve(rule: Rule, shape: tuple[int, ...], found: dict[str, int]) -> None:
    """Add the sizes that the shape of one tensor tells."""
    axes = canonical_axes("TinyTransformerLM")
    parts = [part.name for part in rule.parts]
    if not rule.axes and parts[0] not in axes:
        return  # a router says nothing about sizes that other tensors do not
    groups = groups_of(rule.axes or axes[parts[0]])
    if len(groups) != len(shape):
        return
    for group, extent in zip(groups, shape, strict=True):
        plain = [letter for letter in group if letter != "s"]
        if "s" in group and "h" in plain and len(parts) > 1:
            _solve_heads(parts, extent, found)
            continue
        each = extent // len(parts) if "s" in group else extent
        names = [_size(letter, parts[0]) for letter in plain]
        unknown = [name for name in names if name not in found]
        known = math.prod(found[name] for name in names if name in found)
        if len(unknown) == 1 and each % max(known, 1) == 0:
            found[unknown[0]] = each // max(known, 1)


def _solve_heads(parts: list[str], extent: int, found: dict[str, int]) -> None:
    """Tell the heads of keys and values from a fused projection of queries, keys and values."""
    if {"num_heads", "head_width"} <= found.keys() and "kv_heads" not in found and any(".q." in p for p in parts):
        rest = extent - found["num_heads"] * found["head_width"]
        found["kv_heads"] = rest // ((len(parts) - 1) * found["head_width"])


def _size(letter: str, part: str) -> str:
    if letter == "h":
        return "kv_heads" if re.search(r"\.[kv]\.", part) else "num_heads"
    return _LETTERS[letter]


def _derive(variant: Variant, found: dict[str, int]) -> None:
    """Add the width of heads where queries do not tell it."""
    if {"d_model", "num_heads"} <= found.keys() and "head_width" not in found:
        found["head_width"] = int(evaluate(variant.head_width, found))
