"""The reference in the choices of each family: it builds, and gives the definition's logits."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from conformkit.conformance.binding.sizes import derived
from conformkit.reference.model import TinyTransformerLM
from conformkit.spec.components import COMPONENTS
from conformkit.spec.presets import PRESETS

from .variants import named_as_in_the_law


@pytest.mark.parametrize("name", PRESETS)
def test_a_family_builds_and_gives_the_definitions_logits(name: str) -> None:
    """Would break if a preset had a choice that the reference or the definition does not know."""
    variant, component = PRESETS[name], COMPONENTS["TinyTransformerLM"]
    heads = next((int(last) for last in "38" if variant.kv_heads.endswith(f"// {last}")), 4)
    width = 40  # 0.25 and 0.4 of it are pairs
    sizes = {
        "vocab_size": 13,
        "d_model": width * heads,
        "num_heads": heads,
        "num_layers": 2,
        "d_ff": 20,
        "block_size": 9,
    }
    sizes |= derived(sizes, variant) or {}
    torch.manual_seed(3)
    arguments = {argument.name: sizes[argument.name] for argument in component.arguments if argument.name in sizes}
    model = TinyTransformerLM(**arguments, variant=variant).double().eval()
    ids = torch.randint(0, 13, (3, 7))
    weights = named_as_in_the_law({key: value.detach().numpy() for key, value in model.named_parameters()})
    expected = component.forward(weights, {"ids": ids.numpy()}, {**sizes, "causal": True}, variant)
    np.testing.assert_allclose(model(ids).detach().numpy(), expected, rtol=1e-9, atol=1e-9)
