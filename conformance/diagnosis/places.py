"""Where a piece of code is in a module, ignoring comments, docstrings and blank lines."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache

from conformkit.conformance.driver import syntax

__all__ = ["PatchError", "place"]

_PIECE = re.compile(
    r"""
      (?P<comment> [ \t]*\#[^\n]* )
    | (?P<string> [rRbBfFuU]{0,2} (?: \"{3}(?:[^\\]|\\.)*?\"{3} | '{3}(?:[^\\]|\\.)*?'{3}
                                  | "(?:[^"\\\n]|\\.)*" | '(?:[^'\\\n]|\\.)*' ) )
    | (?P<open> [(\[{] )
    | (?P<close> [)\]}] )
    """,
    re.VERBOSE | re.DOTALL,
)
_BLANK_LINE = re.compile(r"(?<=\n)[ \t]*\n")

_Bare = tuple[str, tuple[int, ...]]
"""Code without comments, docstrings and blank lines, and the position of each of its characters in the text."""


class PatchError(ValueError):
    """A patch does not fit the reference: no such file or definition, or its text does not occur exactly once."""


def place(file: str, text: str, find: str, at: str = "") -> slice:
    """Return where `find` is in the text of a module, within the definition `at` (`Class.method`) or anywhere.

    Comments, docstrings and blank lines are ignored in both texts; those within the place found belong to it.
    Raises: PatchError when there is no such definition, or when `find` does not occur exactly once.
    """
    definitions = _definitions(file, text)
    if at and at not in definitions:
        raise PatchError(f"{file} has no definition {at}, only {', '.join(definitions)}")
    found = list(_places(text, find))
    inside = [spot for spot in found if _within(spot, definitions[at])] if at else found
    if len(inside) == 1:
        return inside[0]
    where = f"{file}, in {at}," if at else file
    others = ", ".join(dict.fromkeys(_innermost(spot, definitions) for spot in found))
    if inside:
        advice = "a longer `find`" if at else f"`at` or a longer `find` to distinguish them: they are in {others}"
        raise PatchError(f"{where} holds {find!r} {len(inside)} times, expected once; use {advice}")
    raise PatchError(f"{where} does not hold {find!r}" + (f", but {others} does" if found else ""))


def _places(text: str, find: str) -> Iterator[slice]:
    """Yield each place where the code of `find` occurs in the code of a text."""
    code, offsets = _bare(text)
    wanted, kept = _bare(find)
    if kept and kept[0] > 0 and wanted.startswith("\n"):
        wanted = wanted[1:]  # it begins with a comment, whose line is ignored
    start = code.find(wanted) if wanted.strip() else -1
    while start >= 0:
        end = start + len(wanted)
        yield slice(offsets[start], offsets[end - 1] + 1)
        start = code.find(wanted, end)


@lru_cache(maxsize=64)
def _bare(text: str) -> _Bare:
    hidden = bytearray(len(text))
    for start, end in _ignored(text):
        hidden[start:end] = b"\1" * (end - start)
    offsets = [number for number, hides in enumerate(hidden) if not hides]
    code = "".join(text[number] for number in offsets)
    for blank in reversed([*_BLANK_LINE.finditer(code)]):
        del offsets[slice(*blank.span())]
    return "".join(text[number] for number in offsets), tuple(offsets)


def _ignored(text: str) -> Iterator[tuple[int, int]]:
    """Yield the spans of comments, with the blanks before them, and of strings that are whole statements."""
    depth = 0
    for piece in _PIECE.finditer(text):
        depth += (piece.lastgroup == "open") - (piece.lastgroup == "close")
        if piece.lastgroup == "comment":
            yield piece.span()
        elif piece.lastgroup == "string" and depth <= 0:
            start = text.rfind("\n", 0, piece.start()) + 1
            after = text[piece.end() :].partition("\n")[0]
            if not text[start : piece.start()].strip() and not after.partition("#")[0].strip():
                yield start, piece.end()


@lru_cache(maxsize=64)
def _definitions(file: str, text: str) -> Mapping[str, slice]:
    """Return the spans of the functions, methods and classes of a module, by dotted name, in their order."""
    try:
        tree = syntax.module(text)
    except SyntaxError as error:
        raise PatchError(f"{file}, as earlier patches leave it, is not Python: {error}") from error
    starts = [0, *(newline.end() for newline in re.finditer("\n", text)), len(text)]
    return dict(_named(tree, "", starts))


def _named(tree: ast.AST, prefix: str, starts: list[int]) -> Iterator[tuple[str, slice]]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            yield prefix + node.name, slice(starts[first - 1], starts[node.end_lineno or node.lineno])
            yield from _named(node, f"{prefix}{node.name}.", starts)
        else:
            yield from _named(node, prefix, starts)


def _within(spot: slice, whole: slice) -> bool:
    return bool(whole.start <= spot.start and spot.stop <= whole.stop)


def _innermost(spot: slice, definitions: Mapping[str, slice]) -> str:
    """Return the name of the smallest definition around a place."""
    around = [name for name, whole in definitions.items() if _within(spot, whole)]
    return around[-1] if around else "the module itself"
