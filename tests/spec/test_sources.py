"""Every source that a clause cites is listed, and each clause has one that every reader can get."""

from __future__ import annotations

import re

import pytest

from conformkit.spec.clauses import clauses
from conformkit.spec.sources import Source, SourceSyntaxError, cited, parse, public, sources

SMALL = """\
# Sources

## Public

| key | title | where |
| --- | --- | --- |
| Doe 2001 | J. Doe: A Title | <https://example.org> |

## Private

| key | title | where |
| --- | --- | --- |
| notes | Notes of a course | private |
"""


# --- what the law cites -----------------------------------------------------------------------------------------------


def test_every_part_of_every_citation_names_a_listed_source() -> None:
    unknown = {
        item.id: part for item in clauses().values() for part in item.source.rstrip(".").split("; ") if not cited(part)
    }
    assert unknown == {}


def test_every_author_and_year_that_is_cited_is_part_of_a_key() -> None:
    names = {
        name for item in clauses().values() for name in re.findall(r"\w+ (?:et al\. |and \w+ )?\d{4}", item.source)
    }
    assert names
    assert names <= sources().keys()


def test_a_reader_can_get_every_source_of_a_clause_and_private_places_stand_apart() -> None:
    hidden = {key for key, source in sources().items() if source.private}
    for item in clauses().values():
        assert not hidden.intersection(cited(item.source)), item.id
        assert not item.private or hidden.intersection(cited(item.private)), item.id


def test_no_sentence_of_a_clause_speaks_of_what_its_reader_cannot_have() -> None:
    hidden = [key for key, source in sources().items() if source.private]
    texts = {item.id: f"{item.title} {item.normative} {item.why} {item.fix}".lower() for item in clauses().values()}
    assert {name: key for name, text in texts.items() for key in hidden if re.search(rf"\b{key.lower()}\b", text)} == {}


def test_every_source_is_cited_and_says_where_to_get_it() -> None:
    keys = {key for item in clauses().values() for key in cited(f"{item.source}; {item.private}")}
    assert keys == sources().keys()
    for source in sources().values():
        assert source.private or re.search(r"<https://\S+>|`|the (?:clause|formula|definition)|\d", source.where), (
            source
        )


def test_sources_are_in_alphabetical_order() -> None:
    elsewhere = [
        source.key.lower() for source in sources().values() if "<http" in source.where and " " not in source.where
    ]
    assert elsewhere == sorted(elsewhere)


# --- reading ----------------------------------------------------------------------------------------------------------


def test_a_small_list_is_read() -> None:
    assert parse(SMALL) == {
        "Doe 2001": Source("Doe 2001", "J. Doe: A Title", "<https://example.org>"),
        "notes": Source("notes", "Notes of a course", "private"),
    }


@pytest.mark.parametrize(
    ("old", "new", "line", "problem"),
    [
        ("| Doe 2001 | J. Doe: A Title |", "| Doe 2001 |", 7, "a row is a key, a title and a place, not 2 cells"),
        ("| notes |", "| Doe 2001 |", 13, "Doe 2001 is listed twice"),
        ("| private |", "| |", 13, "a row is a key, a title and a place, not 2 cells"),
    ],
    ids=["cells", "twice", "no place"],
)
def test_a_broken_list_is_refused_with_its_line(old: str, new: str, line: int, problem: str) -> None:
    with pytest.raises(SourceSyntaxError, match=re.escape(f"sources.md, line {line}: {problem}")):
        parse(SMALL.replace(old, new))


# --- citations --------------------------------------------------------------------------------------------------------


def test_a_text_cites_the_longest_keys_in_its_order() -> None:
    text = "kit, consequence of handout §8.5; Vaswani et al. 2017, §3.2.1; PyTorch, `torch.nn.TransformerEncoderLayer`"
    assert cited(text) == (
        "kit", "handout", "Vaswani et al. 2017", "PyTorch", "torch.nn.TransformerEncoderLayer",
    )  # fmt: skip


def test_only_what_every_reader_can_get_is_shown() -> None:
    assert public(("design document §8", "Ba et al. 2016, §3", "thread nanoGPT#240")) == (
        "Ba et al. 2016, §3", "thread nanoGPT#240",
    )  # fmt: skip
