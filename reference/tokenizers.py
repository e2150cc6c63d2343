"""From text to token ids and back, without loss.

Characters: the vocabulary is the sorted set of a text's characters, so that the same text gives the same ids in every
process.

Bytes: byte-pair encoding over UTF-8 bytes (Sennrich et al. 2016; Radford et al. 2019, §2.2). All 256 bytes are in the
vocabulary from the start, so that any text has ids; then the most frequent pair of neighbors within words becomes one
more entry, again and again. By the library `tokenizers`. We differ in two things: it
leaves bytes that the text lacks to an unknown token, which loses them, and it counts special tokens in.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Protocol

from conformkit.reference.errors import CharacterError, SizeError, TokenError
from conformkit.reference.sizes import check_at_least

if TYPE_CHECKING:
    from tokenizers import Tokenizer as Library
    from tokenizers.trainers import BpeTrainer

__all__ = ["BPETokenizer", "CharTokenizer", "Tokenizer", "tokenizer_from_json"]

BYTES = 256


class Tokenizer(Protocol):
    """What training and sampling need of either kind."""

    @property
    def vocab_size(self) -> int:
        """The number of ids: 0 to vocab_size - 1."""

    def encode(self, text: str) -> list[int]:
        """Return the ids of a text."""

    def decode(self, ids: Iterable[int]) -> str:
        """Return the text of ids."""

    def to_json(self) -> str:
        """Return what `tokenizer_from_json` makes the same tokenizer from."""


class CharTokenizer:
    """Number the distinct characters of a text in their order.

    Raises: SizeError for an empty text, which has no characters.
    Source: nanoGPT, `data/shakespeare_char/prepare.py`.
    """

    def __init__(self, text: str) -> None:
        self.characters = sorted(set(text))
        check_at_least(1, **{"the number of characters": len(self.characters)})
        self._ids = {character: number for number, character in enumerate(self.characters)}

    @property
    def vocab_size(self) -> int:
        """The number of ids."""
        return len(self.characters)

    def encode(self, text: str) -> list[int]:
        """Return one id for each character. Raises CharacterError for one that the vocabulary lacks."""
        try:
            return [self._ids[character] for character in text]
        except KeyError as error:
            wanted = f"one of the {self.vocab_size} of the vocabulary"
            raise CharacterError("a character", repr(error.args[0]), wanted) from None

    def decode(self, ids: Iterable[int]) -> str:
        """Return the text of ids, of a list, an array or a tensor. Raises TokenError for an id out of range."""
        return "".join(self.characters[number] for number in _checked(ids, self.vocab_size))

    def to_json(self) -> str:
        """Return the vocabulary as JSON."""
        return json.dumps({"kind": "char", "characters": "".join(self.characters)})


class BPETokenizer:
    """Learn merges of bytes from a text until the vocabulary is full, or no pair is frequent enough.

    `special_tokens` get the first ids; text never encodes to them, not even text that looks like one.

    Raises: SizeError for a vocabulary too small to hold every byte, or a frequency below 1.
    Source: Sennrich et al. 2016, §3.2; Radford et al. 2019, §2.2. Every byte is in the vocabulary.
    """

    def __init__(
        self, text: str, vocab_size: int = 500, min_frequency: int = 2, special_tokens: Sequence[str] = ()
    ) -> None:
        check_at_least(1, min_frequency=min_frequency)
        if len(set(special_tokens)) < len(special_tokens):
            raise SizeError("the number of times that a special token is given", 2, "once")
        least = BYTES + len(special_tokens)
        if vocab_size < least:
            raise SizeError("vocab_size", vocab_size, f"at least {least}: every byte, and the special tokens")
        self._tokenizer = _untrained()
        self._tokenizer.train_from_iterator([text], _trainer(vocab_size, min_frequency, special_tokens))

    @property
    def vocab_size(self) -> int:
        """The number of ids, at most the size asked for."""
        return int(self._tokenizer.get_vocab_size())

    def encode(self, text: str) -> list[int]:
        """Return the ids of any text."""
        return list(self._tokenizer.encode(text, add_special_tokens=False).ids)

    def decode(self, ids: Iterable[int]) -> str:
        """Return the text of ids, of a list, an array or a tensor, without special tokens.

        A character that the ids hold only part of becomes U+FFFD. Raises TokenError for an id out of range.
        """
        return str(self._tokenizer.decode(_checked(ids, self.vocab_size), skip_special_tokens=True))

    def special_id(self, token: str) -> int:
        """Return the id of a special token. Raises TokenError if there is none of that name."""
        found = self._tokenizer.token_to_id(token)
        if found is None:
            raise TokenError("a special token", repr(token), "one that the tokenizer was built with")
        return int(found)

    def to_json(self) -> str:
        """Return vocabulary and merges as JSON."""
        return json.dumps({"kind": "bpe", "tokenizer": json.loads(self._tokenizer.to_str())})

    @classmethod
    def restored(cls, tokenizer: str) -> BPETokenizer:
        """Return the tokenizer whose JSON, as the library writes it, this is."""
        from tokenizers import Tokenizer as Library  # noqa: PLC0415

        made = cls.__new__(cls)
        made._tokenizer = Library.from_str(tokenizer)  # noqa: SLF001
        made._tokenizer.encode_special_tokens = True  # noqa: SLF001 - the JSON does not keep it
        return made


def tokenizer_from_json(text: str) -> Tokenizer:
    """Return the tokenizer that `to_json` described. Raises ValueError for anything else."""
    content = json.loads(text)
    if content.get("kind") == "char":
        return CharTokenizer(content["characters"])
    if content.get("kind") == "bpe":
        return BPETokenizer.restored(json.dumps(content["tokenizer"]))
    message = f"a tokenizer of kind {content.get('kind')!r}, expected char or bpe"
    raise ValueError(message)


def _untrained() -> Library:
    """Bytes as the alphabet, words as GPT-2 splits them, no space put in front, special tokens never read from text."""
    from tokenizers import Tokenizer as Library  # noqa: PLC0415 - only byte pairs need it
    from tokenizers import decoders, models, pre_tokenizers  # noqa: PLC0415

    tokenizer = Library(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.encode_special_tokens = True
    return tokenizer


def _trainer(vocab_size: int, min_frequency: int, special_tokens: Sequence[str]) -> BpeTrainer:
    from tokenizers import pre_tokenizers, trainers  # noqa: PLC0415

    return trainers.BpeTrainer(
        vocab_size=vocab_size, min_frequency=min_frequency, special_tokens=list(special_tokens), show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
    )  # fmt: skip


def _checked(ids: Iterable[int], vocab_size: int) -> list[int]:
    """Return ids as a list of Python integers, refusing what would wrap around or be left out."""
    numbers = [int(number) for number in ids]
    for number in numbers:
        if not 0 <= number < vocab_size:
            raise TokenError("a token id", number, f"one from 0 to vocab_size - 1 = {vocab_size - 1}")
    return numbers
