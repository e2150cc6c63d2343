"""Whether an implementation's own code compares what its model returns by torch's cross-entropy: read off its sources.

That function applies the softmax itself. So what it gets is meant as logits, and a model that returns probabilities to
it is wrong; elsewhere to return them may be a style.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator
from pathlib import Path

from conformkit.conformance.driver.location import parse, sources

__all__ = ["ANY", "compared", "gives_logarithms"]

_FUNCTION, _CLASS = "cross_entropy", "CrossEntropyLoss"
_MODELS = ("model", "net", "network", "lm", "gpt", "transformer")
_LOGARITHMS = frozenset({"log_softmax", "LogSoftmax"})
ANY = "*"
"""Stands for the class of whatever is called a model."""
_MOVES = frozenset({
    "view", "reshape", "flatten", "transpose", "permute", "contiguous", "float", "double", "to", "squeeze", "mT", "T",
})  # fmt: skip
"""Methods and attributes that leave the numbers as they are."""


def compared(root: Path | None) -> frozenset[str]:
    """Return the classes whose results the code below a folder, or in a file, compares so; `ANY` for a model's."""
    trees = [] if root is None else [tree for tree in map(parse, sources(root)) if tree is not None]
    return frozenset(name for tree in trees for name in _in_module(tree))


def gives_logarithms(root: Path | None, but: str) -> bool:
    """Whether the code below a folder, or in a file, takes logarithms of probabilities outside of this class."""
    trees = [] if root is None else [tree for tree in map(parse, sources(root)) if tree is not None]
    kinds = [kind for tree in trees for kind in ast.walk(tree) if isinstance(kind, ast.ClassDef) and kind.name != but]
    return any(_last(node) in _LOGARITHMS for kind in kinds for node in ast.walk(kind) if isinstance(node, ast.Call))


def _last(call: ast.Call) -> str:
    return _named(call.func).rpartition(".")[2]


def _in_module(tree: ast.Module) -> Iterator[str]:
    """Yield the classes whose own methods compare what they return, and `ANY` where a model's results are compared."""
    losses = _losses(tree)
    if any(_compares(own, _MODELS, losses) for own in _functions(tree)):
        yield ANY
    for kind in ast.walk(tree):
        if isinstance(kind, ast.ClassDef) and any(_compares(own, ("self",), losses) for own in _functions(kind)):
            yield kind.name


def _losses(tree: ast.Module) -> set[str]:
    """Return the names of torch's function here, as `F.cross_entropy`, and of objects of its class."""
    brought = {
        alias.asname or alias.name: alias.name
        for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("torch")
        for alias in node.names
    }  # fmt: skip
    found = {f"{owner}.{_FUNCTION}" for owner in ("F", "functional")}
    found |= {own for own, theirs in brought.items() if theirs == _FUNCTION}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
            made = _named(node.value.func)
            if made == f"nn.{_CLASS}" or brought.get(made) == _CLASS:
                found |= {_named(target) for target in node.targets}
    return found


def _functions(node: ast.AST) -> Iterator[ast.AST]:
    """Yield its functions, and what a script does outside of them."""
    yield from (inner for inner in ast.walk(node) if isinstance(inner, ast.FunctionDef))
    if isinstance(node, ast.Module):
        yield ast.Module([line for line in node.body if not isinstance(line, ast.FunctionDef | ast.ClassDef)], [])


def _named(node: ast.expr) -> str:
    """Return a name as it stands, and an attribute as `owner.name` with the last name of its owner."""
    if isinstance(node, ast.Attribute):
        return f"{_named(node.value).rpartition('.')[2]}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


def _compares(function: ast.AST, callers: Collection[str], losses: Collection[str]) -> bool:
    """Whether a function gives one of these losses what a call of these returned, moved about at most."""
    returned: set[str] = set()
    nodes = (node for node in ast.walk(function) if isinstance(node, ast.Assign | ast.Call))
    for node in sorted(nodes, key=lambda node: (node.end_lineno or 0, node.end_col_offset or 0)):
        if isinstance(node, ast.Assign):
            kept = _is_returned(node.value, callers, returned)
            for target in node.targets:
                first = target.elts[0] if isinstance(target, ast.Tuple) and target.elts else target
                (returned.add if kept else returned.discard)(_named(first))
        elif _named(node.func) in losses:
            given = [*node.args[:1], *(word.value for word in node.keywords if word.arg == "input")]
            if any(_is_returned(one, callers, returned) for one in given):
                return True
    return False


def _is_returned(node: ast.expr, callers: Collection[str], returned: Collection[str]) -> bool:
    """Whether an expression is what a call of these returned, or a name of that."""
    while True:
        if isinstance(node, ast.Subscript) or (isinstance(node, ast.Attribute) and node.attr in _MOVES):
            node = node.value
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _MOVES:
            node = node.func.value
        elif isinstance(node, ast.Call):
            return _named(node.func).rpartition(".")[2].lower() in callers
        else:
            return bool(_named(node)) and _named(node) in returned
