"""Write an attack to disk as a submission: its files, the module next to them, and what a repository cannot hold."""

from __future__ import annotations

import importlib.util
import os
import py_compile
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from .attack import FOLDER, Attack

__all__ = ["lay_out"]


def lay_out(attack: Attack, parent: Path) -> Path:
    """Write the submission into `parent` and return its folder."""
    target = parent / attack.name
    shutil.copytree(attack.folder, target, ignore=shutil.ignore_patterns("attack.toml", "__pycache__"))
    if attack.base:
        module = attack.base.removesuffix("_torch")
        shutil.copy(FOLDER / "base" / f"{attack.base}.py", target / f"{module}.py")
    for recipe in attack.make:
        _MAKERS[recipe["kind"]](target, recipe)
    return target


def _link(target: Path, recipe: Mapping[str, Any]) -> None:
    (target / recipe["path"]).symlink_to(recipe["to"])


def _pipe(target: Path, recipe: Mapping[str, Any]) -> None:
    os.mkfifo(target / recipe["path"])


def _sparse(target: Path, recipe: Mapping[str, Any]) -> None:
    """A huge file that takes no space on disk."""
    with (target / recipe["path"]).open("wb") as stream:
        stream.truncate(recipe["bytes"])


def _repeated(target: Path, recipe: Mapping[str, Any]) -> None:
    """A repeated text, in one file or in several; {n} in the path is the number of the file."""
    text = recipe.get("before", "") + recipe["text"] * recipe["times"] + recipe.get("after", "")
    for number in range(recipe.get("files", 1)):
        (target / recipe["path"].replace("{n}", str(number))).write_text(text, encoding="utf-8")


def _folders(target: Path, recipe: Mapping[str, Any]) -> None:
    """One file in each of many folders; {n} in its path and text is the number of the folder."""
    for number in range(recipe["folders"]):
        path = target / recipe["path"].replace("{n}", str(number))
        path.parent.mkdir(parents=True)
        path.write_text(recipe["text"].replace("{n}", str(number)), encoding="utf-8")


def _deep(target: Path, recipe: Mapping[str, Any]) -> None:
    """Nested folders. Their whole path may be longer than any system call accepts."""
    here = os.open(target, os.O_RDONLY)
    for _ in range(recipe["times"]):
        os.mkdir("d", dir_fd=here)
        inner = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = inner
    os.close(here)


def _named(target: Path, recipe: Mapping[str, Any]) -> None:
    """A file whose name does not belong into a repository."""
    path = target / recipe["path"]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(recipe["text"], encoding="utf-8")


def _compiled(target: Path, recipe: Mapping[str, Any]) -> None:
    """A compiled file that differs from its source, and claims to be newer than it or not to be checked."""
    source = target / recipe["of"]
    other = target / "other.py"
    other.write_text(recipe["text"], encoding="utf-8")
    shutil.copystat(source, other)
    place = importlib.util.cache_from_source(str(source))
    mode = py_compile.PycInvalidationMode.UNCHECKED_HASH
    py_compile.compile(str(other), cfile=place, dfile=str(source), invalidation_mode=mode)
    other.unlink()


_MAKERS: Mapping[str, Callable[[Path, Mapping[str, Any]], None]] = {
    "link": _link,
    "pipe": _pipe,
    "sparse": _sparse,
    "repeated": _repeated,
    "folders": _folders,
    "deep": _deep,
    "named": _named,
    "compiled": _compiled,
}
