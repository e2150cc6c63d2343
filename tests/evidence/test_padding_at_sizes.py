"""Inputs with padding, and which of their positions are compared."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from conformkit.conformance.assertions.draws import Draw
from conformkit.conformance.evidence import padding_at_sizes as padding

PAD = 3
IDS = np.full((4, 9), 7)
SEEDS = range(20)


def instance(*, masks: bool = True) -> Any:
    return SimpleNamespace(
        sizes={"pad_id": PAD}, subject=SimpleNamespace(offers=lambda name: masks and name == "masks")
    )


@pytest.mark.parametrize("seed", SEEDS)
def test_padding_is_at_the_end_of_all_rows_but_one(seed: int) -> None:
    """Would break if a row were empty, or if no row had a real last position: a long row must be seen to its end."""
    real = padding._real(Draw(seed, "real"), IDS)
    lengths = real.sum(axis=1)
    assert real.tolist() == (np.arange(9) < lengths[:, None]).tolist()
    assert (int(lengths.min()) >= 1, int(lengths.max())) == (True, 9)


@pytest.mark.parametrize("least", [0, 1])
def test_a_single_row_is_nearly_full_and_has_padding_where_some_is_needed(least: int) -> None:
    found = {int(padding._real(Draw(seed, "real"), IDS[:1], least=least).sum()) for seed in SEEDS}
    assert max(found) == 9 - least
    assert len(found) > 1
    assert min(found) > 9 - least - padding._FEW_PADS
    assert padding._real(Draw(0, "real"), IDS[:1, :1], least=least).tolist() == [[True]]


@pytest.mark.parametrize("seed", SEEDS)
def test_masks_of_source_and_target_hide_padding_and_what_comes_later(seed: int) -> None:
    (src, tgt, src_mask, tgt_mask), compared = padding.with_padded_ids(instance(), (IDS, IDS), Draw(seed, "ids"))
    assert set(np.unique(np.stack([src, tgt]))) == {PAD, 7}
    assert compared.tolist() == (tgt == 7).tolist()
    assert src_mask.reshape(4, 9).tolist() == (src == 7).tolist()
    later = np.tri(9, dtype=bool)
    assert tgt_mask.reshape(4, 9, 9).tolist() == (later & (tgt == 7)[:, None]).tolist()


def test_masks_alone_leave_ids_as_they_are_and_all_is_compared() -> None:
    (src, tgt, src_mask, tgt_mask), compared = padding.with_masks(instance(), (IDS, IDS + 1), Draw(0, "masks"))
    assert (src.tolist(), tgt.tolist(), compared) == (IDS.tolist(), (IDS + 1).tolist(), ...)
    assert src_mask.all()
    assert tgt_mask.reshape(4, 9, 9).tolist() == [np.tri(9, dtype=bool).tolist()] * 4


def test_a_text_has_a_mask_where_the_encoder_takes_one() -> None:
    (ids, segments, mask), real = padding.with_padded_text(instance(), (IDS, IDS * 0), Draw(1, "text"))
    assert (ids == np.where(real, 7, PAD)).all()
    assert mask.reshape(4, 9).tolist() == real.tolist()
    assert not segments.any()
    without, _ = padding.with_padded_text(instance(masks=False), (IDS, IDS * 0), Draw(1, "text"))
    assert len(without) == 2
