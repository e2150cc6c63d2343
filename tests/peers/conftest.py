"""Other people's libraries are slow to judge: with CONFORM_PEERS=eighth, as in `.ci/run`, one case in eight is.

Which eighth is CONFORM_SEED's choice. `tox -e peers` and the nightly run judge all; the rest counts as deselected.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

HERE = Path(__file__).parent
SEED = int(os.environ.get("CONFORM_SEED", "0"))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep an eighth of the dear cases of this folder."""
    if os.environ.get("CONFORM_PEERS", "all") == "all":
        return
    dear = sorted((item for item in items if _dear(item)), key=lambda item: item.nodeid)
    left = set(dear) - set(dear[SEED % 8 :: 8])
    config.hook.pytest_deselected(items=[item for item in items if item in left])
    items[:] = [item for item in items if item not in left]


def _dear(item: pytest.Item) -> bool:
    return HERE in item.path.parents and item.get_closest_marker("full") is not None
