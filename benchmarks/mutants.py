"""Draw small changes of product code, and count those that the quick tests notice.

    python benchmarks/mutants.py [--draw N] [--seed S] [--jobs N] [--minutes N] [--record] [PATH …]

Each mutant changes one comparison, condition, operator, number, truth value, text or statement of the product, or of
the files and folders that are named. Numbers and texts of clauses stay: another example judges as well; so do
`strict=` of zip, and `frozen=` and `slots=` of dataclasses, which only say what the code relies on.

Tests run in copies of the repository, first those of `pytest --changed`, which takes what the change concerns; then,
one mutant after another, all quick tests where those notice nothing, unless `--minutes` are over. A mutant counts as
caught if a test fails that passes without it; one that only ran out of time is not counted. What is printed of the
others is for a reader: some change nothing that anybody could see. `--record` writes what came out for docs/quality.md.

mutmut and cosmic-ray import the code under test in the process of the tests; here, much of it runs in others.
"""

from __future__ import annotations

import argparse
import ast
import os
import random
import re
import runpy
import subprocess
import sys
import sysconfig
import tempfile
import time
import venv
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PRODUCT = ("spec", "fixtures", "reference", "conformance", "cli")
CLAUSES = "conformance/suite/test_"
FIGURES = ROOT / "benchmarks" / "figures.toml"
ABOUT = "small changes of product code, drawn, and those that the quick tests notice"
SECONDS = 600
"""Tests that take longer never end, or the machine is busy: nobody knows which."""
NO_END = "ran out of time"
_OTHER: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.GtE, ast.LtE: ast.Gt, ast.Gt: ast.LtE, ast.GtE: ast.Lt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.And: ast.Or, ast.Or: ast.And,
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult,
}  # fmt: skip

_RELIED_ON = {"zip": {"strict"}, "dataclass": {"frozen", "slots"}}
"""Arguments of calls that right code does without."""


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
    for name, value in ast.iter_fields(node):
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST) and name not in {"annotation", "returns"} and not _says_nothing(node, child):
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


def _says_nothing(node: ast.AST, child: ast.AST) -> bool:
    """Whether a part of a node only says what the code relies on, or is a text alone."""
    if isinstance(child, ast.keyword) and isinstance(node, ast.Call):
        return child.arg in _RELIED_ON.get(_name(node.func), ())
    return _is_text_alone(child)


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
        folder.mkdir(exist_ok=True)
        subprocess.run(["git", "clone", "-q", str(ROOT), str(self.root)], check=True)
        subprocess.run(["git", "branch", "-qf", "main", "HEAD"], cwd=self.root, check=False, capture_output=True)
        subprocess.run(["git", "remote", "remove", "origin"], cwd=self.root, check=True)
        venv.create(self.root / ".venv", symlinks=True)
        packages = Path(sysconfig.get_path("purelib", vars={"base": str(self.root / ".venv")}))
        outer = [path for path in sys.path if path.endswith("-packages")]
        (packages / "outer.pth").write_text("\n".join(outer) + "\n", encoding="utf-8")
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
            return NO_END
        if done.returncode in {0, 5}:
            return ""
        failed = re.search(r"^(?:FAILED|ERROR) (\S+(?: [^-]\S*)*)", done.stdout, re.MULTILINE)
        return failed[1] if failed else f"exit code {done.returncode}"

    def caught_by(self, mutant: Mutant, *options: str) -> str:
        """Return the test that fails with a mutant, and not without it: what fails anyway hides no other."""
        file = self.root / mutant.file
        original = file.read_bytes()
        try:
            while True:
                file.write_bytes(mutant.of(original))
                found = self.failing(*options, *(f"--deselect={test}" for test in self.broken))
                file.write_bytes(original)
                if "::" not in found or not self.failing("-n0", "-m", "", found):
                    return found
                self.broken.append(found)
        finally:
            file.write_bytes(original)


@dataclass
class Draw:
    """Mutants, and the tests that noticed them."""

    mutants: Sequence[Mutant]
    copies: Sequence[Copy]
    end: float
    """When nothing more begins."""
    found: dict[Mutant, str] = field(default_factory=dict)
    """The test that noticed each that was tried, or nothing."""

    def run(self) -> None:
        """Try all of them: side by side with what each concerns, then alone with all quick tests."""
        free = list(self.copies)

        def nearest(mutant: Mutant) -> None:
            copy = free.pop()
            if time.monotonic() < self.end:
                self._tell(mutant, copy.caught_by(mutant, "--changed", "-n0"))
            free.append(copy)

        with ThreadPoolExecutor(len(free)) as pool:
            list(pool.map(nearest, self.mutants))
        for mutant in [mutant for mutant, noticed in self.found.items() if not noticed]:
            if time.monotonic() < self.end:
                self._tell(mutant, self.copies[0].caught_by(mutant, "-n", "logical"))

    def _tell(self, mutant: Mutant, noticed: str) -> None:
        self.found[mutant] = noticed
        print(mutant.told((ROOT / mutant.file).read_bytes()))
        print(f"    {noticed or 'NOT CAUGHT'} ({self})", flush=True)

    @property
    def counted(self) -> int:
        """How many were tried and did not only run out of time."""
        return sum(noticed != NO_END for noticed in self.found.values())

    @property
    def caught(self) -> int:
        """How many of these were noticed."""
        return sum(bool(noticed) for noticed in self.found.values()) - (len(self.found) - self.counted)

    def __str__(self) -> str:
        late = len(self.found) - self.counted
        return f"{self.caught} of {self.counted}" + (f", {late} {NO_END}" if late else "")


def recorded(text: str, draw: str, found: Draw) -> str:
    """Return figures.toml with what came out of a draw."""
    told = f"{datetime.now(UTC).date()}, {draw}; not noticed: {_places(found) or 'none'}"
    values = {"found": f"{found.counted}; {found.caught}", "measured": told}
    start = text.index(f'what = "{ABOUT}"')
    end = text.index("[[figure]]", start)
    block = text[start:end]
    for name, value in {**values, "again": f"`python benchmarks/mutants.py {draw}`"}.items():
        block = re.sub(rf'^{name} = ".*"$', lambda _, line=f'{name} = "{value}"': line, block, flags=re.MULTILINE)
    return text[:start] + block + text[end:]


def _places(found: Draw) -> str:
    return ", ".join(f"{mutant.file}:{mutant.line}" for mutant, noticed in found.found.items() if not noticed)


def main() -> int:
    """Print each mutant with the test that notices it, and how many are noticed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--draw", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="how many are tried side by side")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="begin nothing later than that")
    parser.add_argument("--record", action="store_true", help="write what came out into benchmarks/figures.toml")
    parser.add_argument("paths", nargs="*")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        copies = [Copy(Path(folder) / str(number)) for number in range(options.jobs)]
        draw = Draw(drawn(options.paths, options.draw, options.seed), copies, time.monotonic() + options.minutes * 60)
        draw.run()
        broken = sorted({test for copy in copies for test in copy.broken})
    print(*(f"fails without any change: {test}" for test in broken), sep="\n")
    print(f"of {len(draw.mutants)} drawn, noticed: {draw}")
    if options.record:
        said = recorded(FIGURES.read_text(encoding="utf-8"), f"--draw {options.draw} --seed {options.seed}", draw)
        FIGURES.write_text(said, encoding="utf-8")
        runpy.run_path(str(FIGURES.with_name("quality.py")), run_name="__main__")
    return 0 if draw.caught == draw.counted else 1


if __name__ == "__main__":
    sys.exit(main())
