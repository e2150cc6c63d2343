"""Texts to train tokenizers on, and texts to try them on."""

from __future__ import annotations

from conformkit.conformance.assertions.draws import Draw

__all__ = ["ALPHABET", "LINES", "LONG", "RUNS", "STRANGE", "drawn", "symbols", "word"]

LINES = (
    "The cat sat on the mat.  The mat, the cat and the hat!\n"
    "\tIndented by a tab; two  blanks inside, one at the end \n"
    "\n"
    "And then the cat said: that is that, and this is this.\r\n"
)
"""Common pieces, repeated blanks, a tab, an empty line, both kinds of line ends; no digits, no capital Z."""

LONG = "thatcatsatonthemat" * 20
"""A word longer than any in a table of words; all of its letters are in LINES."""

RUNS = "aaa aaaaa b    aaaaaaaa\n    baaaab aaaaaaa   b\n"
"""Letters and blanks in rows: a pair of two equal ones overlaps itself."""

STRANGE = ("é", "naïve café", "日本語", "🙂🙃", "\x00\x07", "a\u0301", "Ω≈ç√", "00112233", "ZZZ", " \n ", "\r\n\r\n")
"""Characters that LINES lacks: other scripts, controls, a combining accent, digits."""

ALPHABET = "ab \n\tcdeB.!éß日"


def drawn(draw: Draw, alphabet: str = ALPHABET, *, length: int = 40) -> str:
    """Draw a text over an alphabet, blanks and line ends as probable as letters."""
    return "".join(alphabet[number] for number in draw.ids(len(alphabet), length).tolist())


def symbols(count: int) -> str:
    """Return so many distinct characters: letters, then Greek and Cyrillic ones, then Chinese ones."""
    return "".join(map(chr, [*range(ord("a"), ord("z") + 1), *range(0x391, 0x3A2), *range(0x410, 0x450)]))[:count] + (
        "".join(map(chr, range(0x4E00, 0x4E00 + max(count - 107, 0))))
    )


def word(*pieces: tuple[str, int]) -> str:
    """Return one word in which each piece occurs `times` times, always between letters that occur once."""
    fillers = iter("QWERTYUIOPSDFGHJKLZXVBNM")
    return "".join(piece + next(fillers) for piece, count in pieces for _ in range(count))
