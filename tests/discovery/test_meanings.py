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


def test_hidden_is_the_width_of_what_has_no_inner_one():
    """Catches `BERTEmbedding(vocab_size, hidden)` that is not judged: elsewhere `hidden` is an inner width."""
    parameters = [{"name": name, "required": True} for name in ("vocab_size", "hidden")]
    assert passed(parameters, component("BertEmbeddings"))[0] == {"vocab_size": "vocab_size", "hidden": "d_model"}


@pytest.mark.parametrize(
    ("name", "value"),
    [("top_k", 2), ("experts_per_tok", 2), ("n_active", 2), ("n_shared_experts", 1), ("num_experts", 4)],
)
def test_a_mixture_is_built_with_four_experts_of_which_two_are_active(name, value):
    """Catches numbers with which no router has a choice, or chooses more experts than there are."""
    assert constant(name, component("FeedForward")) == value


@pytest.mark.parametrize("name", ["maxlen", "max_position", "max_pos", "num_positions", "max_position_embeddings"])
def test_the_number_of_positions_is_the_longest_input(name):
    """Catches a model of BERT's that is judged with the table of its defaults: its numbers fit no count."""
    assert meant(name, ["max_len", "num_segments"]) == "max_len"
    assert meant(name, ["block_size"]) == "block_size"


@pytest.mark.parametrize("name", ["type_vocab", "type_vocab_size", "n_segments", "token_type_vocab_size"])
def test_the_vocabulary_of_types_is_the_number_of_segments(name):
    """Catches it taken for the number of words, or left at its default."""
    assert meant(name, ["vocab_size", "num_segments"]) == "num_segments"


def test_a_name_of_two_meanings_has_the_one_that_is_left():
    """Catches `p` beside `patch_size` that is left at its default: training is random with a rate of 0."""
    parameters = [{"name": name, "required": False} for name in ("patch_size", "p")]
    assert passed(parameters, component("VisionTransformer"))[0] == {"patch_size": "patch_size", "p": "dropout"}
