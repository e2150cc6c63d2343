"""Right code with tiny legal limits is judged on less, and fails nothing for them."""

from __future__ import annotations

import pytest

from conformkit.conformance.binding.config import parse_config
from conformkit.conformance.driver.client.head_start import HeadStart
from conformkit.conformance.driver.spawn.shared import LentFactory
from conformkit.conformance.engine.request import RunRequest
from conformkit.conformance.runner import run

TINY = "[limits]\nd_model = 2\ntokens = { max = 2 }\n"
HALF = '[implementation]\ndtypes = ["bfloat16"]\n'


@pytest.mark.parametrize("declared", [TINY, HALF + TINY], ids=["two features", "two features in bfloat16"])
def test_two_features_and_two_positions_break_no_binding_clause(declared: str, warm: LentFactory) -> None:
    # a layer norm of two features leaves their sign only: nothing small shows, and rounding turns it round
    request = RunRequest(
        impl="conformkit.reference", only=("BLOCK", "LM"), config=parse_config(declared), diagnose=False
    )
    report = run(request, early=HeadStart(warm=warm))
    red = [result for result in report.results if report.breaks(result)]
    assert not red, [(result.clause.id, result.verdict, result.message) for result in red[:3]]
    judged, binding = report.coverage()
    assert judged < binding
    assert {result.exempted_by for result in report.exempted()} <= {"limits", "implementation.dtypes"}
