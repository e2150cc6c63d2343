"""How many parameters the base encoder-decoder has: computed by hand, counted here."""

from __future__ import annotations

import pytest
import torch

from conformkit.fixtures import all_facts
from conformkit.reference import Decoder, DecoderLayer, Encoder, EncoderLayer, Transformer
from conformkit.spec.variants import CANONICAL, Variant

BASE = Variant(
    placement="post", activation="relu", qkv_bias=True, output_bias=True, final_norm=False, head_bias=False
)  # fmt: skip
"""The choices of Vaswani et al. 2017, with separate tables for source, target and head."""
STORED = {fact.id: fact.value for fact in all_facts()}
LAYERS, MODELS = STORED["G137/layers"], STORED["G138/base"]
ATTENTION, FEED_FORWARD, NORM = 4 * (512 * 512 + 512), 2 * 512 * 2048 + 2048 + 512, 2 * 512
TABLE = 30_000 * 512


def count(module: torch.nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())


@pytest.fixture(autouse=True)
def _on_no_device() -> object:
    with torch.device("meta"):
        yield


def test_a_base_layer_has_the_parameters_of_its_parts() -> None:
    encoder, decoder = EncoderLayer(512, 8, 2048, variant=BASE), DecoderLayer(512, 8, 2048, variant=BASE)
    assert count(encoder) == ATTENTION + FEED_FORWARD + 2 * NORM == LAYERS["encoder layer"]
    assert count(decoder) == 2 * ATTENTION + FEED_FORWARD + 3 * NORM == LAYERS["decoder layer"]


@pytest.mark.parametrize(("final_norm", "more"), [(False, 0), (True, NORM)])
def test_a_stack_has_those_of_its_layers_and_of_its_last_norm(final_norm: bool, more: int) -> None:
    encoder = Encoder(512, 8, 2048, 6, variant=BASE.but(final_norm=final_norm))
    decoder = Decoder(512, 8, 2048, 6, variant=BASE.but(final_norm=final_norm))
    assert count(encoder) == 6 * LAYERS["encoder layer"] + more
    assert count(encoder) + count(decoder) == LAYERS["six of each"] + 2 * more


@pytest.mark.parametrize(
    ("variant", "tables", "total"),
    [
        (BASE, 3, MODELS["three matrices"]),
        (BASE.but(tied=True), 2, 74_858_496),
        (BASE.but(shared_embeddings=True), 2, 74_858_496),
        (BASE.but(tied=True, shared_embeddings=True), 1, MODELS["one matrix"]),
    ],
    ids=["three-tables", "head-tied", "source-and-target-shared", "one-table"],
)
def test_the_base_model_counts_a_shared_table_once(variant: Variant, tables: int, total: int) -> None:
    model = Transformer(30_000, 30_000, 512, 8, 6, 6, 2048, 512, variant=variant)
    assert count(model) == LAYERS["six of each"] + tables * TABLE == total


def test_encoder_and_decoder_may_differ_in_depth_and_vocabulary() -> None:
    model = Transformer(11, 17, 24, 4, 1, 3, 40, 9, variant=CANONICAL)
    assert (len(model.encoder.layers), len(model.decoder.layers)) == (1, 3)
    assert model.src_embedding.weight.shape == (11, 24)
    assert model.tgt_embedding.weight.shape == model.head.weight.shape == (17, 24)
