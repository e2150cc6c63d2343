"""The conversion as a Python function for the user's repository: einops and loops, nothing of the kit."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import takewhile
from typing import Any

from conformkit.conformance.apps.port.moves import Added, Front, MovePlan, MoveStep, Rearranged, Rows, Scaled
from conformkit.conformance.apps.port.sides import Side, parameters_of
from conformkit.conformance.binding.affine import Affine, affine
from conformkit.conformance.binding.axes import Groups, axes_of, groups_of, letters_of
from conformkit.conformance.binding.grouped import grouping
from conformkit.conformance.binding.marks import MarkError, counters
from conformkit.conformance.binding.rules import WEIGHT, Rule, StoredPart, folded
from conformkit.conformance.text import one_line
from conformkit.spec.components import Parameter

__all__ = ["python_map"]

_SAME = 1e-12
"""How near to the identity a composed map is, if it is one: √d / √d."""


def python_map(
    theirs: Side, ours: Side, plan: MovePlan, sizes: Mapping[str, Any], own: Mapping[str, Any],
    stored: Mapping[str, str] | None = None,
) -> str:  # fmt: skip
    """Return the source of a function `convert` that takes a dictionary of theirs and returns one of ours.

    A tensor that ours has under two names, such as a tied head, is returned under both. `stored` has the names that
    tensors of theirs have in the dictionary, where these differ.
    """
    twice = {name: of for name, of in ours.others(own).items() if of}
    return "\n".join(_Writer(theirs, ours, plan, sizes, own, stored or {}).lines(twice)) + "\n"


class _Writer:
    def __init__(
        self, theirs: Side, ours: Side, plan: MovePlan, sizes: Mapping[str, Any], own: Mapping[str, Any],
        stored: Mapping[str, str],
    ) -> None:  # fmt: skip
        self._titles = theirs.title, ours.title
        self._plan, self._sizes, self._own, self._named = plan, sizes, own, stored
        self._given = {folded(n): p for n, p in parameters_of(theirs, sizes).items()}
        self._wanted = {folded(n): p for n, p in plan.parameters.items()}
        self._there = _flat(theirs.rules, self._given)
        self._here = _flat(ours.rules, self._wanted)
        self._read: set[str] = set()
        self._imports = {"rearrange"}

    def lines(self, twice: Mapping[str, str]) -> Iterator[str]:
        """Yield the lines of a module; `twice` gives further names of tensors of ours."""
        whole = [rule for rule in self._here if not self._in_layer(rule)]
        inner = [rule for rule in self._here if self._in_layer(rule)]
        body = [*self._body(whole, "    ")]
        if inner:
            body.append(f"    for i in range({self._own['num_layers']}):")
            body += self._body(inner, "        ")
        yield _quoted(f"Weights of {self._titles[0]} for {self._titles[1]}, as `conform port --map` writes it.")
        yield ""
        yield f"from einops import {', '.join(sorted(self._imports))}"
        if any("zeros(" in line for line in body):
            yield "from numpy import zeros"
        yield ""
        yield ""
        yield "def convert(theirs):"
        yield '    """Return our tensors by name for theirs: arrays, or tensors of any framework that einops knows."""'
        yield "    ours = {}"
        yield from body
        yield from (f"    ours[{json.dumps(name)}] = ours[{json.dumps(of)}]" for name, of in twice.items())
        yield "    return ours"

    def _in_layer(self, rule: Rule) -> bool:
        return rule.layered

    def _body(self, rules: Iterable[Rule], indent: str) -> Iterator[str]:
        for rule in rules:
            for line in self._rule(rule):
                yield indent + line if line else line

    def _rule(self, rule: Rule) -> Iterator[str]:
        """Yield the lines that make one tensor of ours, or one for each head."""
        plain = self._direct(rule)
        if plain is not None:
            yield plain
            return
        stacked = any(rule.stacks(part) for part in rule.parts)
        names = []
        for part in rule.parts:
            variable = _variable(part.name)
            names.append(variable)
            lines = _written(variable, [*self._canonical(part.name), self._stored(part)])
            if stacked:
                yield f"{variable}_of = []"
                yield f"for i in range({self._own['num_layers']}):"
                yield from ("    " + line for line in lines)
                yield f"    {variable}_of.append({variable})"
                yield f'{variable} = rearrange({variable}_of, "n ... -> n ...")'
            else:
                yield from lines
        parameters = [self._wanted[part.name] for part in rule.parts]
        if stacked:
            count = self._own["num_layers"]
            parameters = [Parameter(f"i {p.axes}", {**p.sizes, "i": count}) for p in parameters]
        yield from self._fused(rule, names, parameters)

    def _direct(self, rule: Rule) -> str | None:
        """Return the one line where one tensor of theirs becomes one of ours by at most one pattern."""
        if len(rule.parts) != 1 or rule.item or rule.stacks(rule.parts[0]) or rule.parts[0].expression != WEIGHT:
            return None
        move = self._plan.moves[rule.parts[0].name]
        source = self._placed(move.source) if move.source else None
        if source is None or move.steps or len(source.parts) != 1 or source.item or source.stacks(source.parts[0]):
            return None
        if source.parts[0].expression != WEIGHT:
            return None
        parameter = self._wanted[rule.parts[0].name]
        before = source.axes or self._given[move.source or ""].axes
        after = rule.axes or parameter.axes
        taken = f"theirs[{self._given_key(source.target)}]"
        return f"ours[{_key(rule.target)}] = {_arranged(taken, before, after, parameter)}"

    def _given_key(self, target: str) -> str:
        """Return the literal of a name of theirs, as the checkpoint has it: with another beginning, or none."""
        first = re.sub(r"\{[^{}]+\}", "0", target)
        there = self._named.get(first, first)
        end = sum(1 for _ in takewhile(lambda both: both[0] == both[1], zip(first[::-1], there[::-1], strict=False)))
        return _key(there[: len(there) - end] + target[len(first) - end :])

    def _placed(self, name: str) -> Rule:
        return next(rule for rule in self._there if any(part.name == name for part in rule.parts))

    def _stored(self, part: StoredPart) -> Affine:
        """Return what a part is stored as."""
        return _function(part.expression, self._own)

    def _canonical(self, name: str) -> Iterator[str | Affine]:
        """Yield lines, and maps of each number, after which a variable holds a canonical parameter of ours."""
        move, variable = self._plan.moves[name], _variable(name)
        if move.source is None:
            yield f'{variable} = zeros({self._wanted[name].shape!r}, "float32")'
            return
        yield from self._taken(move.source, variable)
        for step in move.steps:
            yield self._stepped(variable, step)

    def _stepped(self, variable: str, step: MoveStep) -> str | Affine:
        if isinstance(step, Scaled):
            return Affine(step.factor, 0.0)
        if isinstance(step, Added):
            return Affine(1.0, step.number)
        return f"{variable} = {self._moved(variable, step)}"

    def _moved(self, variable: str, step: Rows | Rearranged | Front) -> str:
        if isinstance(step, Rows):
            if not step.zeros:
                return f"{variable}[{step.skip}:]"
            self._imports.add("pack")
            front = f"0 * {variable}[:{step.zeros}]"
            return f'pack([{front}, {variable}[{step.skip}:]], "* m")[0]'
        if isinstance(step, Front):
            self._imports.add("pack")
            before, letters = ":, " * step.axis, step.step.pattern.partition(" -> ")[0]
            packed = " ".join("*" if "(" in axes_of((group,)) else group[0] for group in groups_of(letters))
            front = self._moved(f"{variable}[{before}:{step.count}]", step.step)
            return f'pack([{front}, {variable}[{before}{step.count}:]], "{packed}")[0]'
        function = "repeat" if step.repeats else "rearrange"
        self._imports.add(function)
        extents = "".join(f", {n}={e}" for n, e in step.sizes.items())
        return f'{function}({variable}, "{step.pattern}"{extents})'

    def _taken(self, name: str, variable: str) -> Iterator[str | Affine]:
        """Yield lines, and maps of each number, after which a variable holds a canonical parameter of theirs."""
        rule = self._placed(name)
        parameters = [self._given[part.name] for part in rule.parts]
        at = next(n for n, part in enumerate(rule.parts) if part.name == name)
        target = f"theirs[{self._given_key(rule.target)}]"
        axes = rule.axes or parameters[0].axes
        if rule.item:
            letter, item = rule.axis(parameters[0].axes), rule.item
            key = self._given_key(rule.target).replace(f"{{{item}}}", "{" + item + "}")
            target = f"[theirs[{key}] for {item} in range({parameters[0].sizes[letter]})]"
            inner = " ".join(a for a in axes.split())
            axes = f"{letter} {inner}"
            groups = [tuple(a for a in g if a != letter) for g in groups_of(rule.axes or parameters[0].axes)]
            axes = axes_of(((letter,), *(g for g in groups if g)))
        if any(rule.stacks(part) for part in rule.parts):
            parameters = [Parameter(f"i {p.axes}", {**p.sizes, "i": self._sizes["num_layers"]}) for p in parameters]
        if len(parameters) == 1:
            yield f"{variable} = {_arranged(target, axes, parameters[0].axes, parameters[0])}"
        else:
            yield from self._split(target, axes, parameters, at, variable)
        if any(rule.stacks(part) for part in rule.parts):
            yield f"{variable} = {variable}[i]"
        part = rule.parts[at]
        stored = _function(part.expression, self._sizes)
        yield Affine(1 / stored.scale, -stored.offset / stored.scale)

    def _split(self, target: str, axes: str, parameters: Sequence[Parameter], at: int, variable: str) -> Iterator[str]:
        """Yield the lines that take one part out of a fused tensor."""
        groups = groups_of(axes)
        grouped = grouping(groups, parameters)
        own = parameters[at]
        if grouped is not None:
            yield from _from_groups(target, grouped.parameters, groups, at, variable)
            return
        joint = next((n for n, group in enumerate(groups) if group[:1] == ("s",) and len(group) > 1), None)
        if joint is None:
            each = [a for a in letters_of(groups) if a != "s"]
            extents = _extents({**own.sizes, "s": len(parameters)}, axes)
            pattern = f"{axes} -> s {' '.join(each)}"
            yield f'{variable} = rearrange({target}, "{pattern}"{extents})[{at}]'
            yield f"{variable} = {_arranged(variable, ' '.join(each), own.axes, own)}"
            return
        plain = axes_of(tuple(tuple(a for a in group if a != "s") for group in groups))
        lengths = [math.prod(p.sizes[a] for a in groups[joint][1:]) for p in parameters]
        cut = f"{sum(lengths[:at])}:{sum(lengths[: at + 1])}"
        index = ", ".join([":"] * joint + [cut])
        yield f"{variable} = {_arranged(f'{target}[{index}]', plain, own.axes, own)}"

    def _fused(self, rule: Rule, names: Sequence[str], parameters: Sequence[Parameter]) -> Iterator[str]:
        """Yield the lines that join canonical parameters into one tensor of ours."""
        axes = rule.axes or parameters[0].axes
        if rule.item:
            yield from self._items(rule, names, parameters, axes)
            return
        target = f"ours[{_key(rule.target)}]"
        if len(names) == 1:
            yield f"{target} = {_arranged(names[0], parameters[0].axes, axes, parameters[0])}"
            return
        yield f"{target} = {self._joined(names, parameters, axes)}"

    def _joined(self, names: Sequence[str], parameters: Sequence[Parameter], axes: str) -> str:
        groups = groups_of(axes)
        grouped = grouping(groups, parameters)
        if grouped is not None:
            self._imports.add("pack")
            return _into_groups(names, grouped.parameters, groups)
        joint = next((n for n, group in enumerate(groups) if group[:1] == ("s",) and len(group) > 1), None)
        if joint is None:
            each = " ".join(a for a in letters_of(groups) if a != "s")
            parts = ", ".join(_arranged(n, p.axes, each, p) for n, p in zip(names, parameters, strict=True))
            extents = _extents({**parameters[0].sizes, "s": len(names)}, axes)
            return f'rearrange([{parts}], "s {each} -> {axes}"{extents})'
        self._imports.add("pack")
        plain = axes_of(tuple(tuple(a for a in group if a != "s") for group in groups))
        parts = ", ".join(_arranged(n, p.axes, plain, p) for n, p in zip(names, parameters, strict=True))
        letters = [f"x{n}" for n in range(len(groups))]
        letters[joint] = "*"
        return f'pack([{parts}], "{" ".join(letters)}")[0]'

    def _items(self, rule: Rule, names: Sequence[str], parameters: Sequence[Parameter], axes: str) -> Iterator[str]:
        """Yield the lines that write one tensor for each head, row or hidden unit."""
        item, letter = rule.item, rule.axis(parameters[0].axes)
        groups = [tuple(a for a in g if a != letter) for g in groups_of(axes)]
        kept = axes_of(((letter,), *(g for g in groups if g)))
        whole = self._joined(names, parameters, kept) if len(names) > 1 else _arranged(
            names[0], parameters[0].axes, kept, parameters[0])  # fmt: skip
        yield f"whole = {whole}"
        yield f"for {item} in range({parameters[0].sizes[letter]}):"
        yield f"    ours[{_key(rule.target)}] = whole[{item}]"


def _from_groups(target: str, parameters: Sequence[Parameter], groups: Groups, at: int, variable: str) -> Iterator[str]:
    """Yield the lines that take one part out of groups, one for each head of keys and values."""
    few = min(p.sizes["h"] for p in parameters)
    counts = [p.sizes["h"] // few for p in parameters]
    own = parameters[at]
    whole = axes_of(tuple(tuple(a for a in group) for group in groups))
    pattern = whole.replace("s", "g")
    opened = f"h g {' '.join(a for a in letters_of(groups) if a not in 'hs')}"
    extents = _extents({**own.sizes, "h": few, "g": sum(counts)}, pattern)
    yield f'{variable} = rearrange({target}, "{pattern} -> {opened}"{extents})'
    cut = f"{sum(counts[:at])}:{sum(counts[: at + 1])}"
    closed = own.axes.replace("h", "h g") if "(" in own.axes else own.axes
    yield f'{variable} = rearrange({variable}[:, {cut}], "{opened} -> {closed}")'


def _into_groups(names: Sequence[str], parameters: Sequence[Parameter], groups: Groups) -> str:
    """Return the expression that joins parts in groups, one for each head of keys and values."""
    few = min(p.sizes["h"] for p in parameters)
    rest = " ".join(a for a in letters_of(groups) if a not in "hs")
    parts = []
    for name, parameter in zip(names, parameters, strict=True):
        axes = parameter.axes.replace("h", "h g")
        extents = _extents({**parameter.sizes, "h": few, "g": parameter.sizes["h"] // few}, axes)
        parts.append(f'rearrange({name}, "{axes} -> h g {rest}"{extents})')
    letters = " ".join(f"x{n}" for n in range(len(rest.split())))
    joined = f'pack([{", ".join(parts)}], "h * {letters}")[0]'
    return f'rearrange({joined}, "h g {rest} -> {axes_of(groups).replace("s", "g")}")'


def _flat(rules: Iterable[Rule], known: Mapping[str, Parameter]) -> list[Rule]:
    """Return rules without those about parameters that are not there, and with one for each parameter below a name."""
    found: list[Rule] = []
    for rule in rules:
        if rule.subtree:
            head = rule.parts[0].name[:-1]
            found += [
                Rule(rule.target[:-1] + n[len(head) :], (type(rule.parts[0])(n),)) for n in known if n.startswith(head)
            ]
        elif all(part.name in known for part in rule.parts):
            found.append(rule)
    return found


def _arranged(what: str, before: str, after: str, parameter: Parameter) -> str:
    if before == after:
        return what
    return f'rearrange({what}, "{before} -> {after}"{_extents(parameter.sizes, before)})'


def _extents(sizes: Mapping[str, int], axes: str) -> str:
    """Return the extents that a pattern needs: all but one of each group."""
    groups = [group for group in groups_of(axes) if len(group) > 1]
    needed = [letter for group in groups for letter in group[:-1] if letter in sizes]
    return "".join(f", {letter}={sizes[letter]}" for letter in needed)


def _key(target: str) -> str:
    """Return a name as a literal; with a counter, as one that Python fills. Other braces are those of foreign names."""
    plain = json.dumps(target) if target.isascii() else ascii(target)
    try:
        return f"f{plain}" if counters(target) else plain
    except MarkError:
        return plain


def _quoted(text: str) -> str:
    """Return a docstring, whatever stands in names of files and classes."""
    inner = one_line(text, 400).replace("\\", "/").replace('"', "'")
    return f'"""{inner}"""'


def _variable(name: str) -> str:
    """Return `attention_q_bias` for `blocks.{i}.attention.q.bias`."""
    return re.sub(r"\W+", "_", name.replace("blocks.{i}.", ""))


def _written(variable: str, steps: Iterable[str | Affine]) -> Iterator[str]:
    """Yield lines; what is done to each number in several steps is one, for rounding and for readers."""
    now = Affine(1.0, 0.0)
    for step in (*steps, ""):
        if isinstance(step, Affine):
            now = Affine(step.scale * now.scale, step.scale * now.offset + step.offset)
            continue
        scale = 1.0 if abs(now.scale - 1) <= _SAME else now.scale
        if scale != 1 or abs(now.offset) > _SAME:
            yield f"{variable} = {_affine(variable, scale, now.offset)}"
        now = Affine(1.0, 0.0)
        if step:
            yield step


def _function(expression: str, sizes: Mapping[str, Any]) -> Affine:
    """Return what an expression of conform.toml does to a weight."""
    return affine(expression, WEIGHT, sizes)


def _affine(variable: str, scale: float, offset: float) -> str:
    times = f"{variable} * {scale!r}" if scale != 1 else variable
    return times if not offset else f"{times} {'+' if offset > 0 else '-'} {abs(offset)!r}"
