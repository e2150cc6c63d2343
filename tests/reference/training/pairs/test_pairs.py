"""Pairs by rule are right, vocabularies give texts back, batches hold pairs of similar length."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from conformkit.reference.steps import IGNORED
from conformkit.reference.training.config import Data
from conformkit.reference.training.corpus import CorpusError
from conformkit.reference.training.pairs.batches import Buckets, as_batch, held_out_batches, padding_share
from conformkit.reference.training.pairs.corpus import encoded, load_pairs, vocabularies
from conformkit.reference.training.pairs.numerals import date_in_english, date_in_french, in_english, in_french
from conformkit.reference.training.pairs.rules import RuleError, pairs_by_rule
from conformkit.reference.training.pairs.vocabulary import BOS, EOS, PAD, UNKNOWN, Vocabulary
from conformkit.reference.training.pairs.writing import bleu, score
from tests.needs import optional

CPU = torch.device("cpu")


@pytest.mark.parametrize(
    ("number", "english", "french"),
    [
        (0, "zero", "zéro"),
        (21, "twenty-one", "vingt et un"),
        (71, "seventy-one", "soixante et onze"),
        (80, "eighty", "quatre-vingts"),
        (81, "eighty-one", "quatre-vingt-un"),
        (91, "ninety-one", "quatre-vingt-onze"),
        (100, "one hundred", "cent"),
        (200, "two hundred", "deux cents"),
        (201, "two hundred and one", "deux cent un"),
        (1_000, "one thousand", "mille"),
        (4_084, "four thousand and eighty-four", "quatre mille quatre-vingt-quatre"),
        (80_000, "eighty thousand", "quatre-vingt mille"),
        (200_300, "two hundred thousand three hundred", "deux cent mille trois cents"),
    ],
)
def test_numbers_are_spelt_as_the_grammars_say(number: int, english: str, french: str) -> None:
    assert (in_english(number), in_french(number)) == (english, french)


def test_every_number_has_words_of_its_own() -> None:
    assert len({in_french(number) for number in range(10_000)}) == 10_000
    assert len({in_english(number) for number in range(10_000)}) == 10_000
    with pytest.raises(ValueError, match="-1 is no number from 0"):
        in_french(-1)


@pytest.mark.parametrize(
    ("day", "english", "french"),
    [
        ((1984, 5, 3), "thursday the third of may nineteen eighty-four",
         "jeudi trois mai mille neuf cent quatre-vingt-quatre"),
        ((1905, 1, 1), "sunday the first of january nineteen oh five", "dimanche premier janvier mille neuf cent cinq"),
        ((2000, 12, 31), "sunday the thirty-first of december two thousand",
         "dimanche trente et un décembre deux mille"),
        ((1900, 4, 30), "monday the thirtieth of april nineteen hundred", "lundi trente avril mille neuf cents"),
        ((2030, 3, 20), "wednesday the twentieth of march twenty thirty", "mercredi vingt mars deux mille trente"),
    ],
)  # fmt: skip
def test_dates_are_read_as_people_read_them(day: tuple[int, int, int], english: str, french: str) -> None:
    assert (date_in_english(dt.date(*day)), date_in_french(dt.date(*day))) == (english, french)


@pytest.mark.parametrize(
    ("task", "target"), [("copy", lambda s: s), ("reverse", lambda s: s[::-1]), ("sort", lambda s: "".join(sorted(s)))]
)
def test_rows_of_letters_follow_their_rule(task: str, target) -> None:
    pairs = pairs_by_rule(Data(task=task, pairs=300, symbols=6, shortest=3, longest=5))
    assert [pair[1] for pair in pairs] == [target(source) for source, _ in pairs]
    assert len({source for source, _ in pairs}) == 300
    assert {len(source) for source, _ in pairs} == {3, 4, 5}
    assert {letter for source, _ in pairs for letter in source} == set("abcdef")


def test_the_same_pairs_are_made_everywhere() -> None:
    data = Data(task="translation", pairs=50)
    assert pairs_by_rule(data) == pairs_by_rule(data)
    assert pairs_by_rule(data) != pairs_by_rule(data, seed=1)


def test_a_rule_that_has_too_few_pairs_says_so() -> None:
    with pytest.raises(RuleError, match=r"data\.pairs is 100, and there are about 16 different ones"):
        pairs_by_rule(Data(task="copy", pairs=100, symbols=2, shortest=4, longest=4))


def test_words_come_back_and_what_is_new_is_unknown() -> None:
    side = Vocabulary.learned(["it was l'eau", "it was 3 , then"], "word")
    ids = side.encode("it was l'eau , then")
    assert side.decode([*ids, EOS, 7]) == "it was l'eau , then"
    assert side.decode([BOS, *ids, PAD]) == "it was l'eau , then"
    assert min(ids) > UNKNOWN
    assert side.encode("it was here")[-1] == UNKNOWN
    assert side.decode(side.encode("it was here")) == "it was\ufffd"
    assert side.unknown("it was here") == [" here"]
    assert Vocabulary.from_object(side.as_object()).encode("it was") == side.encode("it was")
    assert Vocabulary.learned(["a a b"], "word", 2).unknown("a b") == [" b"]


def test_characters_come_back() -> None:
    side = Vocabulary.learned(["cab"], "char")
    assert side.vocab_size == 7
    assert side.decode(side.encode("bac")) == "bac"


def test_held_out_pairs_are_none_of_those_learned() -> None:
    corpus = load_pairs(Data(task="sort", pairs=200))
    assert (len(corpus.train), len(corpus.val)) == (180, 20)
    assert not {source for source, _ in corpus.train} & {source for source, _ in corpus.val}


def test_a_file_of_pairs_is_read(tmp_path: Path) -> None:
    path = tmp_path / "pairs.tsv"
    path.write_text("one\tun\n\ntwo\tdeux\nthree\ttrois\none\tune\n", encoding="utf-8")
    corpus = load_pairs(Data(task="translation", corpus=str(path), fraction=0.7))
    assert (corpus.train, corpus.val) == ([("one", "un"), ("two", "deux")], [("three", "trois")])


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "is empty"),
        (b"\n \n", "is empty"),
        (b"one un\n", "line 1 of the corpus .* is 'one un', expected a source, one tab and a target"),
        (b"one\tun\ntwo\t\n", "line 2"),
        (b"one\tun\tune\n", "line 1"),
        (b"a\xff\tb", "is not UTF-8 at byte 1"),
        (b"one\tun\n", "is 1 pairs, expected pairs for training and for validation"),
    ],
)
def test_a_file_that_holds_no_pairs_is_refused(tmp_path: Path, content: bytes, says: str) -> None:
    path = tmp_path / "pairs.tsv"
    path.write_bytes(content)
    with pytest.raises(CorpusError, match=says):
        load_pairs(Data(task="translation", corpus=str(path)))


def test_a_pair_that_is_too_long_is_refused() -> None:
    corpus = load_pairs(Data(task="copy", pairs=50, shortest=4, longest=4))
    sides = vocabularies(corpus, Data(task="copy"))
    assert len(encoded(corpus.train, sides, 5)) == 45
    with pytest.raises(
        CorpusError, match=r"is 5 tokens long|which is 5 tokens long, expected at most model.block_size = 4"
    ):
        encoded(corpus.train, sides, 4)


def pairs_of(*lengths: int) -> list[tuple[list[int], list[int]]]:
    return [([5] * n, [6] * n) for n in lengths]


def test_a_batch_holds_pairs_of_similar_length_and_each_pair_is_as_probable() -> None:
    torch.manual_seed(0)
    buckets = Buckets(pairs_of(*range(1, 13)), 3)
    counts = torch.zeros(13)
    for _ in range(600):
        (src, _), _ = buckets.draw(4, CPU)
        lengths = (src != PAD).sum(dim=1)
        assert int(lengths.max() - lengths.min()) < 4
        counts += torch.bincount(lengths, minlength=13)
    assert counts[1:].min() > 120  # of 2,400, each of 12 expects 200
    assert padding_share(buckets, 4) < padding_share(Buckets(pairs_of(*range(1, 13)), 1), 4)


def test_the_share_of_padding_is_the_same_each_time_and_disturbs_no_draw() -> None:
    """Would break if a report depended on how many numbers training had drawn, or training on the report."""
    buckets = Buckets(pairs_of(1, 4), 1)
    torch.manual_seed(1)
    before = torch.get_rng_state()
    found = padding_share(buckets, 2)
    assert torch.equal(torch.get_rng_state(), before)
    torch.manual_seed(2)
    assert padding_share(buckets, 2) == found
    assert padding_share(Buckets(pairs_of(4), 1), 2) == 0.0
    held = as_batch([([5], [7]), ([8, 9, 9, 9], [9])], CPU)  # 3 of 8 ids of sources, none of 4 of targets
    always = SimpleNamespace(draw=lambda size, _: held if size == 2 else None)
    assert padding_share(always, 2, 3) == pytest.approx(3 / 12)


def test_targets_are_shifted_and_padding_does_not_count() -> None:
    (src, tgt_in), tgt_out = as_batch([([5, 6], [7]), ([8], [9, 10])], CPU)
    assert src.tolist() == [[5, 6], [8, PAD]]
    assert tgt_in.tolist() == [[BOS, 7, PAD], [BOS, 9, 10]]
    assert tgt_out.tolist() == [[7, EOS, IGNORED], [9, 10, EOS]]


def test_validation_takes_the_same_pairs_evenly_spread() -> None:
    batches = held_out_batches(pairs_of(*range(1, 101)), 5, 2, CPU)
    lengths = torch.cat([(src != PAD).sum(dim=1) for (src, _), _ in batches])
    assert lengths.tolist() == list(range(1, 101, 10))


def test_scores_count_places_and_whole_texts() -> None:
    side = Vocabulary.learned(["abc"], "char")
    found = score(["abc", "acb", "ab"], ["abc", "abc", "abc"], side)
    assert (found.exact, found.tokens, found.bleu) == (1 / 3, (4 + 2 + 2) / 12, None)


def test_bleu_is_that_of_sacrebleu() -> None:
    optional("sacrebleu")
    text = "quatre mille deux cent trois personnes"
    assert bleu([text], [text]) == pytest.approx(100)
    worse = bleu(["quatre mille deux cent personnes"], [text])
    assert worse is not None
    assert 10 < worse < 90
