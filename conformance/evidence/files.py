"""A file that the implementation writes and reads. It may do anything to the folder."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from conformkit.conformance.subject.tool import Written

__all__ = ["file_of_its_own"]


@contextmanager
def file_of_its_own(name: str = "model.ckpt") -> Iterator[Written]:
    """Yield the path of a file in a new folder, which is removed afterwards."""
    folder = Path(tempfile.mkdtemp(prefix="conform-"))
    try:
        yield Written(str(folder / name))
    finally:
        _remove(folder)


def _remove(folder: Path) -> None:
    """Remove whatever is there; of a link, the link only. A failure to remove does not affect a verdict."""
    with suppress(OSError, RecursionError):
        if folder.is_symlink():
            folder.unlink()
        else:
            shutil.rmtree(folder)
