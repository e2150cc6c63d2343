"""No clock decides what is right: a deadline ends what never ends, and a long row that is slow is tried shorter."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformkit.conformance.defects import Patch
from conformkit.conformance.diagnosis.patching import write_reference
from conformkit.conformance.driver.limits import Limits
from conformkit.conformance.driver.spawn.shared import LentFactory
from conformkit.conformance.engine.judge import Judge
from conformkit.conformance.engine.loading import opened
from conformkit.conformance.engine.request import RunRequest
from conformkit.conformance.engine.results import Verdict
from conformkit.conformance.suite import registry

FORWARD = "logits: Tensor = self.head(x)"


@pytest.mark.parametrize(
    ("condition", "verdict"),
    [
        pytest.param("x.shape[1] > 200", Verdict.PASS, id="long rows"),
        pytest.param("x.shape[1] > 30", Verdict.TIMEOUT, id="all but short rows", marks=pytest.mark.full),
    ],
)
def test_a_row_that_takes_too_long_is_tried_shorter(
    condition: str, verdict: Verdict, warm: LentFactory, tmp_path: Path
) -> None:
    waits = Patch("model.py", FORWARD, f"while {condition}:\n            pass\n        {FORWARD}")
    request = RunRequest(impl=str(write_reference(tmp_path / "m", (waits,))), limits=Limits(call_seconds=1.0))
    with opened(request, warm) as (implementation, _):
        assert Judge(implementation, registry.tests()).alone("LM-SHORT").verdict is verdict
