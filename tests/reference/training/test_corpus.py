"""Texts: the built-in source has the entropy that it claims, files are refused with a reason, parts never mix."""

from __future__ import annotations

import hashlib
import http.server
import itertools
import math
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from conformkit.reference.training import corpus as corpora
from conformkit.reference.training.config import Data
from conformkit.reference.training.corpus import CorpusError, load_corpus, new_tokenizer, tokenize
from conformkit.reference.training.source import ENTROPY, SYMBOLS, floor_in_windows, synthetic_text


def test_the_source_has_the_entropy_that_it_claims() -> None:
    assert pytest.approx(0.9160, abs=5e-5) == ENTROPY
    ids = [SYMBOLS.index(c) for c in synthetic_text(200_000)]
    follows = sum(ids[t] == (ids[t - 1] + ids[t - 4]) % 12 for t in range(4, len(ids))) / (len(ids) - 4)
    assert follows == pytest.approx(0.8 + 0.2 / 12, abs=0.005)
    pairs = Counter(itertools.pairwise(ids))
    assert max(pairs.values()) < 1.2 * min(pairs.values())  # one symbol back alone gives no information
    assert set(Counter(ids)) == set(range(12))


def test_the_first_three_predictions_of_a_window_are_blind() -> None:
    assert floor_in_windows(64) == pytest.approx((61 * ENTROPY + 3 * math.log(12)) / 64)
    assert floor_in_windows(2) == pytest.approx(math.log(12))
    ids = [SYMBOLS.index(c) for c in synthetic_text(400_000)]
    blind = Counter((ids[t] - ids[t - 1] - ids[t - 3]) % 12 for t in range(3, len(ids)))
    assert max(blind.values()) < 1.05 * min(blind.values())  # useless without the fourth symbol back


def test_the_source_follows_its_seed() -> None:
    assert synthetic_text(100) == synthetic_text(200)[:100] or synthetic_text(100) == synthetic_text(100)
    assert synthetic_text(300, seed=1) != synthetic_text(300, seed=2)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "is empty, expected a text to learn from"),
        (b" \n\t ", "is empty, expected a text to learn from"),
        (b"aaaaaaaa", "is 'a' again and again, expected a text of at least two characters"),
        (b"good \xff bad", "is not UTF-8 at byte 5, expected a text file in UTF-8"),
        (None, "is a folder, expected a text file"),
    ],
    ids=["empty", "blank", "one-letter", "latin", "folder"],
)
def test_a_value_that_is_not_text_is_refused(tmp_path: Path, content: bytes | None, says: str) -> None:
    path = tmp_path / "corpus.txt"
    if content is None:
        path.mkdir()
    else:
        path.write_bytes(content)
    with pytest.raises(CorpusError, match=says):
        load_corpus(str(path))


def test_a_file_is_taken_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes("é\r\n\tx".encode())
    assert load_corpus(str(tmp_path / "a.txt")).text == "é\r\n\tx"


@pytest.mark.parametrize("kind", ["char", "bpe"])
def test_parts_of_the_text_never_mix(kind: str) -> None:
    text = "abcabcabd" * 60 + "xyzxyzxyz" * 10 + "é"
    tokenizer = new_tokenizer(text, Data(tokenizer=kind, vocab_size=300, fraction=0.85))
    tokens = tokenize(text, tokenizer, 0.85)
    cut = int(0.85 * len(text))
    assert tokenizer.decode(tokens.train) == text[:cut]
    assert tokenizer.decode(tokens.val) == text[cut:]
    assert tokens.tokens_per_character == len(tokens.val) / (len(text) - cut)


def test_merges_are_learned_from_the_training_part_alone() -> None:
    beginning = "abcabcabd" * 60
    data = Data(tokenizer="bpe", vocab_size=300, fraction=0.5)
    seen = {new_tokenizer(beginning + end, data).to_json() for end in ("xyz" * 180, "uvw" * 180)}
    assert len(seen) == 1


def test_a_part_shorter_than_a_window_is_refused() -> None:
    tokens = tokenize("ab" * 50, new_tokenizer("ab", Data()), 0.9)
    tokens.check_windows(9)
    with pytest.raises(
        CorpusError, match=r"the validation part of the corpus is 10 tokens long, expected at least .* = 11"
    ):
        tokens.check_windows(10)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[str]:
    """Serve a text in place of Tiny Shakespeare from this machine."""

    class Handler(http.server.SimpleHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200 if self.path == "/text" else 404)
            self.end_headers()
            self.wfile.write(b"To be or not")

        def log_message(self, *_: object) -> None:
            pass

    with http.server.HTTPServer(("127.0.0.1", 0), Handler) as found:
        thread = threading.Thread(target=found.serve_forever, args=(0.01,))
        thread.start()
        yield f"http://127.0.0.1:{found.server_port}"
        found.shutdown()
        thread.join()


@pytest.fixture
def shakespeare(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, server: str) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(corpora, "SHAKESPEARE", f"{server}/text")
    monkeypatch.setattr(corpora, "SHAKESPEARE_SHA256", hashlib.sha256(b"To be or not").hexdigest())
    return tmp_path / "cache" / "conformkit" / "tinyshakespeare.txt"


def test_shakespeare_is_fetched_once_and_kept(shakespeare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert load_corpus("shakespeare").text == "To be or not"
    assert shakespeare.read_bytes() == b"To be or not"
    monkeypatch.setattr(corpora, "SHAKESPEARE", "http://127.0.0.1:1/gone")
    assert load_corpus("shakespeare").text == "To be or not"


def test_another_text_is_not_kept(shakespeare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(corpora, "SHAKESPEARE_SHA256", "0" * 64)
    with pytest.raises(CorpusError, match="its checksum differs"):
        load_corpus("shakespeare")
    assert not shakespeare.exists()


def test_a_missing_connection_is_reported_with_an_alternative(
    shakespeare: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(corpora, "SHAKESPEARE", corpora.SHAKESPEARE.replace("/text", "/none"))
    with pytest.raises(CorpusError, match=r"not available, expected a connection to .*404.*, or --corpus FILE"):
        load_corpus("shakespeare")
    assert not shakespeare.exists()


def test_a_kept_text_that_changed_is_refused(shakespeare: Path) -> None:
    shakespeare.parent.mkdir(parents=True)
    shakespeare.write_text("Not to be")
    with pytest.raises(CorpusError, match=r"not Tiny Shakespeare: its checksum differs, expected .*; delete it"):
        load_corpus("shakespeare")
