"""Names in the author's own language mean what they mean in English."""

from __future__ import annotations

import pytest

from conformkit.conformance.binding.aliases import meaning
from conformkit.conformance.binding.translations import _WORDS, in_english
from conformkit.conformance.discovery.candidates import named
from conformkit.spec.components import component

SIZES = ("d_model", "num_heads", "num_layers", "d_ff", "vocab_size", "src_vocab_size", "tgt_vocab_size")


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ("breite", "d_model"), ("n_koepfe", "num_heads"), ("schichten", "num_layers"), ("d_modelo", "d_model"),
        ("vocab_origen", "src_vocab_size"), ("cabeças", "num_heads"), ("largeur", "d_model"), ("weidu", "d_model"),
        ("Tiefe", "num_layers"), ("farbe", None), ("color", None),
    ],
)  # fmt: skip
def test_an_argument_is_understood_in_its_language(theirs: str, ours: str | None) -> None:
    """Would break if only English names had a meaning, if order or accents mattered, or any word had one."""
    assert meaning(theirs, SIZES) == ours


def test_what_belongs_to_a_noun_may_stand_behind_it() -> None:
    assert meaning("mascara_origen", ("src_mask", "tgt_mask")) == "src_mask"
    assert in_english("mascara_destino") == ("mask_tgt", "tgt_mask")
    assert in_english("src_mask") == ()


@pytest.mark.parametrize(
    ("name", "ours", "others"),
    [
        ("Aufmerksamkeit", "MultiHeadAttention", "FeedForward"), ("AtencionMultiple", "MultiHeadAttention", "Decoder"),
        ("CapaCodificador", "EncoderLayer", "DecoderLayer"), ("Decodificador", "Decoder", "Encoder"),
        ("Posiciones", "PositionalEncoding", "TokenEmbedding"), ("BlocTransformer", "TransformerBlock", "FeedForward"),
    ],
)  # fmt: skip
def test_a_class_is_found_by_its_name_in_its_language(name: str, ours: str, others: str) -> None:
    assert named(component(ours), name)
    assert not named(component(others), name)


def test_no_word_has_two_meanings() -> None:
    words = [word for several in _WORDS.values() for word in several.split()]
    assert len(words) == len(set(words))
