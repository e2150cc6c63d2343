"""Both tokenizers are lossless, and refuse what they can't represent."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from conformkit.reference import BPETokenizer, CharTokenizer
from conformkit.reference.errors import CharacterError, SizeError, TokenError
from conformkit.reference.tokenizers import tokenizer_from_json

TEXT = "the cat\tsat on the mat,\n\n  the fat rat ate the oat. "
anything = st.text(st.characters(codec="utf-8"), max_size=30)


@pytest.fixture(scope="module")
def bpe() -> BPETokenizer:
    return BPETokenizer(TEXT * 20, 300)


def test_characters_are_numbered_in_their_order() -> None:
    tokenizer = CharTokenizer("hello é")
    assert tokenizer.characters == [" ", "e", "h", "l", "o", "é"]
    assert tokenizer.vocab_size == 6
    assert tokenizer.encode("éhe") == [5, 2, 1]
    assert tokenizer.decode([5, 2, 1]) == "éhe"
    assert (tokenizer.encode(""), tokenizer.decode([])) == ([], "")


@given(st.text("the cat\n\t", max_size=40))
def test_characters_round_trip(text: str) -> None:
    tokenizer = CharTokenizer("the cat\n\t")
    assert tokenizer.decode(tokenizer.encode(text)) == text
    assert len(tokenizer.encode(text)) == len(text)


@given(anything)
def test_bytes_round_trip_whatever_the_text(bpe: BPETokenizer, text: str) -> None:
    ids = bpe.encode(text)
    assert bpe.decode(ids) == text
    assert all(0 <= number < bpe.vocab_size for number in ids)
    assert len(ids) <= len(text.encode())


def test_the_vocabulary_is_bounded_and_shortens_the_text(bpe: BPETokenizer) -> None:
    assert 256 < bpe.vocab_size <= 300
    assert len(bpe.encode(TEXT)) < len(TEXT) / 2
    assert bpe.encode("a") != bpe.encode(" a")


def test_a_pair_seen_once_is_not_merged() -> None:
    assert BPETokenizer("abcdefg", 500).vocab_size == 256
    assert BPETokenizer("abcdefg", 500, min_frequency=1).vocab_size > 256


def test_special_tokens_have_ids_that_text_never_gets() -> None:
    tokenizer = BPETokenizer(TEXT * 20, 300, special_tokens=["[PAD]", "[BOS]"])
    assert [tokenizer.special_id(name) for name in ("[PAD]", "[BOS]")] == [0, 1]
    assert tokenizer.vocab_size <= 300
    for same in (tokenizer, tokenizer_from_json(tokenizer.to_json())):
        ids = same.encode("a [PAD] b[BOS]")
        assert not {0, 1} & set(ids)
        assert same.decode([1, *ids, 0]) == "a [PAD] b[BOS]"
    with pytest.raises(TokenError, match="EOS"):
        tokenizer.special_id("[EOS]")


@pytest.mark.parametrize("kind", ["char", "bpe"])
def test_json_gives_the_same_ids(bpe: BPETokenizer, kind: str) -> None:
    tokenizer = bpe if kind == "bpe" else CharTokenizer(TEXT)
    again = tokenizer_from_json(tokenizer.to_json())
    assert again.encode(TEXT) == tokenizer.encode(TEXT)
    assert again.decode(again.encode(TEXT)) == TEXT
    assert again.vocab_size == tokenizer.vocab_size


@pytest.mark.parametrize("kind", ["char", "bpe"])
@pytest.mark.parametrize("form", [list, np.array, torch.tensor], ids=["list", "array", "tensor"])
def test_ids_may_be_lists_arrays_and_tensors(bpe: BPETokenizer, kind: str, form: object) -> None:
    tokenizer = bpe if kind == "bpe" else CharTokenizer(TEXT)
    assert tokenizer.decode(form(tokenizer.encode("the cat"))) == "the cat"  # type: ignore[operator]


def test_part_of_a_character_decodes_to_a_mark(bpe: BPETokenizer) -> None:
    assert bpe.decode(bpe.encode("日")[:-1]) == "\ufffd"


@pytest.mark.parametrize("kind", ["char", "bpe"])
@pytest.mark.parametrize("number", [-1, 10_000])
def test_an_id_out_of_range_is_refused(bpe: BPETokenizer, kind: str, number: int) -> None:
    tokenizer = bpe if kind == "bpe" else CharTokenizer(TEXT)
    with pytest.raises(TokenError, match=str(number)):
        tokenizer.decode([0, number])


def test_what_can_not_be_tokenized_is_refused() -> None:
    with pytest.raises(CharacterError, match="'x', expected one of the 2 of the vocabulary"):
        CharTokenizer("ab").encode("axb")
    with pytest.raises(SizeError, match="the number of characters is 0"):
        CharTokenizer("")
    with pytest.raises(SizeError, match="vocab_size is 256, expected at least 257"):
        BPETokenizer(TEXT, 256, special_tokens=["[PAD]"])
    with pytest.raises(SizeError, match="min_frequency"):
        BPETokenizer(TEXT, min_frequency=0)
    with pytest.raises(ValueError, match="kind 'words'"):
        tokenizer_from_json('{"kind": "words"}')
