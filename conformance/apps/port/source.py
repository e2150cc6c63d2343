"""A checkpoint as canonical weights: which of its tensors is which, read one by one."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from conformkit.conformance.apps.port.checkpoint import Renamed, WeightStore
from conformkit.conformance.apps.port.problems import Unportable
from conformkit.conformance.apps.port.sides import Side, parameters_of, rules_at
from conformkit.conformance.binding.messages import hint, nearest
from conformkit.conformance.binding.patterns import shapes, to_canonical
from conformkit.conformance.binding.rules import WEIGHT, Rule
from conformkit.conformance.text import one_line
from conformkit.spec.arrays import Array
from conformkit.spec.components import Parameter

__all__ = ["CanonicalWeights", "canonical_names", "matched", "stored_shapes", "within"]

_PREFIX_QUOTIENT = 4
"""A prefix is one only if it gives at least a quarter of the wanted names: one name may fit by accident."""
_KEPT = 4
"""How many rules' arrays are kept: a fused projection is asked for three times in a row."""


class CanonicalWeights:
    """Canonical weights out of a checkpoint whose names are those of one side.

    `lenient`: what is missing or has another shape is noted in `missing` and `misshapen` instead of refused.
    """

    def __init__(
        self, side: Side, sizes: Mapping[str, Any], checkpoint: WeightStore, known: Iterable[str] = (),
        *, lenient: bool = False,
    ) -> None:  # fmt: skip
        self.sizes, self.parameters = sizes, parameters_of(side, sizes)
        self._rules = rules_at(side, sizes)
        wanted = stored_shapes(self._rules, self.parameters)
        self.checkpoint = matched(checkpoint, wanted, lambda name: side.ignored(name) or name in known)
        self.missing = [name for name in wanted if name not in self.checkpoint.entries]
        self.misshapen = {
            name: (self.checkpoint.entries[name].shape, shape) for name, shape in wanted.items()
            if name in self.checkpoint.entries and self.checkpoint.entries[name].shape != shape
        }  # fmt: skip
        self.left_over = [
            n for n in self.checkpoint.entries if n not in wanted and not side.ignored(n) and n not in known
        ]
        self._by_part = {
            name: rule for rule in reversed(self._rules) for name in canonical_names(rule, self.parameters)
        }
        self._kept: OrderedDict[str, dict[str, Array]] = OrderedDict()
        self._wanted = wanted
        if not lenient:
            self.refuse(side.title)

    def has(self, name: str) -> bool:
        """Whether a canonical parameter can be read."""
        rule = self._by_part.get(name)
        return rule is not None and not any(t in self.missing or t in self.misshapen for t in self._targets(rule))

    def read(self, name: str) -> Array:
        """Return one canonical parameter, in float64 where arithmetic is needed to find it."""
        rule = self._by_part[name]
        key = rule.target
        if key not in self._kept:
            self._kept[key] = self._opened(rule)
            while len(self._kept) > _KEPT:
                self._kept.popitem(last=False)
        return self._kept[key][name]

    def dtype(self, name: str) -> str:
        """Return the number format in which a canonical parameter is stored; float32 where it is computed."""
        rule = self._by_part[name]
        found = {self.checkpoint.entries[target].dtype for target in self._targets(rule)}
        if len(found) > 1 or any(part.expression != WEIGHT for part in rule.parts):
            return "float64" if "float64" in found else "float32"
        return found.pop()

    def places(self, name: str) -> list[str]:
        """Return the tensors that hold a canonical parameter."""
        return self._targets(self._by_part[name]) if name in self._by_part else []

    def _targets(self, rule: Rule) -> list[str]:
        return list(shapes([rule], within(self.parameters, rule)))

    def _opened(self, rule: Rule) -> dict[str, Array]:
        computed = any(part.expression != WEIGHT for part in rule.parts)
        raw = {target: _numbers(self.checkpoint, target) for target in self._targets(rule)}
        raw = {target: a.astype(np.float64) if computed else a for target, a in raw.items()}
        return to_canonical([rule], raw, within(self.parameters, rule), self.sizes)

    def refuse(self, title: str) -> None:
        """Raise Unportable for what does not fit, the most telling first."""
        place, there, wanted = self.checkpoint.place, self.checkpoint.entries, self._wanted
        if len(self.missing) == len(wanted):
            some = ", ".join(one_line(name, 60) for name in list(there)[:3])
            raise Unportable(
                f"{place} has none of the weights of {title}: is it of another family?",
                advice=(f"it has {some}, …", f"wanted {', '.join(list(wanted)[:3])}, …"),
            )
        if self.missing:
            first = self.missing[0]
            near = hint(nearest(first, self.left_over))
            raise Unportable(
                f"{place} lacks {len(self.missing)} of {len(wanted)} tensors of {title}, first {first} {wanted[first]}",
                advice=(near,) if near else (),
            )
        for name, (found, shape) in self.misshapen.items():
            raise Unportable(f"{place}: {name} has shape {found}, expected {shape}")
        if self.left_over:
            names = ", ".join(one_line(name, 80) for name in self.left_over[:3])
            raise Unportable(
                f"{place} has {len(self.left_over)} tensors for which {title} has no place: {names}",
                advice=("is it of another family, or another variant of it?",),
            )


def _numbers(checkpoint: WeightStore, name: str) -> Array:
    array = checkpoint.read(name)
    if array.dtype.kind != "f":
        problem = f"{checkpoint.place}: {name} holds {array.dtype.name}, expected floating-point numbers"
        raise Unportable(problem, advice=("quantized weights are to be expanded first",))
    return array if array.dtype in (np.float32, np.float64) else array.astype(np.float32)


def within(parameters: Mapping[str, Parameter], rule: Rule) -> dict[str, Parameter]:
    """Return the parameters that a rule for one layer is about: all layers, where it stacks them."""
    if any(rule.stacks(part) for part in rule.parts):
        return dict(parameters)
    return {part.name: parameters[part.name] for part in rule.parts}


def canonical_names(rule: Rule, parameters: Mapping[str, Parameter]) -> list[str]:
    """Return the canonical parameters that a rule for one layer places."""
    found: list[str] = []
    for part in rule.parts:
        if rule.stacks(part):
            head, _, tail = part.name.partition("{i}")
            found += [name for name in parameters if name.startswith(head) and name.endswith(tail)]
        else:
            found.append(part.name)
    return found


def stored_shapes(rules: Iterable[Rule], parameters: Mapping[str, Parameter]) -> dict[str, tuple[int, ...]]:
    """Return the shape of each tensor that rules for one layer each place."""
    found: dict[str, tuple[int, ...]] = {}
    for rule in rules:
        found |= shapes([rule], within(parameters, rule))
    return found


def matched(checkpoint: WeightStore, wanted: Iterable[str], ignored: Callable[[str], bool]) -> Renamed:
    """Return the checkpoint with the prefix that its names have, or lack, made that of the wanted names."""
    names, goal = list(checkpoint.entries), set(wanted)

    def renamed(taken: str, added: str) -> dict[str, str]:
        return {added + name[len(taken) :]: name for name in names if name.startswith(taken)}

    taken = ["", *_beginnings(names)]
    added = ["", *{name.split(".")[0] + "." for name in goal if "." in name}]
    ways = [renamed(one, other) for one in taken for other in added]
    best = max(ways, key=lambda way: len(goal & way.keys()))
    if len(goal & best.keys()) <= max(len(goal & ways[0].keys()), len(goal) // _PREFIX_QUOTIENT):
        best = ways[0]
    used = set(best.values())
    rest = {name: name for name in names if name not in used and not ignored(name) and name not in best}
    return Renamed(checkpoint, {**rest, **best})


def _beginnings(names: Iterable[str]) -> list[str]:
    """Return what names may begin with: `module.`, `_orig_mod.`, `model.transformer.`."""
    found: dict[str, None] = {}
    for name in names:
        parts = name.split(".")
        found |= dict.fromkeys(".".join(parts[:count]) + "." for count in (1, 2) if len(parts) > count)
        if len(found) > 40:
            break
    return list(found)
