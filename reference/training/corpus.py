"""The text that is learned from: built in, a file, or Tiny Shakespeare, fetched once and checked.

The text is cut in two before anything is made of it: windows come from one part or the other, and merges of bytes are
learned from the first part only, so nothing of the validation text is known to training.
"""

from __future__ import annotations

import hashlib
import os
import urllib.request
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from conformkit.reference.checkpoints import replace_file
from conformkit.reference.data import train_val_split
from conformkit.reference.errors import RefusalError
from conformkit.reference.tokenizers import BPETokenizer, CharTokenizer, Tokenizer
from conformkit.reference.training.config import Data
from conformkit.reference.training.source import synthetic_text

__all__ = ["Corpus", "CorpusError", "Tokens", "load_corpus", "new_tokenizer", "tokenize"]

SYNTHETIC_LENGTH = 500_000
SHAKESPEARE = "https://raw.githubusercontent.com/karpathy/char-rnn/master/data/tinyshakespeare/input.txt"
SHAKESPEARE_SHA256 = "86c4e6aa9db7c042ec79f339dcb96d42b0075e16b8fc2e86bf0ca57e2dc565ed"


class CorpusError(RefusalError):
    """There is no text to learn from."""


@dataclass(frozen=True)
class Corpus:
    """A text and where it came from: a name that is known, or the whole path of a file."""

    name: str
    text: str


@dataclass(frozen=True)
class Tokens:
    """Both parts of a text as ids."""

    train: Tensor
    val: Tensor
    tokens_per_character: float
    """Of the validation text."""
    sha256: str
    """Of the whole text, by which a run that goes on knows it."""

    def check_windows(self, block_size: int) -> None:
        """Refuse a text of which a part is shorter than a window. Raises CorpusError."""
        for name, ids in (("training", self.train), ("validation", self.val)):
            if len(ids) <= block_size:
                got = f"{len(ids)} tokens long"
                raise CorpusError(f"the {name} part of the corpus", got, f"at least block_size + 1 = {block_size + 1}")


def load_corpus(name: str) -> Corpus:
    """Return the corpus of that name: `synthetic`, `shakespeare`, else a file.

    Raises: CorpusError for a text that is empty, not UTF-8 or not what was to be fetched; OSError where it can't be
            read.
    """
    if name == "synthetic":
        return Corpus(name, synthetic_text(SYNTHETIC_LENGTH))
    if name == "shakespeare":
        return Corpus(name, _read(_shakespeare()))
    return Corpus(str(Path(name).absolute()), _read(Path(name)))


def new_tokenizer(text: str, data: Data) -> Tokenizer:
    """Return the tokenizer that a configuration asks for, made from a text.

    Characters are numbered over the whole text, since the validation part may hold one that the training part lacks;
    merges of bytes are learned from the training part.
    """
    if data.tokenizer == "char":
        return CharTokenizer(text)
    return BPETokenizer(train_val_split(text, data.fraction)[0], data.vocab_size, data.min_frequency)


def tokenize(text: str, tokenizer: Tokenizer, fraction: float) -> Tokens:
    """Cut a text in two and return the ids of either part. Raises CharacterError."""
    parts = train_val_split(text, fraction)
    train, val = (torch.tensor(tokenizer.encode(part), dtype=torch.int64) for part in parts)
    return Tokens(train, val, len(val) / max(len(parts[1]), 1), hashlib.sha256(text.encode()).hexdigest())


def _read(path: Path) -> str:
    if path.is_dir():
        raise CorpusError(f"the corpus {path}", "a folder", "a text file")
    content = path.read_bytes()
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise CorpusError(f"the corpus {path}", f"not UTF-8 at byte {error.start}", "a text file in UTF-8") from error
    if not text.strip():
        raise CorpusError(f"the corpus {path}", "empty", "a text to learn from")
    if len(set(text)) < 2:
        raise CorpusError(f"the corpus {path}", f"{text[0]!r} again and again", "a text of at least two characters")
    return text


def _shakespeare() -> Path:
    """Return the file with Tiny Shakespeare, fetched if it is not here yet."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "conformkit"
    path = cache / "tinyshakespeare.txt"
    if not path.exists():
        cache.mkdir(parents=True, exist_ok=True)
        replace_file(path, _fetched(SHAKESPEARE))
    if hashlib.sha256(path.read_bytes()).hexdigest() != SHAKESPEARE_SHA256:
        raise CorpusError(str(path), "not Tiny Shakespeare: its checksum differs", "the file as published; delete it")
    return path


def _fetched(url: str) -> bytes:
    try:
        with urllib.request.urlopen(url, timeout=30) as answer:  # noqa: S310 - a constant address
            content: bytes = answer.read(16_000_000)
    except OSError as error:
        advice = f"a connection to {url} ({error}), or --corpus FILE"
        raise CorpusError("Tiny Shakespeare", "not available", advice) from error
    if hashlib.sha256(content).hexdigest() != SHAKESPEARE_SHA256:
        got = f"another text at {url}: its checksum differs"
        raise CorpusError("Tiny Shakespeare", got, "the text as published, or --corpus FILE")
    return content
