"""What names of constructor arguments mean."""

import pytest

from conformkit.conformance.discovery.meanings import constant, meant
from conformkit.spec.components import component


@pytest.mark.parametrize("name", ["n_src", "n_trg", "src_n"])
def test_a_letter_beside_a_side_says_nothing(name):
    """Catches a number of words that is taken for one of layers: the model is then built with one word."""
    assert constant(name, component("Transformer")) is None
    assert meant(name, ["num_layers"]) is None


def test_a_word_beside_a_side_is_read_without_it():
    """Catches sides that are no longer taken off."""
    assert meant("encoder_ffn_dim", ["d_ff"]) == "d_ff"
    assert meant("n_enc", ["num_layers"]) == "num_layers"
