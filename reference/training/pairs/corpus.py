"""Pairs to learn from and pairs to validate on: made by rule, or read from a file with a tab between source and target.

The list is cut in two before vocabularies are made of it: pieces of held-out texts that training does not know stay
unknown.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

from conformkit.reference.data import train_val_split
from conformkit.reference.training.config import Data
from conformkit.reference.training.corpus import CorpusError
from conformkit.reference.training.pairs.rules import Pair, pairs_by_rule
from conformkit.reference.training.pairs.vocabulary import Vocabulary

__all__ = ["Encoded", "PairCorpus", "encoded", "load_pairs", "vocabularies"]

Encoded = list[tuple[list[int], list[int]]]
"""Pairs as ids, without begin and end."""


@dataclass(frozen=True)
class PairCorpus:
    """Pairs of texts, cut in two, and where they came from."""

    name: str
    train: list[Pair]
    val: list[Pair]
    sha256: str
    """Of all pairs, by which a run that goes on knows them."""


def load_pairs(data: Data) -> PairCorpus:
    """Return the pairs that a configuration asks for.

    Raises: CorpusError for a file that holds no pairs; RuleError where a rule has too few; OSError.
    """
    if data.corpus == "synthetic":
        name, pairs = data.corpus, pairs_by_rule(data)
    else:
        if data.corpus == "shakespeare" or data.task != "translation":
            got = f"{data.corpus!r} with data.task = {data.task!r}"
            raise CorpusError("the corpus", got, "synthetic; only translation reads a file of pairs")
        name, pairs = str(Path(data.corpus).absolute()), _read(Path(data.corpus))
    train, val = train_val_split(pairs, data.fraction)
    if not train or not val:
        raise CorpusError(f"the corpus {name}", f"{len(pairs)} pairs", "pairs for training and for validation")
    text = "".join(f"{source}\t{target}\n" for source, target in pairs)
    return PairCorpus(name, list(train), list(val), hashlib.sha256(text.encode()).hexdigest())


def vocabularies(corpus: PairCorpus, data: Data) -> tuple[Vocabulary, Vocabulary]:
    """Return the vocabularies of sources and of targets, learned from the training pairs."""
    least = data.min_frequency if data.tokenizer == "word" else 1
    return (
        Vocabulary.learned((source for source, _ in corpus.train), data.tokenizer, least),
        Vocabulary.learned((target for _, target in corpus.train), data.tokenizer, least),
    )


def encoded(pairs: list[Pair], sides: tuple[Vocabulary, Vocabulary], most: int) -> Encoded:
    """Return pairs as ids. Raises CorpusError for a side longer than `most` ids, of which a target has one for its end.

    A text that is longer is refused, not cut: half a target teaches a model to stop in the middle.
    """
    found: Encoded = []
    for source, target in pairs:
        ids = sides[0].encode(source), sides[1].encode(target)
        longest = max(len(ids[0]), len(ids[1]) + 1)
        if longest > most:
            shown = f"{source[:40]!r}, which is {longest} tokens long"
            raise CorpusError("a pair of the corpus", shown, f"at most model.block_size = {most}, its end included")
        found.append(ids)
    return found


def _read(path: Path) -> list[Pair]:
    """Return the pairs of a file: a source, a tab and a target on each line."""
    if path.is_dir():
        raise CorpusError(f"the corpus {path}", "a folder", "a text file")
    content = path.read_bytes()
    try:
        lines = content.decode("utf-8").splitlines()
    except UnicodeDecodeError as error:
        raise CorpusError(f"the corpus {path}", f"not UTF-8 at byte {error.start}", "a text file in UTF-8") from error
    pairs: dict[str, str] = {}
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        source, tab, target = line.partition("\t")
        if not tab or not source.strip() or not target.strip() or "\t" in target:
            wanted = "a source, one tab and a target"
            raise CorpusError(f"line {number} of the corpus {path}", repr(line[:60]), wanted)
        pairs.setdefault(source.strip(), target.strip())
    if not pairs:
        raise CorpusError(f"the corpus {path}", "empty", "lines with a source, a tab and a target")
    return list(pairs.items())
