"""What a run in which nothing binds says about a draft."""

import pytest

from conformkit.conformance.apps.adapt.offer import offer
from conformkit.conformance.engine.request import RunRequest

LAYER = """
import numpy as np


class Widen:
    def __init__(self, d_model, d_ff):
        rng = np.random.default_rng(0)
        self.w1, self.b1 = rng.normal(size=(d_model, d_ff)), np.zeros(d_ff)
        self.w2, self.b2 = rng.normal(size=(d_ff, d_model)), np.zeros(d_model)

    def __call__(self, x):
        return np.maximum(x @ self.w1 + self.b1, 0.0) @ self.w2 + self.b2
"""


@pytest.mark.parametrize(
    ("source", "profile", "told"),
    [
        (
            LAYER.replace("Widen", "FeedForwardLayer"),
            "core",
            "conform adapt finds 1 of 7 components here: conform adapt ",
        ),
        ("x = 1\n", "core", ""),
        (LAYER, "lm", ""),
    ],
    ids=["one", "nothing", "no-drafts-for-lm"],
)
def test_a_draft_is_offered_with_what_it_finds(tmp_path, source, profile, told):
    path = tmp_path / "own.py"
    path.write_text(source)
    found = offer(RunRequest(impl=str(path), profile=profile))
    assert found.startswith(told)
    assert bool(found) is bool(told)
    assert not found or found.endswith(f"{path} > conform.toml")
