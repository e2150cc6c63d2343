"""No false alarm in profile seq2seq: right encoder-decoders, differently written, break no binding clause."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from conformkit.conformance.driver.spawn.shared import LentFactory
from conformkit.conformance.engine.loading import opened
from conformkit.conformance.engine.request import RunRequest
from conformkit.spec.clauses import clauses_of
from tests.outcomes import Inputs, law
from tests.right.false_alarms import alarms, right_ones
from tests.shares import left_out, share
from tests.tiers import sampled

OTHERS = [Path(impl) for impl in right_ones("seq2seq") if impl != "conformkit.reference"]
"""The reference has a separate test, in tests/suite."""
QUICK = ["design_document", "fused_post", "hiding", "past_key_values", "torch_sequence_first"]


def inputs(impl: Path) -> Inputs:
    """Return what an implementation meets: all of the profile, of clauses about every size its share."""
    met = law(clauses_of("seq2seq"))
    return replace(met, files=(impl,), texts=(*met.texts, share(impl.stem, "seq2seq", impl)))


@pytest.mark.stored(inputs=inputs)
@pytest.mark.full(guard="test_the_weights_of_every_part_are_found")
@pytest.mark.parametrize("impl", OTHERS, ids=lambda impl: impl.stem)
def test_right_code_breaks_no_binding_clause(impl: Path, warm: LentFactory) -> None:
    found = alarms(str(impl), [0], "seq2seq", left_out(impl.stem, "seq2seq", impl), warm=warm)
    told = [f"{result.clause.id}: {result.message}" for _, result in found]
    assert not told, "\n".join(told)


@pytest.mark.parametrize(
    "impl", sampled(OTHERS, lambda impl: impl.stem, always=QUICK, files=lambda impl: [impl], most=2)
)
def test_the_weights_of_every_part_are_found(impl: Path, warm: LentFactory) -> None:
    with opened(RunRequest(impl=str(impl), profile="seq2seq"), warm) as (implementation, _):
        assert [bound.component.name for bound in implementation.bounds() if not bound.fits] == []
        assert {"CrossAttention", "EncoderLayer", "DecoderLayer", "Transformer"} <= {
            subject.name for subject in implementation.subjects()
        }
