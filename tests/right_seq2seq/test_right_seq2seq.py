"""No false alarm in profile seq2seq: right encoder-decoders, differently written, break no binding clause."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformkit.conformance.driver.spawn.shared import LentNursery
from conformkit.conformance.engine.loading import opened
from conformkit.conformance.engine.request import RunRequest
from tests.right.false_alarms import alarms, right_ones


@pytest.mark.parametrize("impl", right_ones("seq2seq"), ids=lambda impl: Path(impl).stem)
def test_right_code_breaks_no_binding_clause(impl: str, warm: LentNursery) -> None:
    found = [f"{result.clause.id}: {result.message}" for _, result in alarms(impl, [0], "seq2seq", warm=warm)]
    assert not found, "\n".join(found)


@pytest.mark.parametrize("impl", right_ones("seq2seq"), ids=lambda impl: Path(impl).stem)
def test_the_weights_of_every_part_are_found(impl: str, warm: LentNursery) -> None:
    with opened(RunRequest(impl=impl, profile="seq2seq"), warm) as (implementation, _):
        assert [bound.component.name for bound in implementation.bounds() if not bound.fits] == []
        assert {"CrossAttention", "EncoderLayer", "DecoderLayer", "Transformer"} <= {
            subject.name for subject in implementation.subjects()
        }
