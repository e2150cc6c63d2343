"""For tests of the suite: a folder that all processes of the session share."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def session_folder(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Path:
    """Return the folder; pytest-xdist gives each of its processes a folder within that of the session."""
    own = tmp_path_factory.getbasetemp()
    shared = (own if worker_id == "master" else own.parent) / "known_mistakes"
    shared.mkdir(exist_ok=True)
    return shared
