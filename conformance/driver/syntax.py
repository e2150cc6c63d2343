"""Python source as a tree, one thread at a time."""

import ast
import threading
import warnings

__all__ = ["expression", "module"]

# CPython before 3.11.8 and 3.12.2 counts the depth of a tree once for all threads: two that parse at the same time can
# end in "SystemError: AST constructor recursion depth mismatch" (CPython issue 106905). All threads share the filters
# of warnings, too.
_PARSING = threading.Lock()


def expression(source: str) -> ast.expr:
    """Return the tree of one expression, without Python's warnings about it; raise what `ast.parse` raises."""
    with _PARSING, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(source, mode="eval").body


def module(source: str | bytes, name: str = "<unknown>") -> ast.Module:
    """Return the tree of a module, without Python's warnings about it; raise what `ast.parse` raises."""
    with _PARSING, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(source, name)
