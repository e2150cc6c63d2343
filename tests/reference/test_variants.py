"""Every declared choice builds, runs, and has the parameters that the registry lists."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
import pytest
import torch

from conformkit import reference
from conformkit.spec.components import COMPONENTS, Component
from conformkit.spec.variants import CANONICAL, Variant, choices

SIZES = {
    "vocab_size": 13, "d_model": 12, "num_heads": 4, "num_layers": 2, "d_ff": 20, "block_size": 9, "max_len": 9,
    "d_k": 5, "d_v": 3, "causal": True, "dropout": 0.0, "kv_heads": 4, "head_width": 3,
}  # fmt: skip
OPEN = {"norm_eps": 1e-3, "kv_heads": "num_heads // 2", "head_width": "2 * d_model // 6", "rotary_base": 500.0}
ROTARY = {"positions": "rotary", "head_width": "4"}


def single_changes() -> list[Any]:
    """Every value of every choice, alone, with what else that choice needs."""
    found = []
    for field in fields(Variant):
        values = choices()[field.name]
        if isinstance(values, type):
            values = (not field.default,) if values is bool else (OPEN[field.name],)
        for value in values:
            needs = ROTARY if field.name.startswith("rotary") or value == "rotary" else {}
            found.append(pytest.param(CANONICAL.but(**needs | {field.name: value}), id=f"{field.name}-{value}"))
    return found


FAMOUS = [
    pytest.param(Variant(activation="gelu_tanh", positions="learned", tied=True, head_bias=False, qkv_bias=True,
                         output_bias=True), id="gpt2"),
    pytest.param(Variant(norm="rmsnorm", activation="silu", gated=True, ffn_bias=False, head_bias=False,
                         kv_heads="num_heads // 4", head_width="6", positions="rotary", rotary_layout="halves"),
                 id="llama"),
    pytest.param(Variant(placement="post", activation="relu", qkv_bias=True, output_bias=True, embedding_scale=True,
                         final_norm=False, tied=True), id="vaswani"),
]  # fmt: skip


def build(component: Component, variant: Variant) -> tuple[torch.nn.Module, dict[str, Any]]:
    sizes = dict(SIZES)
    sizes["kv_heads"] = {"num_heads // 2": 2, "num_heads // 4": 1}.get(variant.kv_heads, 4)
    sizes["head_width"] = {"4": 4, "2 * d_model // 6": 4, "6": 6}.get(variant.head_width, 3)
    arguments = {argument.name: sizes[argument.name] for argument in component.arguments}
    module = getattr(reference, component.export)(**arguments, variant=variant).double().eval()
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.copy_(torch.randn_like(parameter))
    return module, sizes


@pytest.mark.parametrize("variant", single_changes() + FAMOUS)
@pytest.mark.parametrize("name", [name for name in COMPONENTS if name != "ScaledDotProductAttention"])
def test_parameters_and_results_are_those_of_the_registry(name: str, variant: Variant) -> None:
    component = COMPONENTS[name]
    if name == "PositionalEncoding" and variant.positions not in {"sinusoidal", "learned"}:
        pytest.skip("nothing is added in this variant")
    torch.manual_seed(3)
    module, sizes = build(component, variant)
    weights = {key: value.detach().numpy() for key, value in module.named_parameters()}
    want = {key: parameter.shape for key, parameter in component.parameters(sizes, variant).items()}
    assert {key: value.shape for key, value in weights.items()} == want
    x = torch.randint(0, 13, (3, 7)) if "ids" in component.inputs else torch.randn(3, 7, 12, dtype=torch.float64)
    expected = component.forward(weights, {component.inputs[0]: x.numpy()}, sizes, variant)
    np.testing.assert_allclose(module(x).detach().numpy(), expected, rtol=1e-9, atol=1e-9)


def test_the_canonical_state_has_the_registrys_names_and_nothing_else() -> None:
    model, sizes = build(COMPONENTS["TinyTransformerLM"], CANONICAL)
    assert set(model.state_dict()) == set(COMPONENTS["TinyTransformerLM"].parameters(sizes, CANONICAL))
