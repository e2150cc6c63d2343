"""Low-rank adapters are told from parameters that a definition lacks."""

import pytest

from conformkit.conformance.binding.adapters import adapters

BASE = [("q.base.weight", (12, 12)), ("k.weight", (12, 12)), ("o.bias", (12,))]
CASES = {
    "called so": ([("q.lora_A", (4, 12)), ("q.lora_B", (12, 4))], ["q.lora_A", "q.lora_B"]),
    "of a library": ([("q.lora_A.default.weight", (4, 12))], ["q.lora_A.default.weight"]),
    "a pair beside its matrix": ([("v.weight", (12, 16)), ("v.A", (2, 16)), ("v.B", (12, 2))], ["v.A", "v.B"]),
    "as wide as the matrix": ([("v.weight", (12, 12)), ("v.A", (12, 12)), ("v.B", (12, 12))], []),
    "a pair alone, as in an MLP": ([("mlp.up.weight", (48, 12)), ("mlp.down.weight", (12, 48))], []),
    "another matrix": ([("gate.weight", (12, 12))], []),
}


@pytest.mark.parametrize(("more", "found"), CASES.values(), ids=CASES)
def test_adapters_are_what_is_called_so_or_a_narrow_pair_beside_its_matrix(more, found):
    """Catches a superfluous or a missing projection that passes for an adapter, and is not red."""
    listing = [{"name": name, "shape": shape} for name, shape in [*BASE, *more]]
    assert list(adapters(listing)) == found
