"""Clauses of spec/tokenizers.md."""

from __future__ import annotations

import contextlib
import itertools
import unicodedata
from typing import Any

import numpy as np

from conformkit.conformance.assertions.checks import ClauseFailure, NotApplicable, check, each_of
from conformkit.conformance.assertions.draws import Draw
from conformkit.conformance.assertions.sizes import Case, small
from conformkit.conformance.assertions.values import ids, number, shown, text
from conformkit.conformance.driver.errors import ImplementationFailure
from conformkit.conformance.evidence.at_sizes import Pace, check_at_sizes
from conformkit.conformance.evidence.texts import ALPHABET, LINES, LONG, RUNS, STRANGE, drawn, symbols, word
from conformkit.conformance.subject.tool import Tool, ToolObject
from conformkit.conformance.suite.registry import clause
from conformkit.spec.tokenizers import apply_merges, learn_merges

NEVER = 10**6
"""A frequency higher than that of any pair."""
_CHARACTER = 3000.0
"""A character is sent and looked up twice: as costly as some thousand multiplications."""
_UNSEEN = ("日", "Ω")
"""Characters that LINES lacks."""
_SPECIAL = 4
"""For unknown characters, padding, begin and end."""
_OFTEN = "zyxwvu "
_REPEATED, _SAMPLED = 40, 8
"""How often it occurs in a text, at least, and in a sample."""
_WORDS, _MORE = 220, 24
"""Words of a text with many pairs, and entries that a vocabulary has more than another one."""
_MERGE = 30.0
"""A pair that is looked at for one merge."""
_SLOW_MERGES = 2.0
"""A case that takes this many seconds is learned by slow code: fewer merges are enough for it from then on."""
_BYTES = 256
"""Entries of a vocabulary over bytes before the first merge."""
_FREQUENT, _SELDOM = 12, 3
"""How often a pair occurs whose merge comes early, and how often those do at least that are merged."""
_FIRST, _SECOND = "abcdefghij", "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
"""Letters that the pairs before begin with, and, with these, end with."""
_EARLY = {"t": 3, "u": 12, "v": 25, "w": 40, "z": 70}
"""How many of these pairs are merged before y and a letter: ranks of one digit, of two and of three lie apart."""
_LATE = word(("klm", 5), ("lm", 4), ("kl", 3), ("xy", 3))
_MERGES = [*(("y", letter) for letter in _EARLY), ("l", "m"), ("k", "lm"), ("k", "l"), ("x", "y")]
"""Those of `_EARLY`, then those of `_LATE`, the last two in any order."""
_LATE_SAMPLES = ("klmlm", "klm", "klkl", *(f"xy{letter}" for letter in _EARLY))
_WHOLE = "nopqrs"
"""One entry in the end: in a row of them a seam shows nearly anywhere."""
_ROUNDS = 3
"""The least number of repetitions with a first one, a middle one and a last one."""
_ROOM, _TRIES = 5000, 4
"""Entries for all merges of a text; and how often a text is made that has as many as are wanted."""
_MAX_IDS = 64
"""More ids than three characters have: 9 bytes, and special ones around them."""


@clause("TOK-RANGE")
def test_ids_are_whole_numbers_below_the_size_of_the_vocabulary(char_tokenizer: Tool) -> None:
    for corpus in each_of("corpus", [LINES, ALPHABET, "a"]):
        _in_range(char_tokenizer.make(text=corpus), corpus)


@clause("TOK-CHAR-LEN")
def test_every_character_is_one_id(char_tokenizer: Tool, draw: Draw) -> None:
    tokenizer = char_tokenizer.make(text=ALPHABET)
    for sample in each_of("sample", ["a", " ", "\n", "  a  b\n\n", drawn(draw), "日é"]):
        found = _encoded(tokenizer, sample)
        check(f"{shown(sample)}, {len(sample)} characters, is {len(found)} ids", len(found) == len(sample))


@clause("TOK-ROUNDTRIP")
def test_decoding_gives_the_text_back(char_tokenizer: Tool, draw: Draw) -> None:
    tokenizer = char_tokenizer.make(text=ALPHABET)
    for sample in each_of("sample", ["ab", " a\t b\n\n", "\nab ", drawn(draw), drawn(draw)]):
        _comes_back(tokenizer, sample)
    _comes_back(char_tokenizer.make(text=LINES), LINES)


@clause("TOK-VOCAB-SIZE")
def test_the_vocabulary_has_one_id_for_each_distinct_character(char_tokenizer: Tool) -> None:
    for corpus in each_of("corpus", [LINES, ALPHABET, "aaaa"]):
        tokenizer, distinct = char_tokenizer.make(text=corpus), len(set(corpus))
        size = _size(tokenizer)
        spare = distinct < size <= distinct + _SPECIAL and all(_decodes(tokenizer, one) for one in range(size))
        check(f"the vocabulary of {distinct} distinct characters has {size} entries", size == distinct or spare)


@clause("TOK-BIJECTIVE")
def test_every_id_is_a_character_of_its_own(char_tokenizer: Tool) -> None:
    tokenizer = char_tokenizer.make(text=ALPHABET)
    found = _encoded(tokenizer, ALPHABET)
    check(f"{len(ALPHABET)} characters share {len(set(found))} ids", len(set(found)) == len(ALPHABET))
    size = _size(tokenizer)
    check(f"{len(ALPHABET)} characters make a vocabulary of {size} entries", size <= len(ALPHABET) + _SPECIAL)
    decoded = [piece for one in range(size) if (piece := _decoded(tokenizer, [one]))]  # special ones: ""
    check("two ids decode to the same text", len(set(decoded)) == len(decoded))


@clause("TOK-DETERMINISTIC")
def test_the_same_text_gives_the_same_ids_in_every_process(char_tokenizer: Tool) -> None:
    first, again = (_order(char_tokenizer.make(text=LINES), LINES) for _ in range(2))
    check("two tokenizers of the same text have the characters in another order", first == again)
    of_a_set = _as_in_a_set(char_tokenizer, LINES)
    usual = ("".join(sorted(set(LINES))), "".join(dict.fromkeys(LINES)))
    label = f"its ids follow the order that a set has in this process, {shown(first[:12])} …"
    check(label, first != of_a_set or first in usual)


@clause("TOK-CONCAT")
def test_the_ids_of_two_texts_together_are_those_of_each(char_tokenizer: Tool, draw: Draw) -> None:
    tokenizer = char_tokenizer.make(text=ALPHABET)
    for one, other in each_of("one, other", [("a", "b"), ("ab ", "\nc"), (" ", " "), (drawn(draw), drawn(draw))]):
        together = _encoded(tokenizer, one + other)
        apart = _encoded(tokenizer, one) + _encoded(tokenizer, other)
        check(f"{shown(one)} and {shown(other)} have different ids together than alone", together == apart)


@clause("TOK-EMPTY")
def test_no_text_is_no_ids(char_tokenizer: Tool) -> None:
    _nothing(char_tokenizer.make(text=ALPHABET))


@clause("TOK-UNKNOWN")
def test_an_unknown_character_is_refused_or_has_an_id_of_its_own(char_tokenizer: Tool) -> None:
    for corpus, sample in each_of("corpus, sample", [("abc", "abZc"), ("ab ", "Z"), ("xyz", "é")]):
        tokenizer = char_tokenizer.make(text=corpus)
        known = set(_encoded(tokenizer, corpus))
        found = [] if _refuses(tokenizer, "encode", text=sample) else _encoded(tokenizer, sample)
        label = f"{shown(sample)} of the vocabulary {shown(corpus)} is {len(found)} ids"
        check(label, _refuses(tokenizer, "encode", text=sample) or len(found) == len(sample))
        for new in [one for one, c in zip(found, sample, strict=False) if c not in corpus]:
            check(
                f"the unknown character of {shown(sample)} has id {new}, which belongs to a known one", new not in known
            )
            check(f"it has id {new}, the vocabulary has {_size(tokenizer)}", 0 <= new < _size(tokenizer))


@clause("TOK-NO-MUTATION")
def test_encoding_and_decoding_dont_change_the_vocabulary(char_tokenizer: Tool) -> None:
    tokenizer = char_tokenizer.make(text=ALPHABET)
    size, before = _size(tokenizer), _encoded(tokenizer, ALPHABET)
    for sample in each_of("sample", ["ab", "Z", "§§"]):
        _refuses(tokenizer, "encode", text=sample)
        check(f"vocab_size is {_size(tokenizer)} after {shown(sample)}, before it {size}", _size(tokenizer) == size)
        check(f"known characters have different ids after {shown(sample)}", _encoded(tokenizer, ALPHABET) == before)


@clause("TOK-TYPES")
def test_decoding_takes_lists_arrays_and_tensors(char_tokenizer: Tool) -> None:
    tokenizer = char_tokenizer.make(text=ALPHABET)
    found = np.array(_encoded(tokenizer, "ab ca"))
    for form in each_of("form", ["list", "array", "tensor"] if char_tokenizer.link.is_torch else ["list", "array"]):
        got = text("the decoded text", tokenizer.call("decode", form=form, ids=found))
        check(f"the ids of 'ab ca' in a {form} decode to {shown(got)}", got == "ab ca")


@clause("TOK-BPE-RANGE")
def test_ids_of_byte_pairs_are_below_the_size_of_the_vocabulary(bpe_tokenizer: Tool) -> None:
    tokenizer = bpe_tokenizer.make(text=LINES)
    for sample in each_of("sample", [LINES, "the cat", "t"]):
        _in_range(tokenizer, sample)


@clause("TOK-BPE-CAP")
def test_the_vocabulary_is_at_most_as_large_as_asked_for(bpe_tokenizer: Tool) -> None:
    for asked in each_of("asked", [280, 270, 500]):
        size = _size(bpe_tokenizer.make(text=LINES * 3, vocab_size=asked))
        check(f"the vocabulary has {size} entries, {asked} were asked for", size <= asked)


@clause("TOK-BPE-ROUNDTRIP")
def test_the_text_that_it_learned_from_comes_back(bpe_tokenizer: Tool) -> None:
    tokenizer = bpe_tokenizer.make(text=LINES)
    layout = keeps_layout(tokenizer)
    for sample in each_of("sample", [LINES, "the cat", "cat\n\n\tsat  on", "that is", LONG]):
        _comes_back(tokenizer, sample, layout=layout)
    tokenizer = bpe_tokenizer.make(text=RUNS * 3)
    for sample in each_of("sample", [RUNS, *("a" * length for length in range(1, 10)), "baaab", "   b"]):
        _comes_back(tokenizer, sample, layout=layout)


@clause("TOK-BPE-LAYOUT")
def test_blanks_and_line_ends_come_back(bpe_tokenizer: Tool) -> None:
    tokenizer = bpe_tokenizer.make(text=LINES)
    for sample in each_of("sample", [LINES, "cat\n\n\tsat  on"]):
        _comes_back(tokenizer, sample)


@clause("TOK-BPE-NO-PREFIX-SPACE")
def test_no_blank_is_put_in_front(bpe_tokenizer: Tool) -> None:
    tokenizer = bpe_tokenizer.make(text=LINES)
    if not keeps_layout(tokenizer):
        raise NotApplicable("it keeps words, not the blanks between them: TOK-BPE-LAYOUT")
    for sample in each_of("sample", ["cat", "the cat", "."]):
        own, spaced = _encoded(tokenizer, sample), _encoded(tokenizer, " " + sample)
        check(f"{shown(sample)} and {shown(' ' + sample)} have the same ids", own != spaced)
        got = _decoded(tokenizer, own)
        check(f"{shown(sample)} comes back as {shown(got)}", not got.startswith(" "))


@clause("TOK-BPE-BYTES")
def test_any_text_has_ids_and_comes_back(bpe_tokenizer: Tool, draw: Draw) -> None:
    tokenizer = bpe_tokenizer.make(text=LINES)
    samples = [*STRANGE, drawn(draw), "".join(map(chr, range(1, 256)))]
    if over_characters(tokenizer):
        _check_unknown(tokenizer, set(LINES), samples)
        return
    for sample in each_of("sample", samples):
        _comes_back(tokenizer, sample)


@clause("TOK-BPE-EMPTY")
def test_no_text_is_no_byte_pairs(bpe_tokenizer: Tool) -> None:
    _nothing(bpe_tokenizer.make(text=LINES))


@clause("TOK-BPE-SHORTER")
def test_merges_shorten_the_text(bpe_tokenizer: Tool) -> None:
    tokenizer = bpe_tokenizer.make(text=LINES * 3)
    size = len(LINES.encode())
    count = len(_encoded(tokenizer, LINES))
    check(f"the training text has {size} bytes and {count} ids", count < size)
    loud = "AB" * 40
    count = len(_encoded(bpe_tokenizer.make(text=loud), loud))
    check(f"{shown(loud)}, from the training text, has {count} ids, {len(loud)} bytes", count < len(loud))
    for sample in each_of("sample", STRANGE):
        if _refuses(tokenizer, "encode", text=sample):
            continue  # TOK-BPE-BYTES says who may
        count, size, words = len(_encoded(tokenizer, sample)), len(sample.encode()), len(sample.split())
        check(f"{shown(sample)} has {count} ids, {size} bytes and {words} words", count <= size + words)


@clause("TOK-BPE-GREEDY")
def test_the_most_frequent_pair_is_merged_first(bpe_tokenizer: Tool) -> None:
    for pieces, count in each_of("pieces, count", [
        ([("ab", 6), ("cd", 3)], 1), ([("ab", 3), ("cd", 6)], 1), ([("abc", 5), ("ab", 3)], 2),
        ([("abc", 7), ("bc", 2), ("ab", 4)], 2), ([("cdc", 5), ("dc", 2)], 1),
    ]):  # fmt: skip
        _merges(bpe_tokenizer, pieces, count, ("ab", "bc", "cd", "dc", "abc", "ca"))


@clause("TOK-BPE-ORDER")
def test_merges_are_applied_in_the_order_in_which_they_were_learned(bpe_tokenizer: Tool) -> None:
    nested = [("abc", 5), ("bc", 4), ("ab", 3)]  # bc, a + bc, ab: abc is one piece, also for who takes the longest
    for pieces in each_of(
        "pieces", [[("ab", 6), ("bc", 4)], nested, [("bc", 6), ("ab", 4)], [("cd", 7), ("bc", 5), ("ab", 3)]]
    ):
        _merges(bpe_tokenizer, pieces, len(pieces), ("abc", "abcbc", "abcd", "bcd", "abab", "bcbc"))


@clause("TOK-BPE-MINFREQ")
def test_a_pair_that_came_too_rarely_is_not_merged(bpe_tokenizer: Tool) -> None:
    for pieces, least, merges in each_of(
        "pieces, least, merges", [([("ab", 1)], 2, 0), ([("ab", 4), ("cd", 2)], 3, 1), ([("ab", 2)], 2, 1)]
    ):
        base = _size(bpe_tokenizer.make(text=word(*pieces), min_frequency=NEVER))
        size = _size(bpe_tokenizer.make(text=word(*pieces), min_frequency=least))
        label = (
            f"with min_frequency {least}, {size - base} pairs of {shown(word(*pieces))} were merged, expected {merges}"
        )
        check(label, size - base == merges)


@clause("TOK-BPE-DETERMINISTIC")
def test_the_same_text_gives_the_same_merges(bpe_tokenizer: Tool) -> None:
    first, again = (bpe_tokenizer.make(text=LINES) for _ in range(2))
    check("vocab_size differs", _size(first) == _size(again))
    for sample in each_of("sample", [LINES, "the cat that sat"]):
        check(f"the ids of {shown(sample)} differ", _encoded(first, sample) == _encoded(again, sample))


@clause("TOK-REENCODE")
def test_decoded_text_encodes_to_the_same_ids(bpe_tokenizer: Tool, draw: Draw) -> None:
    tokenizer = bpe_tokenizer.make(text=LINES)
    strange = [] if over_characters(tokenizer) else [*STRANGE[:4], drawn(draw)]
    for sample in each_of("sample", [LINES, "the cat", *strange]):
        found = _encoded(tokenizer, sample)
        check(f"the ids of {shown(sample)} changed", _encoded(tokenizer, _decoded(tokenizer, found)) == found)


@clause("TOK-SPECIAL-NOT-IN-TEXT")
def test_text_that_looks_like_a_special_token_is_text(bpe_tokenizer: Tool) -> None:
    samples = ["[PAD]", "a [UNK] b", "[BOS][EOS]", "<s> </s>", "<pad><unk>", "<|endoftext|>", "[CLS]"]
    tokenizer = bpe_tokenizer.make(text=LINES + "".join(sorted(set("".join(samples)))))
    for sample in each_of("sample", samples):
        _comes_back(tokenizer, sample)


@clause("TOK-PARTIAL-DECODE")
def test_ids_that_hold_part_of_a_character_decode(bpe_tokenizer: Tool) -> None:
    tokenizer = bpe_tokenizer.make(text=LINES)
    if over_characters(tokenizer):
        raise NotApplicable("no id of it is part of a character")
    found = _encoded(tokenizer, "é日🙂")
    check(f"3 characters have {len(found)} ids", len(found) <= _MAX_IDS)
    for cut in each_of("cut", range(1, len(found))):
        _decoded(tokenizer, found[:cut])
        _decoded(tokenizer, found[cut:])


@clause("TOK-SIZES")
def test_characters_come_back_from_texts_of_any_length(char_tokenizer: Tool, draw: Draw) -> None:
    def check_sizes(sizes: Case) -> None:
        alphabet = symbols(sizes["symbols"])
        tokenizer = char_tokenizer.make(text=alphabet)
        found = _encoded(tokenizer, alphabet)
        check(f"{len(alphabet)} characters share {len(set(found))} ids", len(set(found)) == len(alphabet))
        sample = drawn(draw.at(sizes), alphabet, length=sizes["tokens"])
        _in_range(tokenizer, sample)
        _comes_back(tokenizer, sample)

    check_at_sizes(draw, check_sizes, _characters, dict, after="TOK-ROUNDTRIP")


@clause("TOK-BPE-SIZES")
def test_byte_pairs_come_back_as_texts_of_any_length(bpe_tokenizer: Tool, draw: Draw) -> None:
    known = bpe_tokenizer.make(text=LINES)
    characters, layout = over_characters(known), keeps_layout(known)

    def check_sizes(sizes: Case) -> None:
        own, most = draw.at(sizes), 300 + characters * sizes["symbols"]  # whoever begins with characters needs them all
        sample = "a" + drawn(own, " " + symbols(sizes["symbols"]), length=sizes["tokens"])[1:]  # one word at least
        tokenizer = bpe_tokenizer.make(
            text=sample, **({"vocab_size": most} if bpe_tokenizer.offers("vocab-size") else {})
        )
        _in_range(tokenizer, sample)
        _comes_back(tokenizer, sample, layout=layout)

    check_at_sizes(draw, check_sizes, _characters, dict, after="TOK-BPE-ROUNDTRIP")


@clause("TOK-BPE-LEARN-SIZES")
def test_merges_are_learned_from_the_whole_text_for_the_whole_vocabulary(bpe_tokenizer: Tool, draw: Draw) -> None:
    def check_sizes(sizes: Case) -> None:
        own, size = draw.at(sizes), sizes["entries"]
        often = _OFTEN * (_REPEATED + sizes["tokens"] // _REPEATED)
        late = bpe_tokenizer.make(text=drawn(own, " abcdefgh", length=sizes["tokens"]) + often, **_asked(size))
        count, most = len(_encoded(late, _OFTEN * _SAMPLED)), len(_OFTEN) * _SAMPLED // 2
        often_there = f"{shown(_OFTEN)}, frequent at the end of the text, {_SAMPLED} times"
        check(f"{often_there} is {count} ids, expected {most} at most", count <= most)
        if bpe_tokenizer.offers("vocab-size"):
            pairs = _many_pairs(own)
            fewer, more = (
                len(_encoded(bpe_tokenizer.make(text=pairs, **_asked(n)), pairs)) for n in (size - _MORE, size)
            )
            check(f"with {size - _MORE} entries a text is {fewer} ids, with {size} entries {more}", more < fewer)

    def _asked(size: int) -> dict[str, int]:
        wanted = {"vocab_size": size} if bpe_tokenizer.offers("vocab-size") else {}
        return wanted | ({"min_frequency": 2} if bpe_tokenizer.offers("min-frequency") else {})

    def cost(sizes: Case) -> float:
        return _MERGE * (sizes["entries"] - 256) * sizes["tokens"]

    check_at_sizes(draw, check_sizes, cost, dict, after="TOK-BPE-SHORTER")


@clause("TOK-BPE-ORDER-SIZES")
def test_merges_are_applied_in_their_order_however_many_and_in_texts_of_any_length(
    bpe_tokenizer: Tool, draw: Draw
) -> None:
    known: dict[int, tuple[ToolObject, int]] = {}

    def check_sizes(sizes: Case) -> None:
        entries = sizes["entries"]
        if entries not in known:
            known[entries] = _with_late_merges(bpe_tokenizer, draw.at({}), entries)
        tokenizer, before = known[entries]
        for sample in _LATE_SAMPLES:
            want = apply_merges(sample, _MERGES)
            got = _visible_pieces(tokenizer, sample)
            label = f"after {before} other merges, {shown(sample)} is {' + '.join(map(shown, got))}"
            check(f"{label}, expected {' + '.join(map(shown, want))}", got == want)
        for unit in (_WHOLE + " ", 5 * _WHOLE + " "):
            _check_regular(tokenizer, unit, sizes["tokens"])

    def cost(sizes: Case) -> float:
        return _MERGE * (sizes["entries"] - _BYTES) ** 2 * _FREQUENT + _CHARACTER * sizes["tokens"]

    def nearest(sizes: Case) -> dict[str, int]:
        few = small("entries", draw.domain)[1]
        return {**sizes, "entries": max(sizes["entries"], few)}  # learned once for all that are few

    check_at_sizes(
        draw, check_sizes, cost, nearest, after="TOK-BPE-ORDER", following=("entries",), renew=known.clear,
        pace=Pace(slow=_SLOW_MERGES),
    )  # fmt: skip


def _with_late_merges(bpe_tokenizer: Tool, draw: Draw, entries: int) -> tuple[ToolObject, int]:
    """Return a tokenizer of about so many entries, of which those of `_LATE` are the last, and how many are before."""
    late = f"{word((_WHOLE, _FREQUENT - 1))} {_LATE}"
    base = _size(bpe_tokenizer.make(text=late, min_frequency=NEVER))
    pairs = [first + second for first in _FIRST for second in (*_FIRST, *_SECOND)]
    pairs = [pairs[number] for number in draw.permutation(len(pairs)).tolist()]
    wanted = max(entries - _BYTES, 1)
    count, before = max(1, wanted // 2), (0, 0)  # whole words of pairs are merged with their neighbors, too
    for attempt in range(_TRIES):
        corpus, begin = "", 0
        for times, (letter, end) in zip(range(2 * len(_EARLY), 0, -2), _EARLY.items(), strict=True):
            early = word(("y" + letter, _FREQUENT + times - 1))
            corpus += f"{' '.join(pairs[begin : min(end, count)] * (_FREQUENT + times))} {early} "
            begin = end
        corpus += f"{' '.join(pairs[begin:count] * _FREQUENT)} {late}"
        tokenizer = bpe_tokenizer.make(text=corpus, vocab_size=_ROOM, min_frequency=_SELDOM)
        merges = _size(tokenizer) - base
        if abs(merges - wanted) <= 1 or (count == 1 and merges > wanted) or attempt == _TRIES - 1:
            break
        each = (merges - before[1]) / (count - before[0])
        before, count = (count, merges), max(1, min(len(pairs), count + round((wanted - merges) / max(each, 0.5))))
        if count == before[0]:
            break
    return tokenizer, merges - len(_MERGES)


def _check_regular(tokenizer: ToolObject, unit: str, length: int) -> None:
    """Check that a unit that no merge leaves has the same ids each time, in a text of so many characters."""
    times, rest = max(_ROUNDS, length // len(unit)), length % len(unit)
    few, more, found = (_encoded(tokenizer, unit * n + unit[:rest]) for n in (_ROUNDS, _ROUNDS + 1, times))
    each = len(more) - len(few)
    want = few[:each] + few[each : 2 * each] * (times - 2) + few[2 * each :]
    label = f"{times} times {shown(unit)}, each {each} ids, is {len(found)} ids"
    check(f"{label}, expected {len(want)}, the same each time", found == want)


def _many_pairs(draw: Draw) -> str:
    """Return a text of many words, each of them twice: there is more to merge than any vocabulary here has room for."""
    letters = "abcdefghijklmnopqrstuvwxyz"
    words = ["".join(letters[i] for i in draw.ids(26, draw.integer(4, 8))) for _ in range(_WORDS)]
    return " ".join(words + words[::-1])


def _characters(sizes: Case) -> float:
    """Estimate the cost of learning an alphabet, and of a text."""
    return _CHARACTER * (sizes["symbols"] + sizes["tokens"])


# --- bytes or characters ----------------------------------------------------------------------------------------------


def over_characters(tokenizer: ToolObject) -> bool:
    """Whether it begins with characters: of two that it never saw it refuses both, or gives both the same id."""
    found = [[] if _refuses(tokenizer, "encode", text=one) else _encoded(tokenizer, one) for one in _UNSEEN]
    return found[0] == found[1] and all(_refuses(tokenizer, "encode", text=one) or found[0] for one in _UNSEEN)


def keeps_layout(tokenizer: ToolObject) -> bool:
    """Whether blanks and line ends have ids: always over bytes; over characters, unless only words have."""
    ways = {tuple(_encoded(tokenizer, sample)) for sample in ("the cat", "the\n cat", " the  cat ")}
    return len(ways) > 1 or not over_characters(tokenizer)


def _check_unknown(tokenizer: ToolObject, known: set[str], samples: list[str]) -> None:
    """Check that texts with unknown characters are refused, or have the unknown id for each of these."""
    refused = _refuses(tokenizer, "encode", text=_UNSEEN[0])
    ids_of_known = set(_encoded(tokenizer, LINES))
    own = [] if refused else [one for one in _encoded(tokenizer, _UNSEEN[0]) if one not in ids_of_known]
    check(f"the unknown character {shown(_UNSEEN[0])} has ids of known ones", refused or bool(own))
    if own:
        _in_range(tokenizer, _UNSEEN[0])
    for sample in each_of("sample", samples):
        strange = [one not in known for one in sample]
        runs = sum(now and not before for before, now in itertools.pairwise([False, *strange]))
        spaces = sum(new and one.isspace() for new, one in zip(strange, sample, strict=True))  # dropped with the layout
        if _refuses(tokenizer, "encode", text=sample):
            check(f"{shown(sample)} is refused, though all of it is known", any(strange))
            continue
        found = sum(one in own for one in _encoded(tokenizer, sample))
        label = f"{sum(strange)} characters of {shown(sample)} are unknown, {found} ids say so"
        check(label, runs - spaces <= found <= sum(strange) * max(len(own), 1))


# --- what a tokenizer says --------------------------------------------------------------------------------------------


def _size(tokenizer: ToolObject) -> int:
    return int(number("vocab_size", tokenizer.attribute("vocab_size")))


def _encoded(tokenizer: ToolObject, sample: str) -> list[int]:
    found = ids(f"the ids of {shown(sample)}", tokenizer.call("encode", text=sample))
    check(f"the ids of {shown(sample)} are returned in an array of {found.ndim} dimensions", found.ndim == 1)
    return [int(one) for one in found]


def _decoded(tokenizer: ToolObject, found: list[int]) -> str:
    return text("the decoded text", tokenizer.call("decode", ids=np.array(found, np.int64)))


def _comes_back(tokenizer: ToolObject, sample: str, *, layout: bool = True) -> None:
    """Check that a text comes back; without its layout, that its words do."""
    got = _decoded(tokenizer, _encoded(tokenizer, sample))
    same = got == sample or (not layout and got.split() == sample.split())
    check(f"{shown(sample)} comes back as {shown(got)}{'' if same else _unlike(sample, got)}", same)


def _unlike(sample: str, got: str) -> str:
    """Say where a text and what came back first differ, unless what is shown of them tells."""
    if unicodedata.normalize("NFKC", sample) == unicodedata.normalize("NFKC", got):
        return f", that is {got[:12]!a} instead of {sample[:12]!a}"  # they may look the same
    if shown(sample) != shown(got):
        return ""
    at = next((n for n, (one, other) in enumerate(zip(sample, got, strict=False)) if one != other), len(got))
    at = min(at, len(sample), len(got))
    ends = (f"{shown(one[at:][:12])}" if one[at:] else "its end" for one in (got, sample))
    return f", with {' instead of '.join(ends)} after {at} of {len(sample)} characters"


def _in_range(tokenizer: ToolObject, sample: str) -> None:
    found, size = _encoded(tokenizer, sample), _size(tokenizer)
    wrong = [one for one in found if not 0 <= one < size]
    check(f"{shown(sample)} has id {wrong[:1]}, the vocabulary has {size} entries", not wrong)
    check(f"{shown(sample)} has no ids", bool(found))


def _nothing(tokenizer: ToolObject) -> None:
    check("the ids of an empty text are not empty", _encoded(tokenizer, "") == [])
    got = _decoded(tokenizer, [])
    check(f"no ids decode to {shown(got)}", not got)


def _decodes(tokenizer: ToolObject, one: int) -> bool:
    return not _refuses(tokenizer, "decode", ids=np.array([one]))


def _refuses(tokenizer: ToolObject, method: str, **arguments: Any) -> bool:
    try:
        tokenizer.call(method, **arguments)
    except ImplementationFailure as failure:
        if failure.kind != "exception":
            raise
        return True
    return False


def _order(tokenizer: ToolObject, corpus: str) -> str:
    """Return the distinct characters in the order of their ids."""
    characters = sorted(set(corpus))
    numbers = _encoded(tokenizer, "".join(characters))
    check(f"{len(characters)} characters have {len(numbers)} ids", len(numbers) == len(characters))
    return "".join(c for _, c in sorted(zip(numbers, characters, strict=True)))


def _as_in_a_set(tool: Tool, corpus: str) -> str:
    """Return the distinct characters in the order that a set has in the worker's process."""
    made = tool.link.request({"op": "build", "path": "builtins:set", "factory": True, "args": [corpus]}, {})
    listed = tool.link.request({"op": "build", "path": "builtins:list", "factory": True,
                                "args": [{"$handle": made.header["handle"]}]}, {})  # fmt: skip
    joined = {"op": "ask", "handle": listed.header["handle"], "attribute": "copy"}
    found = tool.plain(joined)
    return "".join(found) if isinstance(found, list) and all(isinstance(one, str) for one in found) else ""


# --- merges -----------------------------------------------------------------------------------------------------------


def _merges(bpe_tokenizer: Tool, pieces: list[tuple[str, int]], count: int, samples: tuple[str, ...]) -> None:
    """Check how samples are split after some merges of a text of one word, whatever splits texts into words."""
    corpus = word(*pieces)
    base = _size(bpe_tokenizer.make(text=corpus, min_frequency=NEVER))
    tokenizer = bpe_tokenizer.make(text=corpus, vocab_size=base + count)
    merges = learn_merges(corpus, _merged(tokenizer, corpus))
    check(f"{shown(corpus)} has no merges with vocab_size = {base + count}", bool(merges))
    learned = " then ".join(a + b for a, b in merges)
    for sample in (*samples, corpus):
        if not set(sample) <= set(corpus) and over_characters(tokenizer):
            continue  # it knows the characters of its text
        want = apply_merges(sample, merges)
        got = _visible_pieces(tokenizer, sample)
        label = f"after merging {learned}, {shown(sample)} is {' + '.join(map(shown, got))}"
        check(f"{label}, expected {' + '.join(map(shown, want))}", got == want)


def _merged(tokenizer: ToolObject, corpus: str) -> int:
    """Return how many entries stand for several characters of a text; what `vocab_size` counts besides is open."""
    entries = [_decoded_alone(tokenizer, one).strip() for one in range(_size(tokenizer))]
    return len({entry for entry in entries if len(entry) > 1 and entry in corpus})


def _decoded_alone(tokenizer: ToolObject, one: int) -> str:
    """Return what an id stands for, nothing where a single id can't be decoded."""
    with contextlib.suppress(ImplementationFailure, ClauseFailure):
        return _decoded(tokenizer, [one])
    return ""


def _visible_pieces(tokenizer: ToolObject, sample: str) -> list[str]:
    """Return what each id of a short text stands for, except for blanks."""
    found = _encoded(tokenizer, sample)[: len(sample) + 1]
    return [piece for one in found if (piece := _decoded(tokenizer, [one])).strip()]
