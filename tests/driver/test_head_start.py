"""One warm process for consecutive runs: none is started twice, and one that ended is replaced."""

import pytest

from conformkit.conformance.driver.client.head_start import HeadStart, common_start
from conformkit.conformance.engine import loading as opening
from conformkit.conformance.engine.finding import LoadFailure
from conformkit.conformance.engine.request import RunRequest
from conformkit.conformance.runner import run

ATTENTION = """import numpy as np

def scaled_dot_product_attention(q, k, v, mask=None):
    scores = q @ np.swapaxes(k, -1, -2) / np.sqrt(q.shape[-1])
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True) @ v
"""
MARKED = "\nimport sys\nassert not hasattr(sys, 'was_here')\nsys.was_here = True\n"
ENDING = "import os, signal\nos.kill(os.getppid(), signal.SIGKILL)\n"


@pytest.fixture
def judged(tmp_path):
    def judge(name, source, warm):
        (tmp_path / name).write_text(source)
        return run(RunRequest(impl=str(tmp_path / name), only=("SDPA-OUT-SHAPE",)), early=HeadStart(warm=warm))

    return judge


def test_runs_share_it_and_nothing_of_one_is_in_the_next(judged, tmp_path, monkeypatch):
    monkeypatch.setattr(opening, "worker_factory", lambda *_, **__: pytest.fail("another warm process was started"))
    with common_start([str(tmp_path)]) as starts:
        warm = starts[str(tmp_path)].warm
        assert judged("one.py", ATTENTION + MARKED, warm).conforms
        assert judged("two.py", ATTENTION + MARKED, warm).conforms
        assert warm.alive


def test_one_that_ends_it_leaves_the_next_its_verdict(judged, tmp_path):
    with common_start([str(tmp_path)]) as starts:
        warm = starts[str(tmp_path)].warm
        with pytest.raises(LoadFailure):
            judged("ending.py", ENDING, warm)
        assert not warm.alive
        assert judged("two.py", ATTENTION, warm).conforms


@pytest.mark.parametrize("isolation", ["sandbox", "none"])
def test_a_sandbox_is_never_shared(isolation):
    with common_start(["nowhere"], isolation) as starts:
        assert starts == {"nowhere": HeadStart()}
