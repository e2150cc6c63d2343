"""A file that the implementation writes and reads. It may do anything to the folder."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from conformkit.conformance.driver.scratch import held_folder
from conformkit.conformance.subject.tool import Written

__all__ = ["file_of_its_own"]


@contextmanager
def file_of_its_own(name: str = "model.ckpt") -> Iterator[Written]:
    """Yield the path of a file in a new folder, which is removed afterwards."""
    with held_folder() as folder:
        yield Written(str(folder / name))
