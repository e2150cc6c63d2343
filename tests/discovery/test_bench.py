"""Trying candidates: what was built for one is not kept, and one that ends its process does not end the search."""

import pytest

from conformkit.conformance.assertions.draws import Draw
from conformkit.conformance.discovery.bench import Bench
from conformkit.conformance.discovery.drafting import drafted
from conformkit.conformance.engine.finding import LoadFailure
from conformkit.conformance.engine.loading import imported
from conformkit.conformance.engine.request import RunRequest

BUILT = 40
CODE = """
import os
import weakref
import numpy as np

ALIVE = weakref.WeakSet()

class FeedForward:
    def __init__(self, d_model, d_ff):
        ALIVE.add(self)
        self.up, self.down = np.zeros((d_model, d_ff)), np.zeros((d_ff, d_model))
    def __call__(self, x):
        return np.full_like(x, len(ALIVE))
"""
TABLE = {"path": "ffn:FeedForward"}
CRASHES = """
class {}:
    def __init__(self, d_model, num_heads):
        os._exit(3)
    def __call__(self, x):
        return x
"""


def _imported(tmp_path, code):
    (tmp_path / "ffn.py").write_text(code)
    return imported(RunRequest(str(tmp_path / "ffn.py")))


def test_what_was_built_for_earlier_tables_is_released(tmp_path):
    """Catches models of 32,000 words that pile up, one for each way to build them, until 4 GiB end the search."""
    with _imported(tmp_path, CODE) as (implementation, _):
        bench = Bench(implementation)
        for _n in range(BUILT):
            bench.shown("FeedForward", TABLE)
        alive = bench.subject("FeedForward", TABLE).build()
        assert alive(*alive.example_inputs(Draw(0, "alive"), further=0)).max() < BUILT / 2


@pytest.mark.full
def test_a_candidate_that_ends_its_process_leaves_what_was_found(tmp_path):
    """Catches a search that throws away attention for the sake of blocks that use up the memory."""
    blocks = "".join(CRASHES.format(f"Block{n}") for n in range(5))
    code = CODE.replace("full_like(x, len(ALIVE))", "maximum(x @ self.up, 0) @ self.down") + blocks
    with _imported(tmp_path, code) as (implementation, location):
        found = drafted(implementation, location, RunRequest(str(tmp_path / "ffn.py")), {})
    assert [p.component for p in found.proposals] == ["FeedForward"]
    assert "TransformerBlock" in found.ended
    assert found.ended in found.doubts()


@pytest.mark.full
def test_where_every_candidate_ends_its_process_it_is_told(tmp_path):
    """Catches code of which nothing can be built that ends as code without any candidate."""
    code = CODE.partition("class")[0] + "".join(CRASHES.format(f"Block{n}") for n in range(5))
    with _imported(tmp_path, code) as (implementation, location), pytest.raises(LoadFailure, match="ended its process"):
        drafted(implementation, location, RunRequest(str(tmp_path / "ffn.py")), {})
