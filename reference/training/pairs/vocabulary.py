"""The ids of one side of a pair: four special ones, then characters or words.

    0 padding      1 begin      2 end      3 unknown      4 … the pieces of the learned texts, the most frequent first

Words keep the blank before them, so that what is decoded is the text again; a text begins as if there were one before
it. Pieces that are rarer than `min_frequency`, and those that only held-out texts have, are unknown.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

__all__ = ["BOS", "EOS", "PAD", "UNKNOWN", "Vocabulary"]

PAD, BOS, EOS, UNKNOWN = 0, 1, 2, 3
SPECIAL = 4
_SHOWN_UNKNOWN = "\N{REPLACEMENT CHARACTER}"
_WORDS = re.compile(r" ?\w+|\W")


class Vocabulary:
    """From texts to ids and back; ids 0 to 3 are special, so no text contains them."""

    def __init__(self, kind: str, pieces: Iterable[str]) -> None:
        self.kind, self.pieces = kind, list(pieces)
        self._ids = {piece: number for number, piece in enumerate(self.pieces, SPECIAL)}

    @classmethod
    def learned(cls, texts: Iterable[str], kind: str, min_frequency: int = 1) -> Vocabulary:
        """Return the vocabulary of texts: kind `char` or `word`."""
        counts = Counter(piece for text in texts for piece in _cut(text, kind))
        kept = [piece for piece, count in counts.items() if count >= min_frequency]
        return cls(kind, sorted(kept, key=lambda piece: (-counts[piece], piece)))

    @property
    def vocab_size(self) -> int:
        """The number of ids, the special ones included."""
        return SPECIAL + len(self.pieces)

    def encode(self, text: str) -> list[int]:
        """Return the ids of a text; a piece that was not learned is unknown."""
        return [self._ids.get(piece, UNKNOWN) for piece in _cut(text, self.kind)]

    def decode(self, ids: Iterable[int]) -> str:
        """Return the text of ids up to the end id; padding and begin are left out, unknown is shown as U+FFFD."""
        found = []
        for number in ids:
            if number == EOS:
                break
            if number == UNKNOWN:
                found.append(_SHOWN_UNKNOWN)
            elif number >= SPECIAL:
                found.append(self.pieces[number - SPECIAL])
        text = "".join(found)
        return text.removeprefix(" ") if self.kind == "word" else text

    def named(self, ids: Iterable[int]) -> list[str]:
        """Return each id as a text to be shown, special ones in angle brackets."""
        special = ("<pad>", "<begin>", "<end>", "<unknown>")
        return [special[number] if number < SPECIAL else self.pieces[number - SPECIAL] for number in ids]

    def unknown(self, text: str) -> list[str]:
        """Return the pieces of a text that were not learned."""
        return [piece for piece in _cut(text, self.kind) if piece not in self._ids]

    def as_object(self) -> dict[str, object]:
        """Return what `from_object` makes the same vocabulary from."""
        return {"kind": self.kind, "pieces": self.pieces}

    @classmethod
    def from_object(cls, kept: Mapping[str, Any]) -> Vocabulary:
        """Return a vocabulary that `as_object` gave. Raises KeyError or TypeError for anything else."""
        return cls(str(kept["kind"]), list(kept["pieces"]))

    def to_json(self) -> str:
        """Return it as JSON."""
        return json.dumps(self.as_object(), ensure_ascii=False)


def _cut(text: str, kind: str) -> list[str]:
    return list(text) if kind == "char" else _WORDS.findall(f" {text}")
