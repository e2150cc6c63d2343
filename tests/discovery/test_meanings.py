"""What names of constructor arguments mean."""

import pytest

from conformkit.conformance.discovery.meanings import constant, meant, passed
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


def test_a_second_width_of_what_attention_reads_is_that_of_the_model():
    """Catches `MultiheadAttention(input_dim, embed_dim, num_heads)` that is not judged: the contract has one width."""
    parameters = [{"name": name, "required": True} for name in ("input_dim", "embed_dim", "num_heads")]
    known, _, unknown = passed(parameters, component("MultiHeadAttention"))
    assert not unknown
    assert known == {"input_dim": "d_model", "embed_dim": "d_model", "num_heads": "num_heads"}


@pytest.mark.parametrize(
    ("name", "value"),
    [("top_k", 2), ("experts_per_tok", 2), ("n_active", 2), ("n_shared_experts", 1), ("num_experts", 4)],
)
def test_a_mixture_is_built_with_four_experts_of_which_two_are_active(name, value):
    """Catches numbers with which no router has a choice, or chooses more experts than there are."""
    assert constant(name, component("FeedForward")) == value
