"""What a user of the reference's balance loss is told when numbers do not go together."""

import pytest
import torch

from conformkit.reference import balance_loss
from conformkit.reference.errors import SizeError


@pytest.mark.parametrize(
    ("active", "experts", "words"),
    [(0, None, "experts_active"), (4, None, "experts_active"), (2, 4, "num_experts = 4")],
)
def test_numbers_that_do_not_go_together_are_refused(active: int, experts: int | None, words: str) -> None:
    with pytest.raises(SizeError, match=words):
        balance_loss(torch.zeros(5, 3), active, experts)


def test_texts_in_a_batch_count_as_one_text() -> None:
    logits = torch.randn(2, 3, 4, generator=torch.Generator().manual_seed(0))
    assert torch.equal(balance_loss(logits, 2, 4), balance_loss(logits.flatten(0, 1), 2))
