"""Generate a class: honest submissions, right and wrong, in every form in which people submit, and pathological ones.

python benchmarks/class_of.py FOLDER [--submissions 200] [--seed 1]

The same seed makes the same class. Pathological submissions are bounded: even without isolation they fill no disk and
stop no machine.
"""

from __future__ import annotations

import argparse
import io
import random
import tarfile
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

RIGHT = Path(__file__).resolve().parents[1] / "examples" / "single_file.py"
MISTAKES = (
    (" / q.shape[-1] ** 0.5", ""),
    ("positions[:, None] >= positions", "positions[:, None] > positions"),
    ("return scaled_dot_product_attention(q, k, v, tril(x) if self.causal else None)",
     "return scaled_dot_product_attention(q, k, v, None)"),
    ("mask = tril(x) if self.causal else None", "mask = None"),
    ("width = d_model // num_heads", "width = d_model // num_heads + 1"),
    ("math.cos(angle) if j % 2 else math.sin(angle)", "math.sin(angle) if j % 2 else math.cos(angle)"),
    ("(j - j % 2) / d_model", "j / d_model"),
    ("self.attention(self.norm1(x)) + x", "self.attention(x) + x"),
    ("return self.dropout(y)", "return y"),
    ("1e-5", "1e-3"),
    ("return x + self.table", "return x - self.table"),
    ("self.value = glorot(d_model, d_v)", "self.value = glorot(d_model, d_v).detach()"),
)  # fmt: skip
"""One line of correct code, and a student's wrong version of it."""

FORMS = ("folder", "zip", "tar", "file")
"""The forms in which honest people submit."""
SCORES = "    scores = einsum("
Files = Mapping[str, str | bytes]


def inside(statement: str) -> Callable[[str], Files]:
    """Return the files of a submission that does this in its attention."""
    return lambda code: {"solution.py": code.replace(SCORES, f"    {statement}\n{SCORES}", 1)}


def before(statements: str) -> Callable[[str], Files]:
    """Return the files of a submission that does this when it is imported."""
    return lambda code: {"solution.py": f"{statements}\n{code}"}


PATHOLOGICAL: Mapping[str, Callable[[str], Files]] = {
    "syntax": before("def ("),
    "exception": before("raise RuntimeError('not today')"),
    "missing": before("import a_package_that_nobody_has"),
    "exit": before("import os; os._exit(0)"),
    "loop": before("while True: pass"),
    "exit-inside": inside("__import__('os')._exit(0)"),
    "segfault": inside("__import__('ctypes').string_at(0)"),
    "loop-inside": inside("while True: pass"),
    "raise-inside": inside("raise SystemExit(0)"),
    "memory": inside("hoard = [bytearray(1 << 28) for _ in range(64)]"),
    "processes": inside("children = [__import__('os').fork() for _ in range(10)]"),
    "output": inside("print('x' * (1 << 24))"),
    "nan": inside("return q[..., :1] * float('nan') * v.sum()"),
    "nothing": lambda _: {"README.md": "I was ill."},
    "empty": lambda _: {},
    "latin": lambda code: {"solution.py": b"# \xe9t\xe9\n" + code.encode()},
    "config": lambda code: {"solution.py": code, "conform.toml": "[limits\n"},
    "declares": lambda code: {
        "solution.py": code,
        "conform.toml": "[limits]\ntokens = 1\nd_model = 1\nnum_heads = 1\n",
    },
}


def make(folder: Path, submissions: int, seed: int, pathological: float = 0.2) -> dict[str, str]:
    """Write a class of this size into a new folder; return the kind of each submission, by its name."""
    folder.mkdir(parents=True)
    draw, right = random.Random(seed), RIGHT.read_text(encoding="utf-8")  # noqa: S311 - a class, not a secret
    hostile = draw.sample(range(submissions), round(pathological * submissions))
    special = dict(zip(hostile, repeated(draw, [*PATHOLOGICAL, *BROKEN]), strict=False))
    kinds: dict[str, str] = {}
    for number in range(submissions):
        name = f"student{number:04}"
        code = right
        for line, instead in draw.sample(MISTAKES, draw.choice((0, 0, 1, 1, 2))):
            code = code.replace(line, instead, 1)
        kinds[name] = special.get(number) or draw.choice(FORMS)
        hand_in(folder / name, kinds[name], f"{code}\n# {name}\n", draw.choice(("folder", "zip")))
    return kinds


def repeated(draw: random.Random, kinds: Sequence[str]) -> Iterator[str]:
    """Yield every kind once, in a drawn order, then all of them again."""
    while True:
        yield from draw.sample(kinds, len(kinds))


def hand_in(path: Path, kind: str, code: str, form: str) -> None:
    """Write a submission of that kind, in that form if the kind allows a choice."""
    if kind in FORMS:
        pack(path, {"solution.py": code}, kind)
    elif kind in BROKEN:
        BROKEN[kind](path, code)
    else:
        pack(path, PATHOLOGICAL[kind](code), form)


def pack(path: Path, files: Files, form: str) -> None:
    """Write files as a folder, an archive that contains one folder, or a single file."""
    contents = {name: text if isinstance(text, bytes) else text.encode() for name, text in files.items()}
    if form == "folder":
        path.mkdir()
        for name, data in contents.items():
            (path / name).write_bytes(data)
    elif form == "zip":
        with zipfile.ZipFile(path.with_suffix(".zip"), "w", zipfile.ZIP_DEFLATED) as archive:
            for name, data in contents.items():
                archive.writestr(f"homework/{name}", data)
    elif form == "tar":
        with tarfile.open(path.with_suffix(".tar.gz"), "w:gz") as archive:
            for name, data in contents.items():
                entry = tarfile.TarInfo(f"homework/{name}")
                entry.size = len(data)
                archive.addfile(entry, io.BytesIO(data))
    else:
        (data,) = contents.values()
        path.with_suffix(".py").write_bytes(data)


def outward(path: Path, code: str) -> None:
    """Write a zip that would overwrite its neighbor."""
    with zipfile.ZipFile(path.with_suffix(".zip"), "w") as archive:
        archive.writestr("../student0000/solution.py", code)


def bomb(path: Path, code: str) -> None:
    """Write a zip that becomes a hundred megabytes."""
    with zipfile.ZipFile(path.with_suffix(".zip"), "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("solution.py", code)
        archive.writestr("zeros", bytes(100 << 20))


def cut(path: Path, code: str) -> None:
    """Write half of a zip."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr("solution.py", code)
    path.with_suffix(".zip").write_bytes(stream.getvalue()[: len(code) // 2])


def link(path: Path, code: str) -> None:
    """Write a folder with links to files outside it."""
    path.mkdir()
    (path / "solution.py").write_text(code, encoding="utf-8")
    (path / "everybody").symlink_to("..")
    (path / "passwords").symlink_to("/etc/passwd")


def rar(path: Path, code: str) -> None:
    """Write files of unsupported kinds."""
    path.with_suffix(".rar").write_bytes(code.encode())


BROKEN: Mapping[str, Callable[[Path, str], None]] = {
    "outward": outward,
    "bomb": bomb,
    "cut": cut,
    "link": link,
    "rar": rar,
}


def main() -> None:
    """Generate a class, and list the kind of each submission."""
    parser = argparse.ArgumentParser(description="Generate a class.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--submissions", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    for name, kind in make(options.folder, options.submissions, options.seed).items():
        print(f"{name} {kind}")


if __name__ == "__main__":
    main()
