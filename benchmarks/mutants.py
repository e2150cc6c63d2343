"""Draw small changes of product code, and count those that the tests notice.

    python benchmarks/mutants.py [--draw N] [--seed S] [--whole] [PATH …]

Each mutant changes one comparison, condition, operator, number, truth value, text or statement of the product, or of
the files and folders that are named. Numbers and texts of clauses stay: another example judges as well; so does
`strict=` of zip, which only says what the code relies on. Tests run in a
copy of the repository, first those of `pytest --changed`, which takes what the change concerns; with `--whole`, all
quick tests where those notice nothing. A mutant counts as caught if a test fails that passes without it. What is
printed of the others is for a reader: some change nothing that anybody could see.

mutmut and cosmic-ray import the code under test in the process of the tests; here, much of it runs in others.
"""

from __future__ import annotations

import argparse
import ast
import random
import re
import subprocess
import sys
import sysconfig
import tempfile
import venv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PRODUCT = ("spec", "fixtures", "reference", "conformance", "cli")
CLAUSES = "conformance/suite/test_"
SECONDS = 900
"""A mutant that never ends is noticed, too."""
_OTHER: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.GtE, ast.LtE: ast.Gt, ast.Gt: ast.LtE, ast.GtE: ast.Lt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.And: ast.Or, ast.Or: ast.And,
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult,
}  # fmt: skip


@dataclass(frozen=True)
class Mutant:
    """A change of one place in a file."""

    file: str
    line: int
    start: int
    """The first byte that is replaced."""
    stop: int
    text: str

    def of(self, source: bytes) -> bytes:
        """Return the changed source."""
        return source[: self.start] + self.text.encode() + source[self.stop :]

    def told(self, source: bytes) -> str:
        """Return the change in one line."""
        before = " ".join(source[self.start : self.stop].decode().split())
        return f"{self.file}:{self.line}: {before[:90]} → {' '.join(self.text.split())[:90]}"


def mutants(file: str, source: bytes) -> Iterator[Mutant]:
    """Yield the mutants of a file, in the order of their places."""
    lines = [0]
    for line in source.splitlines(keepends=True):
        lines.append(lines[-1] + len(line))
    for node, text in _changes(ast.parse(source)):
        if file.startswith(CLAUSES) and isinstance(node, ast.Constant) and not isinstance(node.value, bool):
            continue
        start = lines[node.lineno - 1] + node.col_offset
        stop = lines[(node.end_lineno or node.lineno) - 1] + (node.end_col_offset or 0)
        if source[start:stop].decode() != text:
            yield Mutant(file, node.lineno, start, stop, text)


def _changes(node: ast.AST) -> Iterator[tuple[ast.expr | ast.stmt, str]]:
    """Yield what can be changed in code that runs: no annotation, no docstring, nothing for types alone."""
    if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
        return
    if isinstance(node, ast.expr):
        yield from _of_expression(node)
    elif isinstance(node, ast.stmt):
        yield from _of_statement(node)
    told = {
        "annotation",
        "returns",
        *(["keywords"] if isinstance(node, ast.Call) and _name(node.func) == "zip" else []),
    }
    for name, value in ast.iter_fields(node):
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST) and name not in told and not _is_text_alone(child):
                yield from _changes(child)


def _of_expression(node: ast.expr) -> Iterator[tuple[ast.expr, str]]:
    if isinstance(node, ast.Compare) and type(node.ops[0]) in _OTHER:
        ops = [_OTHER[type(node.ops[0])](), *node.ops[1:]]
        yield node, f"({ast.unparse(ast.Compare(node.left, ops, node.comparators))})"
    elif isinstance(node, ast.BoolOp):
        yield node, f"({ast.unparse(ast.BoolOp(_OTHER[type(node.op)](), node.values))})"
    elif isinstance(node, ast.BinOp) and type(node.op) in _OTHER:
        yield node, f"({ast.unparse(ast.BinOp(node.left, _OTHER[type(node.op)](), node.right))})"
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield node, f"({ast.unparse(node.operand)})"
    elif isinstance(node, ast.IfExp):
        yield node, f"({ast.unparse(ast.IfExp(node.test, node.orelse, node.body))})"
    elif isinstance(node, ast.Constant) and not isinstance(node.value, bytes):
        yield from _of_constant(node)


def _of_constant(node: ast.Constant) -> Iterator[tuple[ast.expr, str]]:
    if isinstance(node.value, bool):
        yield node, str(not node.value)
    elif isinstance(node.value, int | float):
        yield node, repr(node.value + 1)
    elif isinstance(node.value, str) and " " in node.value:  # a text for people
        yield node, repr("")


def _of_statement(node: ast.stmt) -> Iterator[tuple[ast.expr | ast.stmt, str]]:
    if isinstance(node, ast.If | ast.While):
        yield node.test, "False"
    elif isinstance(node, ast.Return) and node.value is not None:
        yield node, "return None"
    elif isinstance(node, ast.Expr | ast.AugAssign | ast.Raise | ast.Continue | ast.Break):
        yield node, "pass"


def _name(node: ast.expr) -> str:
    return node.id if isinstance(node, ast.Name) else ""


def _is_text_alone(node: ast.AST) -> bool:
    """Whether it is a docstring, a list of names to export, or part of an f-string, which has no place of its own."""
    if isinstance(node, ast.Assign):
        return isinstance(node.targets[0], ast.Name) and node.targets[0].id == "__all__"
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))


def drawn(paths: Sequence[str], count: int, seed: int) -> list[Mutant]:
    """Return this many mutants; each place is as probable as any other."""
    named = [ROOT / path for path in paths or PRODUCT]
    files = sorted({file for place in named for file in ([place] if place.is_file() else place.rglob("*.py"))})
    found = [one for file in files for one in mutants(file.relative_to(ROOT).as_posix(), file.read_bytes())]
    return random.Random(seed).sample(found, min(count, len(found)))


class Copy:
    """The repository as it is committed, in another folder, with an environment in which it is installed."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "copy"
        subprocess.run(["git", "clone", "-q", str(ROOT), str(self.root)], check=True)
        subprocess.run(["git", "branch", "-qf", "main", "HEAD"], cwd=self.root, check=False, capture_output=True)
        subprocess.run(["git", "remote", "remove", "origin"], cwd=self.root, check=True)
        venv.create(self.root / ".venv", symlinks=True)
        packages = Path(sysconfig.get_path("purelib", vars={"base": str(self.root / ".venv")}))
        (packages / "outer.pth").write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")
        for file in Path(sysconfig.get_path("purelib")).glob("__editable__*conformkit*"):
            text = file.read_text(encoding="utf-8").replace(str(ROOT), str(self.root))
            (packages / file.name).write_text(text, encoding="utf-8")
        self.python = self.root / ".venv" / "bin" / "python"
        command = (Path(sys.executable).with_name("conform")).read_text(encoding="utf-8")
        script = self.python.with_name("conform")
        script.write_text(re.sub(r"^#!.*", f"#!{self.python}", command), encoding="utf-8")
        script.chmod(0o755)
        self.broken: list[str] = []
        """Tests that fail without any change."""

    def failing(self, *options: str) -> str:
        """Return the first test that fails, or nothing."""
        command = [str(self.python), "-m", "pytest", "-x", "-q", "-p", "no:randomly", "--no-store", *options]
        try:
            done = subprocess.run(command, cwd=self.root, capture_output=True, text=True, timeout=SECONDS, check=False)
        except subprocess.TimeoutExpired:
            return "no end"
        if done.returncode in {0, 5}:
            return ""
        failed = re.search(r"^(?:FAILED|ERROR) (\S+(?: [^-]\S*)*)", done.stdout, re.MULTILINE)
        return failed[1] if failed else f"exit code {done.returncode}"

    def caught_by(self, mutant: Mutant, *, whole: bool) -> str:
        """Return the test that fails with a mutant, and not without it; nothing if there is none."""
        file = self.root / mutant.file
        original = file.read_bytes()
        changed = mutant.of(original)
        try:
            return self._first(file, original, changed, "--changed", "-n0") or (
                self._first(file, original, changed) if whole else ""
            )
        finally:
            file.write_bytes(original)

    def _first(self, file: Path, original: bytes, changed: bytes, *options: str) -> str:
        """Return the first test that only the change makes fail: what fails anyway hides no other."""
        while True:
            file.write_bytes(changed)
            found = self.failing(*options, *(f"--deselect={test}" for test in self.broken))
            file.write_bytes(original)
            if "::" not in found or not self.failing("-n0", "-m", "", found):
                return found
            self.broken.append(found)


def main() -> int:
    """Print each mutant with the test that notices it, and how many are noticed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--draw", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--whole", action="store_true", help="run all quick tests where the nearest notice nothing")
    parser.add_argument("paths", nargs="*")
    options = parser.parse_args()
    caught, chosen = 0, drawn(options.paths, options.draw, options.seed)
    with tempfile.TemporaryDirectory() as folder:
        copy = Copy(Path(folder))
        for number, mutant in enumerate(chosen, start=1):
            noticed = copy.caught_by(mutant, whole=options.whole)
            caught += bool(noticed)
            print(mutant.told((ROOT / mutant.file).read_bytes()))
            print(f"    {noticed or 'NOT CAUGHT'} ({caught} of {number})", flush=True)
        print(*(f"fails without any change: {test}" for test in copy.broken), sep="\n")
    return 0 if caught == len(chosen) else 1


if __name__ == "__main__":
    sys.exit(main())
