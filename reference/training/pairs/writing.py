"""What a trained encoder-decoder writes, and how good that is: greedily and by beam search.

    exact: targets that are right as a whole        tokens: ids in the right place        BLEU: 0 … 100, of the texts

BLEU (Papineni et al. 2002) is sacrebleu's, with its own tokenizer (Post 2018), so that figures can be compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import torch

from conformkit.reference.seq2seq.model import Transformer
from conformkit.reference.training.config import Samples
from conformkit.reference.training.pairs.rules import Pair
from conformkit.reference.training.pairs.vocabulary import BOS, EOS, Vocabulary

__all__ = ["BLEU_LACKING", "TextScore", "WrittenPair", "bleu", "score", "write", "write_beams", "written"]

BLEU_LACKING = "BLEU needs sacrebleu: pip install 'conformkit[translation]'"
BATCH = 64

Sides = tuple[Vocabulary, Vocabulary]


@dataclass(frozen=True)
class WrittenPair:
    """A held-out pair, and what the model wrote for its source."""

    source: str
    wanted: str
    greedy: str
    beam: str

    def record(self, step: int) -> dict[str, Any]:
        """Return it as a line of JSON."""
        return {"step": step, **asdict(self)}


@dataclass(frozen=True)
class TextScore:
    """How good texts are, compared with those wanted."""

    exact: float
    tokens: float
    bleu: float | None
    """None without sacrebleu, and for texts that are not cut into words."""


def write(model: Transformer, sides: Sides, sources: Sequence[str], temperature: float = 0.0) -> list[str]:
    """Return a text for each source, the most probable id at each step, or drawn with a temperature.

    Raises: ShapeError for a source that is longer than max_len.
    """
    found: list[str] = []
    for part in _parts(sources):
        src = _padded(sides[0], part, model)  # (B, S)
        ids = model.generate(src, model.max_len, BOS, EOS, temperature=temperature, use_cache=True)  # (B, n)
        found += [sides[1].decode(row) for row in ids.tolist()]
    return found


def write_beams(
    model: Transformer, sides: Sides, sources: Sequence[str], width: int, length_penalty: float
) -> list[list[tuple[str, float]]]:
    """Return the best texts of each source with their scores, the best first. Raises as `write`."""
    found = []
    for part in _parts(sources):
        src = _padded(sides[0], part, model)  # (B, S)
        ids, scores = model.beam_search(src, model.max_len, BOS, width, length_penalty, EOS)  # (B, W, n), (B, W)
        for row, own in zip(ids.tolist(), scores.tolist(), strict=True):
            found.append([(sides[1].decode(one), value) for one, value in zip(row, own, strict=True)])
    return found


def written(model: Transformer, sides: Sides, pairs: Sequence[Pair], wanted: Samples) -> list[WrittenPair]:
    """Return what the model writes for the sources of pairs."""
    sources = [source for source, _ in pairs]
    greedy = write(model, sides, sources)
    beams = write_beams(model, sides, sources, wanted.beam_width, wanted.length_penalty)
    rows = zip(pairs, greedy, beams, strict=True)
    return [WrittenPair(source, target, text, best[0][0]) for (source, target), text, best in rows]


def score(texts: Sequence[str], wanted: Sequence[str], side: Vocabulary) -> TextScore:
    """Compare texts with those wanted; `side` says what their tokens are.

    BLEU is about words: rows of letters, which are one word each, have none.
    """
    right = total = 0
    for text, other in zip(texts, wanted, strict=True):
        given, ids = [*side.encode(text), EOS], [*side.encode(other), EOS]
        right += sum(a == b for a, b in zip(given, ids, strict=False))
        total += len(ids)
    exact = sum(text == other for text, other in zip(texts, wanted, strict=True)) / len(wanted)
    return TextScore(exact, right / total, bleu(texts, wanted) if side.kind == "word" else None)


def bleu(texts: Sequence[str], wanted: Sequence[str]) -> float | None:
    """Return the BLEU of a corpus, 0 to 100, or None where sacrebleu is not installed."""
    try:
        import sacrebleu  # noqa: PLC0415
    except ImportError:
        return None
    return float(sacrebleu.corpus_bleu(list(texts), [list(wanted)]).score)


def _parts(sources: Sequence[str]) -> list[Sequence[str]]:
    return [sources[start : start + BATCH] for start in range(0, len(sources), BATCH)]


def _padded(side: Vocabulary, texts: Sequence[str], model: Transformer) -> torch.Tensor:
    """Return texts as ids, padded to the longest: (B, S)."""
    rows = [torch.tensor(side.encode(text), dtype=torch.int64) for text in texts]
    return torch.nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=model.pad_id).to(
        model.head.weight.device
    )
