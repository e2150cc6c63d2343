"""BERT and the vision transformer of the reference against torch's own layers, and as models that train."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from conformkit.reference import BertForPreTraining, BertModel, PatchEmbedding, VisionTransformer
from conformkit.reference.errors import DtypeError, RefusalError, ShapeError, SizeError, TokenError
from conformkit.reference.seq2seq.encoder import EncoderLayer

WIDTH, HEADS, INNER = 12, 3, 20


def torch_twin(layer: EncoderLayer, *, pre: bool, eps: float) -> nn.TransformerEncoderLayer:
    """Return torch's layer with the same weights."""
    twin = nn.TransformerEncoderLayer(WIDTH, HEADS, INNER, 0.0, "gelu", eps, batch_first=True, norm_first=pre)
    own = layer.attention
    states = twin.state_dict()
    for kind in ("weight", "bias"):
        states[f"self_attn.in_proj_{kind}"] = torch.cat([getattr(m, kind) for m in (own.q, own.k, own.v)])
        states[f"self_attn.out_proj.{kind}"] = getattr(own.out, kind)
        states[f"linear1.{kind}"], states[f"linear2.{kind}"] = (
            getattr(m, kind) for m in (layer.feed_forward.up, layer.feed_forward.down)
        )
        states[f"norm1.{kind}"], states[f"norm2.{kind}"] = getattr(layer.norm1, kind), getattr(layer.norm2, kind)
    twin.load_state_dict(states)
    return twin.eval()


def texts() -> tuple[Tensor, Tensor]:
    ids = torch.tensor([[2, 5, 6, 3, 7, 3], [2, 9, 3, 4, 0, 0]])
    return ids, torch.tensor([[0, 0, 0, 0, 1, 1], [0, 0, 0, 1, 1, 1]])


def noisy(model: nn.Module) -> nn.Module:
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    return model.double().eval()


def test_bert_is_torch_s_encoder_between_its_embeddings_and_its_pooler() -> None:
    torch.manual_seed(0)
    model = noisy(BertModel(11, WIDTH, HEADS, 2, INNER, 9))
    ids, segments = texts()
    x = model.embeddings(ids, segments)
    for layer in model.encoder.layers:
        x = torch_twin(layer, pre=False, eps=1e-12).double()(x, src_key_padding_mask=ids == 0)
    hidden, pooled = model(ids, segments)
    real = ids != 0
    torch.testing.assert_close(hidden[real], x[real], rtol=0, atol=1e-10)
    torch.testing.assert_close(pooled, torch.tanh(model.pooler.dense(x[:, 0])), rtol=0, atol=1e-10)


def test_a_vision_transformer_is_torch_s_encoder_between_a_convolution_and_its_head() -> None:
    torch.manual_seed(0)
    model = noisy(VisionTransformer(8, 2, 3, 7, WIDTH, HEADS, 2, INNER))
    images = torch.randn(2, 3, 8, 8, dtype=torch.float64)
    x = F.conv2d(images, model.patches.weight, model.patches.bias, stride=2).flatten(2).mT
    x = torch.cat([model.class_token.expand(2, -1, -1), x], dim=1) + model.positions.weight
    for layer in model.encoder.layers:
        x = torch_twin(layer, pre=True, eps=1e-5).double()(x)
    norm = model.encoder.norm
    want = model.head(F.layer_norm(x[:, 0], (WIDTH,), norm.weight, norm.bias))
    torch.testing.assert_close(model(images), want, rtol=0, atol=1e-10)


def test_the_first_losses_are_those_of_a_guess() -> None:
    torch.manual_seed(0)
    ids = torch.randint(1, 500, (8, 32))
    logits, following = BertForPreTraining(500, 64, 4, 2, 128, 32)(ids)
    assert F.cross_entropy(logits.flatten(0, 1), ids.flatten()).item() == pytest.approx(math.log(500), rel=0.02)
    assert F.cross_entropy(following, torch.zeros(8).long()).item() == pytest.approx(math.log(2), rel=0.05)
    scores = VisionTransformer(8, 2, 1, 10, 64, 4, 2, 128)(torch.rand(16, 1, 8, 8))
    assert F.cross_entropy(scores, torch.arange(16) % 10).item() == pytest.approx(math.log(10), rel=0.1)


def test_both_learn_a_few_examples_by_heart() -> None:
    """Would break if some part got no gradient, or a wrong one, in training mode with dropout."""
    torch.manual_seed(0)
    ids = torch.randint(5, 20, (4, 8))
    hidden = ids.masked_fill(torch.rand(4, 8) < 0.3, 4)
    bert = BertForPreTraining(20, 32, 4, 2, 64, 8, dropout=0.05)
    images, classes = torch.rand(8, 1, 8, 8), torch.arange(8) % 4
    vit = VisionTransformer(8, 2, 1, 4, 32, 4, 2, 64, dropout=0.05)

    def loss() -> Tensor:
        logits, following = bert(hidden)
        own = F.cross_entropy(logits.flatten(0, 1), ids.flatten()) + F.cross_entropy(following, torch.arange(4) % 2)
        return own + F.cross_entropy(vit(images), classes)

    optimizer = torch.optim.AdamW([*bert.parameters(), *vit.parameters()], lr=3e-3)
    for _ in range(150):
        optimizer.zero_grad()
        (now := loss()).backward()
        optimizer.step()
    assert now.item() < 0.6
    assert {parameter.dtype for model in (bert, vit) for parameter in model.parameters()} == {torch.float32}


@pytest.mark.parametrize(
    ("made", "error", "said"),
    [
        (lambda: PatchEmbedding(9, 2, 3, 4), SizeError, "image_size is 9, expected a multiple of patch_size = 2"),
        (lambda: PatchEmbedding(8, 2, 3, 4)(torch.zeros(1, 3, 9, 9)), ShapeError, "(batch, 3, 8, 8)"),
        (lambda: PatchEmbedding(8, 2, 3, 4)(torch.zeros(1, 3, 8, 8).long()), DtypeError, "a floating-point type"),
        (lambda: BertModel(11, 12, 3, 1, 20, 4)(torch.ones(1, 5).long()), ShapeError, "at most max_len = 4"),
        (lambda: BertModel(11, 12, 3, 1, 20, 9)(*2 * [torch.full((1, 5), 3)]), TokenError, "num_segments - 1 = 1"),
        (
            lambda: BertModel(11, 12, 3, 1, 20, 9)(torch.ones(1, 5).long(), torch.ones(1, 4).long()),
            ShapeError,
            "that of the ids, (1, 5)",
        ),
        (lambda: BertModel(11, 12, 3, 1, 20, 9)(torch.ones(1, 2).long(), torch.ones(1, 2)), DtypeError, "an integer"),
    ],
    ids=["patches", "extent", "integers", "length", "segment", "shape", "dtype"],
)
def test_bad_input_is_refused_in_words(made: object, error: type[RefusalError], said: str) -> None:
    assert callable(made)
    with pytest.raises(error) as caught:
        made()
    assert said in str(caught.value)
