"""Patches find their place in the reference's code regardless of comments, docstrings and blank lines."""

from __future__ import annotations

import ast
import io
import tokenize
from collections.abc import Callable, Iterator, Mapping
from functools import cache

import pytest

from conformkit.conformance.defects import Patch, defects
from conformkit.conformance.diagnosis.patching import PatchError, patched
from conformkit.conformance.diagnosis.places import place

MODULE = '''"""A module: x = 1 stands here, too."""

def first(x):
    """x = 1, says the docstring."""
    x = 1  # (B, T)

    # why
    return x


class Second:
    x = 1

    @property
    def third(self):
        x = 1
        return x
'''


def _docstrings(tree: ast.AST) -> Iterator[tuple[list[ast.stmt], ast.stmt]]:
    """Yield each string that is a statement, after the statements that it stands among."""
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        for statement in list(body) if isinstance(body, list) else ():
            value = statement.value if isinstance(statement, ast.Expr) else None
            if isinstance(value, ast.Constant) and isinstance(value.value, str):
                yield body, statement


def _with_docstrings(text: str, docstring: str) -> str:
    """Return a module with every docstring replaced, or removed if there is code besides it."""
    lines = text.splitlines()
    for body, statement in _docstrings(ast.parse(text)):
        indent = " " * statement.col_offset
        lines[statement.lineno - 1] = indent + (docstring or '""' if len(body) == 1 else docstring)
        lines[statement.lineno : statement.end_lineno] = [""] * ((statement.end_lineno or 0) - statement.lineno)
    return "\n".join(lines) + "\n"


def _code_lines(text: str) -> Iterator[tuple[str, bool]]:
    """Yield the lines of a module without comments, and whether a comment may follow each."""
    lines = text.splitlines()
    inside: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            row, column = token.start
            lines[row - 1] = lines[row - 1][:column].rstrip()
        if token.type == tokenize.STRING:
            inside.update(range(token.start[0], token.end[0]))
    for row, line in enumerate(lines, 1):
        yield line, row not in inside


def _bare(text: str) -> str:
    """Return a module without comments, docstrings and blank lines."""
    return "".join(f"{line}\n" for line, _ in _code_lines(_with_docstrings(text, "")) if line.strip())


def _rewritten(text: str) -> str:
    """Return a module with other docstrings, a comment behind each line, and more between the lines."""
    written = _with_docstrings(text, '"""Another one (x = 1; "y")."""')
    more = "  # don't(\n\n    # x = [1\n\n"
    return "".join(line + (more if commented else "\n") for line, commented in _code_lines(written))


@cache
def _code(text: str) -> str:
    """Return what a module does, without its docstrings."""
    tree = ast.parse(text)
    for body, statement in _docstrings(tree):
        body.remove(statement)
    return ast.dump(tree)


def _made(patches: tuple[Patch, ...], sources: Mapping[str, str]) -> dict[str, str]:
    """Return what the patched modules do, by file."""
    return {file: _code(text) for file, text in patched(patches, sources).items() if text != sources[file]}


@pytest.mark.parametrize("other", [_bare, _rewritten], ids=["bare", "rewritten"])
@pytest.mark.parametrize("every", [25, pytest.param(1, marks=pytest.mark.full)], ids=["some", "all"])
def test_a_patch_makes_the_same_code_of_a_reference_with_other_comments_docstrings_and_blank_lines(
    other: Callable[[str], str], every: int
) -> None:
    """Would break if the effect of a known mistake depended on comments about the code."""
    originals = patched(())
    altered = {file: other(text) for file, text in originals.items()}
    for name, defect in list(defects().items())[::every]:
        assert _made(defect.patches, altered) == _made(defect.patches, originals), name


def test_every_patch_leaves_python() -> None:
    """Would break if a known mistake were caught for its syntax, whatever its clauses check."""
    originals = patched(())
    for name, defect in defects().items():
        for file, text in patched(defect.patches, originals).items():
            if text != originals[file]:
                compile(text, f"{file} with {name}", "exec")


@pytest.mark.parametrize("other", [_bare, _rewritten], ids=["bare", "rewritten"])
def test_every_patch_fits_a_reference_with_other_comments_docstrings_and_blank_lines(
    other: Callable[[str], str],
) -> None:
    """Would break if an edit of a comment in the reference required changes to known mistakes."""
    altered = {file: other(text) for file, text in patched(()).items()}
    assert all(altered[file] != text for file, text in patched(()).items())
    for name, defect in defects().items():
        assert patched(defect.patches, altered) != altered, name


@pytest.mark.parametrize(
    ("find", "at", "want"),
    [
        ("x = 1", "first", "x = 1"), ("x = 1", "Second.third", "x = 1"),
        ("x = 1\n    return x", "first", "x = 1  # (B, T)\n\n    # why\n    return x"),
        ("    x = 1  # other words\n\n    return", "", "    x = 1  # (B, T)\n\n    # why\n    return"),
        ("# other words\n    return", "first", "    return"), ("@property", "Second.third", "@property"),
        ('"""No words."""\n    x = 1', "first", "    x = 1"),
    ],
    ids=["function", "method", "comment-between", "comments-of-both", "comment-first", "decorator", "docstring-first"],
)  # fmt: skip
def test_a_place_is_found_within_a_definition(find: str, at: str, want: str) -> None:
    found = place("module.py", MODULE, find, at)
    assert MODULE[found] == want


@pytest.mark.parametrize(
    ("find", "at", "said"),
    [
        ("y = 2", "", r"^module\.py does not hold 'y = 2'$"),
        ("# why", "", r"does not hold '# why'$"),
        ("x = 1", "", r"^module\.py holds 'x = 1' 3 times, .* they are in first, Second, Second\.third$"),
        ("x", "first", r"^module\.py, in first, holds 'x' 3 times, expected once; use a longer `find`$"),
        ("@property", "first", r"^module\.py, in first, does not hold '@property', but Second\.third does$"),
        ("x = 1", "third", r"^module\.py has no definition third, only first, Second, Second\.third$"),
    ],
    ids=["never", "comment", "several", "several-there", "elsewhere", "no-definition"],
)
def test_a_patch_that_does_not_fit_says_where_its_text_is(find: str, at: str, said: str) -> None:
    with pytest.raises(PatchError, match=said):
        place("module.py", MODULE, find, at)


def test_a_place_in_invalid_python_is_refused() -> None:
    with pytest.raises(PatchError, match=r"module\.py, as earlier patches leave it, is not Python"):
        place("module.py", "def first(:\n", "first")
