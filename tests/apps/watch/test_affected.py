from pathlib import Path

import pytest

from conformkit.conformance.apps.watch.affected import change

HOME = Path("/home/me/pkg")
INIT = b"from .attention import attend\nfrom .block import Block\nfrom .norm import Norm\n"
ATTENTION = b"import math\nSCALE = 1.0\n\ndef attend(q):\n    return q * SCALE\n\ndef other(q):\n    return q\n"
NORM = b"class Norm:\n    eps = 1e-5\n"
BLOCK = (
    b"from . import attention as a\nfrom .norm import Norm\n\nclass Block:\n    def f(self):\n"
    b"        return a.attend(1)\n\nclass Plain:\n    def f(self):\n        return Norm()\n"
)
MODEL = (
    b"from pkg import Block, Norm\n\nclass Model:\n    def f(self):\n        return Block()\n\nclass Small:\n"
    b"    def f(self):\n        return 1\n"
)
NAMES = ("__init__", "attention", "norm", "block", "model")
FILES = {HOME / f"{name}.py": text for name, text in zip(NAMES, (INIT, ATTENTION, NORM, BLOCK, MODEL), strict=True)}
LINES = {
    "attend": ("attention.py", 4), "other": ("attention.py", 7), "Block": ("block.py", 4), "Plain": ("block.py", 8),
    "Model": ("model.py", 3), "Small": ("model.py", 7), "Norm": ("norm.py", 1),
}  # fmt: skip


def edited(name, old, new):
    path = HOME / name
    assert old in FILES[path]
    return {**FILES, path: FILES[path].replace(old, new)}


def reached(found, *, directly=False):
    return {name for name, (file, line) in LINES.items() if found.reaches(HOME / file, line, FILES, directly=directly)}


@pytest.mark.parametrize(
    ("name", "old", "new", "direct", "affected"),
    [
        ("attention.py", b"return q * SCALE", b"return q", {"attend"}, {"attend", "Block", "Plain", "Model"}),
        ("attention.py", b"SCALE = 1.0", b"SCALE = 2.0", set(), {"attend", "Block", "Plain", "Model"}),
        ("norm.py", b"1e-5", b"1e-6", {"Norm"}, {"Norm", "Plain"}),
        ("model.py", b"return 1", b"return 2", {"Small"}, {"Small"}),
    ],
    ids=["a function", "a constant beside it", "a class", "what nobody uses"],
)  # fmt: skip
def test_a_change_reaches_what_mentions_it_in_whatever_way_it_is_imported(name, old, new, direct, affected):
    found = change(FILES, edited(name, old, new))
    assert reached(found, directly=True) == direct
    assert affected - {"Plain"} <= reached(found) <= affected | {"other"}


def test_comments_and_blank_lines_change_nothing():
    found = change(FILES, edited("attention.py", b"import math\n", b"import math  # the root\n\n\n"))
    assert found.silent
    assert not reached(found)


@pytest.mark.parametrize("content", [b"def f(:", None, b"\xff\xfe"], ids=["half written", "deleted", "no text"])
def test_what_cant_be_read_may_affect_everything(content):
    after = {path: text for path, text in {**FILES, HOME / "norm.py": content}.items() if text is not None}
    found = change(FILES, after)
    assert found.everything
    assert not found.silent
    assert reached(found) == set(LINES)


def test_another_conform_toml_may_affect_everything():
    assert change({**FILES, HOME / "conform.toml": b""}, {**FILES, HOME / "conform.toml": b"x = 1"}).everything


def test_files_that_import_each_other_end_the_search():
    circle = {
        HOME / "a.py": b"from .b import B\n\nclass A:\n    x = B\n",
        HOME / "b.py": b"from .a import A\n\nclass B:\n    x = A\n",
    }
    found = change(circle, {**circle, HOME / "a.py": circle[HOME / "a.py"].replace(b"x =", b"y =")})
    assert found.reaches(HOME / "b.py", 3, circle)


class Counted(dict):
    """Files that can be read a limited number of times."""

    def __init__(self, files, looks):
        super().__init__(files)
        self.left = looks

    def _count(self):
        self.left -= 1
        assert self.left >= 0, "the same files are looked at over and over"

    def __contains__(self, path):
        self._count()
        return super().__contains__(path)

    def __getitem__(self, path):
        self._count()
        return super().__getitem__(path)


def ring(size, imports):
    """Return files of which each has a class that mentions the next file's, and one that mentions nothing."""
    return {
        HOME / f"m{i}.py": (
            imports(i) + f"class Idle{i}:\n    x = 1\n\nclass C{i}:\n    size = 1\n    x = C{(i + 1) % size}\n"
        ).encode()
        for i in range(size)
    }


@pytest.mark.parametrize(
    "names",
    [lambda i, j: [j], lambda i, j: [j, *(k for k in range(12) if k not in {i, j})]],
    ids=["each other's classes", "all classes from everywhere"],
)
def test_a_dozen_files_that_all_import_each_other_are_looked_at_once_an_import(names):
    """Would break if every path between two files through the others were tried: there are millions."""
    others = [[j for j in range(12) if j != i] for i in range(12)]
    files = ring(12, lambda i: "".join(
        f"from .m{j} import {', '.join(f'C{k}' for k in names(i, j))}\n" for j in others[i]
    ))  # fmt: skip
    changed = HOME / "m5.py"
    after = {**files, changed: files[changed].replace(b"size = 1", b"size = 2")}
    imported = sum(len(names(i, j)) for i in range(12) for j in others[i])
    found = change(files, Counted(after, 6 * imported))
    assert found.affected == {(HOME / f"m{i}.py", f"C{i}") for i in range(12)}


def test_a_change_reaches_its_users_through_two_files_that_only_import_it():
    files = {
        HOME / "core.py": b"def attend(q):\n    return q\n\ndef other(q):\n    return q\n",
        HOME / "layers" / "__init__.py": b"from ..core import attend, other\n",
        HOME / "__init__.py": b"from .layers import attend as look, other\n",
        HOME / "model.py": (
            b"import pkg\nfrom pkg import look, other\n\ndef user(q):\n    return look(q)\n\n"
            b"def neighbour(q):\n    return other(q)\n\ndef by_module(q):\n    return pkg.look(q)\n"
        ),
    }
    after = {**files, HOME / "core.py": files[HOME / "core.py"].replace(b"return q\n\n", b"return 2 * q\n\n")}
    reached = {name for path, name in change(files, after).affected if path.name == "model.py"}
    assert reached == {"user", "by_module"}


def test_an_import_from_above_the_root_leads_nowhere():
    files = {Path("/a.py"): b"from ... import up\nfrom . import beside\n\nclass A:\n    x = up, beside\n"}
    after = {Path("/a.py"): files[Path("/a.py")] + b"    y = 1\n"}
    assert change(files, after).affected == {(Path("/a.py"), "A")}


@pytest.mark.parametrize("odd", ["+1" * 2000, " + 0x" + "f" * 9000], ids=["deep", "a number of many digits"])
def test_a_statement_that_python_does_not_write_down_is_compared_all_the_same(tmp_path, odd):
    path = tmp_path / "a.py"
    before, after = {path: f"x = 1{odd}\n".encode()}, {path: f"x = 2{odd}\n".encode()}
    assert change(before, after).definitions
