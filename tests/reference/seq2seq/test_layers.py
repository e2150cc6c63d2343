"""The encoder-decoder matches PyTorch's own with the same weights, and derives its masks from the ids."""

from __future__ import annotations

import pytest
import torch
from torch.testing import assert_close

from conformkit.reference import (
    CrossAttention,
    DecoderLayer,
    EncoderLayer,
    TokenEmbedding,
    Transformer,
    create_causal_mask,
    create_masks,
    create_padding_mask,
)
from conformkit.reference.errors import DtypeError, RefusalError, ShapeError, SizeError, TokenError
from conformkit.spec.variants import CANONICAL, Variant

from .torch_twins import TORCH, attention_twin, decoder_twin, encoder_twin, logits_of_twin, scramble

D_MODEL, HEADS, D_FF = 12, 3, 20
PLACEMENTS = pytest.mark.parametrize("placement", ["pre", "post"])


@pytest.fixture(autouse=True)
def _seeded() -> None:
    torch.manual_seed(11)


def rows(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, D_MODEL, dtype=torch.float64)


def model(variant: Variant = TORCH, encoder_layers: int = 2, decoder_layers: int = 3) -> Transformer:
    ours = Transformer(13, 17, D_MODEL, HEADS, encoder_layers, decoder_layers, D_FF, 9, variant=variant).double().eval()
    scramble(ours)
    return ours


SRC = torch.tensor([[3, 4, 5, 6, 7, 8], [9, 10, 11, 0, 0, 0], [12, 1, 2, 5, 0, 0]])
TGT = torch.tensor([[1, 3, 4, 5, 6], [1, 16, 15, 0, 0], [1, 14, 0, 0, 0]])


def test_cross_attention_is_torchs() -> None:
    ours = CrossAttention(D_MODEL, HEADS, variant=TORCH).double()
    scramble(ours)
    query, memory = rows(2, 4), rows(2, 6)
    hidden = torch.tensor([[False, False, True, False, True, True], [False] * 6])
    theirs, _ = attention_twin(ours)(query, memory, memory, key_padding_mask=hidden)
    assert_close(ours(query, memory, memory, ~hidden[:, None, None, :]), theirs)


def test_cross_attention_takes_keys_and_values_from_where_they_are_given() -> None:
    ours = CrossAttention(D_MODEL, HEADS, variant=TORCH).double()
    query, key, value = rows(2, 4), rows(2, 6), rows(2, 6)
    theirs, _ = attention_twin(ours)(query, key, value)
    assert_close(ours(query, key, value), theirs)


@PLACEMENTS
def test_an_encoder_layer_is_torchs(placement: str) -> None:
    ours = EncoderLayer(D_MODEL, HEADS, D_FF, variant=TORCH.but(placement=placement)).double()
    scramble(ours)
    x = rows(3, 6)
    assert_close(ours(x, create_padding_mask(SRC)), encoder_twin(ours, D_FF)(x, src_key_padding_mask=SRC == 0))


@PLACEMENTS
def test_a_decoder_layer_is_torchs(placement: str) -> None:
    ours = DecoderLayer(D_MODEL, HEADS, D_FF, variant=TORCH.but(placement=placement)).double()
    scramble(ours)
    x, memory = rows(3, 5), rows(3, 6)
    theirs = decoder_twin(ours, D_FF)(
        x, memory, tgt_mask=~create_causal_mask(5), tgt_key_padding_mask=TGT == 0, memory_key_padding_mask=SRC == 0
    )
    src_mask, tgt_mask = create_masks(SRC, TGT)
    assert_close(ours(x, memory, tgt_mask, src_mask), theirs)


@PLACEMENTS
def test_the_whole_model_is_torchs_stacks_between_embeddings_and_head(placement: str) -> None:
    ours = model(TORCH.but(placement=placement))
    assert_close(ours(SRC, TGT), logits_of_twin(ours, D_FF, SRC, TGT))


@pytest.mark.parametrize("positions", ["sinusoidal", "learned", "rotary", "none"])
def test_masks_that_are_missing_are_those_of_create_masks(positions: str) -> None:
    ours = model(CANONICAL.but(positions=positions))
    src_mask, tgt_mask = create_masks(SRC, TGT)
    built = ours(SRC, TGT)
    assert torch.equal(built, ours(SRC, TGT, src_mask, tgt_mask))
    assert torch.equal(built, ours.decode(TGT, ours.encode(SRC), None, src_mask))
    everything = torch.ones_like(src_mask)
    assert not torch.allclose(built, ours(SRC, TGT, everything, tgt_mask))


def test_causality_holds_whatever_mask_is_given() -> None:
    ours = model()
    everything = torch.ones(3, 1, 5, 5, dtype=torch.bool)
    changed = TGT.clone()
    changed[:, -1] = 7
    assert torch.equal(ours(SRC, TGT, None, everything)[:, :-1], ours(SRC, changed, None, everything)[:, :-1])


@pytest.mark.parametrize(
    ("variant", "names"),
    [
        (Variant(shared_embeddings=True), {"src_embedding.weight", "head.weight"}),
        (Variant(tied=True), {"src_embedding.weight", "tgt_embedding.weight"}),
        (Variant(tied=True, shared_embeddings=True), {"src_embedding.weight"}),
        (Variant(), {"src_embedding.weight", "tgt_embedding.weight", "head.weight"}),
    ],
    ids=["source-and-target", "target-and-head", "all-three", "none"],
)
def test_tables_are_one_parameter_where_the_variant_says_so(variant: Variant, names: set[str]) -> None:
    ours = Transformer(13, 13, D_MODEL, HEADS, 1, 1, D_FF, 9, variant=variant)
    tables = {name for name, value in ours.named_parameters() if value.shape == (13, D_MODEL)}
    assert tables == names


@pytest.mark.parametrize("positions", ["learned", "sinusoidal", "rotary", "none"])
def test_a_shared_table_of_positions_is_one_parameter_where_it_is_learned(positions: str) -> None:
    ours = model(CANONICAL.but(positions=positions, shared_positions=True))
    tables = [name for name, _ in ours.named_parameters() if "positions" in name]
    assert tables == (["src_positions.weight"] if positions == "learned" else [])


def test_padding_rows_start_at_zero_and_get_no_gradient() -> None:
    embedding = TokenEmbedding(13, D_MODEL, pad_id=2, variant=Variant(embedding_scale=True))
    assert not embedding.weight[2].any()
    embedding(torch.tensor([[2, 5, 5]])).sum().backward()
    assert embedding.weight.grad is not None
    assert_close(embedding.weight.grad[5], torch.full((D_MODEL,), 2 * D_MODEL**0.5))
    assert embedding.weight.grad.count_nonzero() == D_MODEL


@pytest.mark.parametrize("variant", [Variant(), Variant(tied=True), Variant(embedding_scale=True)])
def test_the_first_loss_is_near_that_of_guessing(variant: Variant) -> None:
    ours = Transformer(65, 65, 64, 4, 2, 2, 128, 32, variant=variant).eval()
    ids = torch.randint(1, 65, (16, 32))
    loss = torch.nn.functional.cross_entropy(ours(ids, ids).flatten(0, 1), ids.roll(1, 1).flatten())
    assert abs(loss.item() - 4.174) < 0.35  # ln 65


REFUSED = {
    "heads": (lambda: CrossAttention(10, 3), SizeError, "num_heads"),
    "lengths": (lambda: CrossAttention(12, 3)(torch.zeros(1, 2, 12), torch.zeros(1, 3, 12), torch.zeros(1, 4, 12)),
                ShapeError, "the length of the key is 3, expected that of the value = 4"),
    "batches": (lambda: CrossAttention(12, 3)(torch.zeros(1, 2, 12), torch.zeros(2, 3, 12), torch.zeros(2, 3, 12)),
                ShapeError, "the batch of the key is 2"),
    "width": (lambda: CrossAttention(12, 3)(torch.zeros(1, 2, 12), torch.zeros(1, 3, 8), torch.zeros(1, 3, 8)),
              ShapeError, "the shape of the key"),
    "three axes": (lambda: CrossAttention(12, 3)(*[torch.zeros(3, 2, 12)] * 3, torch.ones(3, 2, 2).bool()),
                   ShapeError, "the mask's shape"),
    "pad id": (lambda: TokenEmbedding(5, 4, pad_id=5), SizeError, "pad_id is 5"),
    "float ids": (lambda: model()(SRC.float(), TGT), DtypeError, "the dtype of the ids"),
    "a row of ids": (lambda: model()(SRC[0], TGT), ShapeError, "the shape of the ids"),
    "unknown id": (lambda: model()(SRC + 5, TGT), TokenError, "a token id is 13"),
    "other batch": (lambda: model()(SRC, TGT[:2]), ShapeError, "the batch of the target is 2"),
    "long source": (lambda: model()(torch.ones(3, 10).long(), TGT), ShapeError, "the length of the source is 10"),
    "long target": (lambda: model()(SRC, torch.ones(3, 10).long()), ShapeError, "the length of the target is 10"),
    "layers": (lambda: model(encoder_layers=-1), SizeError, "num_encoder_layers is -1"),
    "tables": (lambda: model(Variant(shared_embeddings=True)), SizeError, "tgt_vocab_size is 17"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED.values(), ids=REFUSED)
def test_what_does_not_fit_is_refused_by_name(case: tuple[object, type[RefusalError], str]) -> None:
    wrong, error, words = case
    assert callable(wrong)
    with pytest.raises(error, match=words):
        wrong()
