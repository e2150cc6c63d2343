"""The definitions of a notebook or of a script, without what it runs: training, files that are not there, plots."""

from __future__ import annotations

import ast
import contextlib
import linecache
import math
import signal
import sys
import traceback
import types
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from conformkit.conformance.driver import notebooks, syntax

__all__ = ["Trains", "defined_by", "only_runs", "runs_stopped", "training_stopped", "trains_at"]

_STEPS = 3
"""So many backward passes are a demonstration; more are a training."""
_SECONDS = 3.0
"""Processor time that a statement may take where only definitions are wanted."""
_SECONDS_TO_RUN = 10.0
"""Processor time of a file until a statement that defines nothing is taken for its main job: it evaluates, or draws."""
_LOOKS = 10
"""How often it is looked at in that time."""
_RUNS = (ast.Expr, ast.For, ast.While, ast.With, ast.AsyncFor, ast.AsyncWith, ast.Assert, ast.Delete)
_TEXT = "".join(map(chr, (10, *range(32, 127)))) * 50
"""What stands for a text that cannot be read."""
_DEFINES = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


class Trains(Exception):
    """The code trains when it is imported."""


class _TooLong(Exception):
    """A statement took too long."""


@contextlib.contextmanager
def training_stopped(steps: int = _STEPS) -> Iterator[None]:
    """Raise Trains in code that runs more backward passes than so many; nothing where torch is not there."""
    torch: Any = sys.modules.get("torch")
    if torch is None:
        yield
        return
    real, left = torch.Tensor.backward, float(steps)

    def backward(*args: Any, **kwargs: Any) -> Any:
        nonlocal left
        left -= 1
        if left < 0:
            message = "it trains when it is imported"
            raise Trains(message)
        return real(*args, **kwargs)

    torch.Tensor.backward = backward
    try:
        yield
    finally:
        left = math.inf  # whatever the code keeps of this function counts no more
        if torch.Tensor.backward is backward:  # else the code has put its own there, which is what users call
            torch.Tensor.backward = real


def trains_at(path: Path) -> str:
    """Return the line of a file where a loop outside of functions trains, nothing if there is none: it need not run."""
    content = path.read_bytes()
    if b".backward(" not in content:
        return ""
    try:
        tree = syntax.module(content, str(path))
    except (SyntaxError, ValueError):
        return ""
    loops = (node for node in _outside_of_functions(tree) if isinstance(node, ast.For | ast.While))
    return next((f"{path.name}:{loop.lineno}" for loop in loops if any(map(_goes_back, ast.walk(loop)))), "")


def _outside_of_functions(node: ast.AST) -> Iterator[ast.AST]:
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, (*_DEFINES, ast.Lambda)) and not _is_main(child):
            yield child
            yield from _outside_of_functions(child)


def _goes_back(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "backward"


@contextlib.contextmanager
def runs_stopped(path: Path) -> Iterator[None]:
    """Raise Trains where a file computes for long in one statement that defines nothing and imports nothing."""
    try:
        statements = syntax.module(
            path.read_bytes(), str(path)
        ).body  # now: a signal may come while something is parsed
    except (SyntaxError, ValueError):
        statements = []
    at, looks = 0, 0

    def look(_: int, frame: types.FrameType | None) -> None:
        nonlocal at, looks
        while frame is not None and (frame.f_code.co_filename, frame.f_code.co_name) != (str(path), "<module>"):
            frame = frame.f_back
        found = _statement_at(statements, frame.f_lineno) if frame is not None else None
        at, looks = (found.lineno, looks + 1 if found.lineno == at else 1) if found is not None else (0, 0)
        if found is not None and looks > _LOOKS and _is_run(found):
            message = f"takes more than {_SECONDS_TO_RUN:g} s when it is imported"
            raise Trains(message)

    with _timed(look, _SECONDS_TO_RUN / _LOOKS, _SECONDS_TO_RUN / _LOOKS):
        yield


def only_runs(error: BaseException, path: Path) -> str:
    """Return the line of a file that raised while it was imported, if it defines nothing; else nothing.

    A statement that defines nothing calls something, loops, or keeps the result of a call.
    """
    line = next((n for frame, n in traceback.walk_tb(error.__traceback__) if frame.f_code.co_filename == str(path)), 0)
    found = _statement_at(syntax.module(path.read_bytes(), str(path)).body, line) if line else None
    return f"{path.name}:{line}" if found is not None and _is_run(found) else ""


def _statement_at(statements: Sequence[ast.stmt], line: int) -> ast.stmt | None:
    return next((s for s in statements if s.lineno <= line <= (s.end_lineno or s.lineno)), None)


def _is_run(statement: ast.stmt) -> bool:
    calls = any(isinstance(node, ast.Call) for node in ast.walk(statement))
    return isinstance(statement, (*_RUNS, ast.Assign, ast.AnnAssign, ast.If, ast.Try)) and calls


def defined_by(module: types.ModuleType, path: Path) -> list[str]:
    """Run in a module what a file or a notebook imports, defines and sets; return which statements raised.

    Loops, calls and other statements that define nothing are not run.
    """
    raised = []
    for file, code in _parts(path):
        try:
            tree = syntax.module(code, file)
        except (SyntaxError, ValueError) as error:
            raised.append(f"{Path(file).name}: {type(error).__name__}: {error}")
            continue
        for statement in tree.body:
            read = _texts_read(statement)
            if (read or _makes_importable(statement) or not isinstance(statement, _RUNS)) and not _is_main(statement):
                problem = _run(statement, file, module)
                vars(module).update(dict.fromkeys(read, _TEXT) if problem else {})
                told = f"{problem}; a text of the kit's is read in its place" if read else problem
                raised += [f"{Path(file).name}:{statement.lineno} {told}"] if problem else []
    return raised


def _makes_importable(statement: ast.stmt) -> bool:
    """Whether it is `sys.path.append(…)` or the like: what follows imports from there."""
    return isinstance(statement, ast.Expr) and ast.unparse(statement).startswith("sys.path.")


def _texts_read(statement: ast.stmt) -> list[str]:
    """Return the names that a statement gives what it reads from a file, if it does nothing else.

    What follows computes the size of the vocabulary from it, which classes read.
    """
    several = isinstance(statement, ast.With)
    parts = statement.body if isinstance(statement, ast.With) else [statement]
    calls = [node.func for node in ast.walk(statement) if isinstance(node, ast.Call)]
    opens = any(isinstance(call, ast.Name) and call.id == "open" for call in calls)
    given = [_name_of_text(part) for part in parts]
    return [name for name in given if name] if opens and all(given) and (several or len(calls) > 1) else []


def _name_of_text(statement: ast.stmt) -> str:
    """Return the name in `text = f.read()`, nothing for other statements."""
    if not isinstance(statement, ast.Assign) or not isinstance(statement.value, ast.Call):
        return ""
    target, call = statement.targets[0], statement.value.func
    return target.id if isinstance(target, ast.Name) and isinstance(call, ast.Attribute) and call.attr == "read" else ""


def _parts(path: Path) -> Iterator[tuple[str, str]]:
    """Yield the code of a file, or of each cell of a notebook, with the name under which a traceback shows it."""
    content = path.read_bytes()
    if path.suffix != notebooks.SUFFIX:
        yield str(path), content.decode(errors="replace")
        return
    for number, code in notebooks.cells(content):
        file = f"{path}, cell {number}"
        linecache.cache[file] = (len(code), None, [line + "\n" for line in code.splitlines()], file)
        yield file, code


def _is_main(statement: ast.AST) -> bool:
    return isinstance(statement, ast.If) and "__main__" in ast.dump(statement.test)


def _run(statement: ast.stmt, file: str, module: types.ModuleType) -> str:
    """Run one statement; return what it raised, if it did. A definition that asks for a missing module passes it on."""
    code = compile(ast.Module([statement], []), file, "exec")
    try:
        with training_stopped(0), _limited():
            exec(code, vars(module))  # noqa: S102 - this is what importing does
    except ModuleNotFoundError:
        raise
    except Exception as error:
        if isinstance(statement, _DEFINES):
            raise
        return f"raised {type(error).__name__}: {str(error)[:200]}"
    return ""


@contextlib.contextmanager
def _limited() -> Iterator[None]:
    """Stop a statement that computes for long."""

    def stop(*_: object) -> None:
        message = "took too long"
        raise _TooLong(message)

    with _timed(stop, _SECONDS):
        yield


@contextlib.contextmanager
def _timed(stop: Callable[[int, types.FrameType | None], None], seconds: float, again: float = 0.0) -> Iterator[None]:
    """Call `stop` after so much processor time, and `again` so much later. Only the main thread can be stopped."""
    try:
        before = signal.signal(signal.SIGPROF, stop)
    except (ValueError, AttributeError):
        yield
        return
    try:
        signal.setitimer(signal.ITIMER_PROF, seconds, again)
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
