"""One world for the attacks of a module. Pytest collects no attack: their folders contain hostile conftest files."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest

from conformkit.conformance.driver.spawn import warm

from .world import SECRET, World

collect_ignore_glob = ["*/*"] if sys.platform.startswith("linux") else ["*"]
"""Other systems have no /proc to find leftover processes."""


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    found = World(tmp_path_factory.mktemp("world"))
    found.furnish()
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("HOME", str(found.home))
        environment.setenv("GRADES_PASSWORD", SECRET)
        environment.setattr(warm, "_ANSWER_SECONDS", 4.0)  # one attack makes the harness wait for the whole time limit
        yield found
        found.close()


@pytest.fixture(autouse=True)
def _torch_is_imported_once():
    """Not here: these tests are about the processes that a run starts."""
