"""The oracles of BERT and of the vision transformer against values that one can work out by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from conformkit.spec.bert_embeddings import bert_embeddings
from conformkit.spec.bert_model import pool
from conformkit.spec.components import base_of, component, components_of
from conformkit.spec.patch_embedding import patch_embedding
from conformkit.spec.variants import BERT, CANONICAL, VIT

SIZES = {"vocab_size": 3, "d_model": 2, "max_len": 3, "num_segments": 2, "pad_id": 0, "num_heads": 1, "kv_heads": 1,
         "head_width": 2, "num_layers": 0, "d_ff": 1}  # fmt: skip


def test_embeddings_are_the_normalized_sum_of_three_rows() -> None:
    weights = {
        "embedding.weight": np.array([[9.0, 9.0], [1.0, 2.0], [5.0, 5.0]]),
        "segments.weight": np.array([[0.0, 0.0], [0.0, 3.0]]),
        "positions.weight": np.array([[0.0, 0.0], [4.0, 0.0], [9.0, 9.0]]),
        "embedding_norm.weight": np.array([2.0, 1.0]),
        "embedding_norm.bias": np.array([0.0, 0.5]),
    }  # fmt: skip
    ids, segments = np.array([[1, 1]]), np.array([[1, 0]])
    # (1, 2) + (0, 3) + (0, 0) = (1, 5) and (1, 2) + (4, 0) = (5, 2): normalized to (-1, 1) and (1, -1)
    found = bert_embeddings(weights, ids, segments, SIZES, BERT)
    np.testing.assert_allclose(found, [[[-2.0, 1.5], [2.0, -0.5]]], atol=1e-10)
    alone = bert_embeddings(weights, ids, None, SIZES, BERT)
    np.testing.assert_allclose(alone, bert_embeddings(weights, ids, 0 * ids, SIZES, BERT))


def test_the_pooled_row_is_tanh_of_a_map_of_the_first() -> None:
    weights = {"pooler.weight": np.array([[0.0, 1.0], [2.0, 0.0]]), "pooler.bias": np.array([0.0, 1.0])}
    hidden = np.array([[[0.5, -1.0], [7.0, 7.0]]])
    np.testing.assert_allclose(pool(weights, hidden), [[math.tanh(-1.0), math.tanh(2.0)]])


def test_patches_go_line_by_line_and_so_do_their_pixels() -> None:
    image = np.arange(16.0).reshape(1, 1, 4, 4)
    weights = {"patch.weight": np.array([[[[1.0, 10.0], [100.0, 1000.0]]]]), "patch.bias": np.array([0.5])}
    # 0 1 / 4 5 of the first patch: 0 + 10 + 400 + 5000
    np.testing.assert_allclose(patch_embedding(weights, image)[0, :, 0], [5410.5, 7632.5, 14298.5, 16520.5])


def test_what_is_canonical_depends_on_the_profile() -> None:
    assert (base_of("BertModel"), base_of("VisionTransformer"), base_of("Transformer")) == (BERT, VIT, CANONICAL)
    assert [component(name).base for name in components_of("encoder")] == 3 * [BERT]
    assert BERT.but(placement="pre").differences(BERT) == {"placement": "pre"}


@pytest.mark.parametrize(
    ("change", "lacking"),
    [
        ({"next_sentence_head": False}, {"next_sentence"}),
        ({"next_sentence_head": False, "pooler": False}, {"pooler", "next_sentence"}),
        ({"pooler": False}, {"pooler"}),
        ({"head_transform": False}, {"transform", "transform_norm"}),
        ({"segments": False}, {"segments"}),
    ],
)
def test_a_choice_takes_its_parameters_away(change: dict[str, bool], lacking: set[str]) -> None:
    bert = component("BertForPreTraining")
    fewer = bert.parameters(SIZES, BERT).keys() - bert.parameters(SIZES, BERT.but(**change)).keys()
    assert {name.partition(".")[0] for name in fewer} == lacking
