"""Attention maps show the weights that the layers themselves use: mixed with values they give each layer's output."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import torch
from torch import Tensor, nn

from conformkit.conformance.binding.sizes import derived
from conformkit.reference import TinyTransformerLM, Transformer
from conformkit.reference.attention_maps import attention_maps
from conformkit.reference.kv_cache import project
from conformkit.reference.multi_head_attention import MultiHeadAttention
from conformkit.reference.seq2seq.cross_attention import CrossAttention
from conformkit.reference.training.pairs.maps import seq2seq_attention_maps
from conformkit.spec.presets import PRESETS
from conformkit.spec.variants import CANONICAL, FAMOUS, Variant

from .variants import every_variant

Call = tuple[MultiHeadAttention, tuple[Tensor, ...], Tensor]
PAIRS = {
    "canonical": CANONICAL, "t5": PRESETS["t5"], "t5_v1_1": PRESETS["t5_v1_1"], "vaswani": FAMOUS["vaswani"],
    "grouped": CANONICAL.but(kv_heads="1", positions="rotary"), "bare": CANONICAL.but(output_projection=False),
    "norms": CANONICAL.but(qk_norm="heads"), "cap": CANONICAL.but(score_cap=2.0),
}  # fmt: skip


@contextmanager
def watched(model: nn.Module) -> Iterator[list[Call]]:
    """Fill a model with noise, so that sinks and tables show, and yield the calls of its attention."""
    torch.manual_seed(4)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn_like(parameter))
    calls: list[Call] = []
    hooks = [
        module.register_forward_hook(lambda own, given, made: calls.append((own, given, made)))
        for module in model.modules()
        if isinstance(module, MultiHeadAttention)
    ]
    yield calls
    for hook in hooks:
        hook.remove()


def mixed(attention: MultiHeadAttention, weights: Tensor, given: tuple[Tensor, ...]) -> Tensor:
    """Return what a layer gives if these are its weights: weights · V · W_o."""
    if isinstance(attention, CrossAttention):
        v = attention.v(given[2]).unflatten(-1, (-1, attention.head_width)).transpose(1, 2)
    else:
        v = project(attention, given[0])[2]
    return attention._merged(weights @ v.repeat_interleave(weights.shape[1] // v.shape[1], dim=1), given[0])


@pytest.mark.parametrize("variant", every_variant().values(), ids=every_variant())
def test_maps_mixed_with_values_give_the_layers_own_output(variant: Variant) -> None:
    """Would break if a map forgot what its variant adds to scores, caps, or leaves undivided."""
    heads = 12 if derived({"d_model": 24, "num_heads": 12, "num_layers": 2}, variant) else 3
    model = TinyTransformerLM(11, 24, heads, 2, 24, 8, 0.5, variant=variant).double()
    ids = torch.randint(11, (2, 7), generator=torch.Generator().manual_seed(1))
    with watched(model) as calls:
        maps = attention_maps(model, ids)
    assert model.training
    model.eval()  # no dropout in what is compared
    assert len(maps) == len(calls) == 2
    for weights, (attention, given, made) in zip(maps, calls, strict=True):
        assert weights.shape == (2, heads, 7, 7)
        assert torch.equal(weights.triu(1), torch.zeros_like(weights))
        torch.testing.assert_close(mixed(attention, weights, given), made, rtol=1e-10, atol=1e-10)
    model(ids)  # the hooks are gone
    assert len(maps) == 2


@pytest.mark.parametrize("variant", PAIRS.values(), ids=PAIRS)
def test_maps_of_an_encoder_decoder_give_its_layers_outputs(variant: Variant) -> None:
    """Would break if attention to the memory forgot its norms, or an encoder its table of relative positions."""
    model = Transformer(9, 9, 16, 4, 2, 2, 24, 8, 0.5, variant=variant).double()
    src, tgt = torch.tensor([[3, 4, 5, 0], [6, 7, 8, 3]]), torch.tensor([[1, 5, 4], [1, 3, 3]])
    with watched(model) as calls:
        maps = seq2seq_attention_maps(model, src, tgt)
    assert model.training
    model.eval()  # no dropout in what is compared
    assert [[tuple(one.shape) for one in kind] for kind in (maps.encoder, maps.decoder, maps.cross)] == [
        [(2, 4, 4, 4)] * 2, [(2, 4, 3, 3)] * 2, [(2, 4, 3, 4)] * 2,
    ]  # fmt: skip
    inside = set(model.encoder.modules())
    found = {"encoder": iter(maps.encoder), "decoder": iter(maps.decoder), "cross": iter(maps.cross)}
    for attention, given, made in calls:
        own = "encoder" if attention in inside else "decoder"
        weights = next(found["cross" if isinstance(attention, CrossAttention) else own])
        torch.testing.assert_close(mixed(attention, weights, given), made, rtol=1e-10, atol=1e-10)
    assert torch.equal(maps.cross[0][0, :, :, 3], torch.zeros(4, 3).double())  # padding of the source
