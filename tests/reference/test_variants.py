"""Every declared choice builds, runs, and has the parameters that the registry lists."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from conformkit import reference
from conformkit.conformance.binding.sizes import derived
from conformkit.spec.components import COMPONENTS, Component
from conformkit.spec.variants import CANONICAL, FAMOUS, Variant, alternatives, choices

from .variants import every_variant, named_as_in_the_law

SIZES = {
    "vocab_size": 13, "d_model": 24, "num_heads": 12, "num_layers": 2, "d_ff": 20, "block_size": 9, "max_len": 9,
    "d_k": 5, "d_v": 3, "causal": True, "dropout": 0.0,
}  # fmt: skip


def build(component: Component, variant: Variant) -> tuple[torch.nn.Module, dict[str, Any]]:
    sizes = dict(SIZES)
    if derived(sizes, variant) is None:
        sizes["num_heads"] = 3  # a part of a head, or NTK's exponent, needs several pairs
    sizes |= derived(sizes, variant) or {}
    arguments = {argument.name: sizes[argument.name] for argument in component.arguments}
    module = getattr(reference, component.export)(**arguments, variant=variant).double().eval()
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.copy_(torch.randn_like(parameter))
    return module, sizes


@pytest.mark.parametrize("variant", every_variant().values(), ids=every_variant())
@pytest.mark.parametrize("name", [name for name in COMPONENTS if name != "ScaledDotProductAttention"])
def test_parameters_and_results_are_those_of_the_registry(name: str, variant: Variant) -> None:
    component = COMPONENTS[name]
    torch.manual_seed(3)
    module, sizes = build(component, variant)
    weights = named_as_in_the_law({key: value.detach().numpy() for key, value in module.named_parameters()})
    want = {key: parameter.shape for key, parameter in component.parameters(sizes, variant).items()}
    assert {key: value.shape for key, value in weights.items()} == want
    x = torch.randint(0, 13, (3, 7)) if "ids" in component.inputs else torch.randn(3, 7, 24, dtype=torch.float64)
    expected = component.forward(weights, {component.inputs[0]: x.numpy()}, sizes, variant)
    np.testing.assert_allclose(module(x).detach().numpy(), expected, rtol=1e-9, atol=1e-9)


def test_the_canonical_state_has_the_registrys_names_and_nothing_else() -> None:
    model, sizes = build(COMPONENTS["TinyTransformerLM"], CANONICAL)
    assert set(model.state_dict()) == set(COMPONENTS["TinyTransformerLM"].parameters(sizes, CANONICAL))


def test_alternatives_are_all_the_other_values_of_a_closed_choice() -> None:
    assert alternatives("activation", "relu") == tuple(a for a in choices()["activation"] if a != "relu")
    assert alternatives("tied", value=True) == (False,)
    assert 1e-5 in alternatives("norm_eps", 1e-6)
    assert all(value not in alternatives(name, value) for name, value in FAMOUS["llama"].differences().items())
