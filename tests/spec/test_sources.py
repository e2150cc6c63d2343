"""Every source that a clause cites is listed, and a public one stands next to each private one."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from conformkit.spec import sources as module
from conformkit.spec.clauses import Clause, clause, clauses
from conformkit.spec.sources import (
    NONE_KNOWN,
    Citation,
    Row,
    Source,
    SourceSyntaxError,
    cited,
    parse,
    sources,
    with_public,
)

SMALL = """\
# Sources

## Public

| key | title | where |
| --- | --- | --- |
| Doe 2001 | J. Doe: A Title | <https://example.org> |

## Private

### notes

Notes of
a course.

| section | says | for | public |
| --- | --- | --- | --- |
| §1, chapter 1 | it scales | | Doe 2001, §3 |
| §1 | it masks | masks, SDPA-SCALE | none known |
"""


def private_citations() -> Iterator[tuple[Clause, Source, str]]:
    for item in clauses().values():
        for citation in cited(item.source):
            source = sources()[citation.key]
            if source.private:
                yield from ((item, source, section) for section in citation.sections or ("",))


# --- the list ---------------------------------------------------------------------------------------------------------


def test_every_part_of_every_citation_names_a_listed_source() -> None:
    unknown = {
        item.id: part
        for item in clauses().values()
        for part in item.source.rstrip(".").split("; ")
        if not cited(part) and not part.startswith("its ")  # of the source before
    }
    assert unknown == {}


def test_every_author_and_year_that_is_cited_is_part_of_a_key() -> None:
    names = {
        name for item in clauses().values() for name in re.findall(r"\w+ (?:et al\. |and \w+ )?\d{4}", item.source)
    }
    assert names
    assert names <= sources().keys()


def test_every_private_section_that_is_cited_has_a_row() -> None:
    missing = {
        (item.id, source.key, section) for item, source, section in private_citations() if not source.row(section, item)
    }
    assert missing == set()


def test_every_row_is_used_and_so_is_every_word_of_its_column_for() -> None:
    used: dict[tuple[str, int], set[str]] = {}
    for item, source, section in private_citations():
        row = source.row(section, item)
        assert row
        words = {name for name in row.wanted if name == item.document or f"{item.id}-".startswith(f"{name}-")}
        used.setdefault((source.key, row.line), set()).update(words)
    rows = {(source.key, row.line): set(row.wanted) for source in sources().values() for row in source.rows}
    assert used == rows


def test_what_stands_next_to_a_private_source_is_public_and_listed_or_none_is_known() -> None:
    for source in sources().values():
        for row in source.rows:
            keys = [citation.key for citation in cited(row.public)]
            assert not any(sources()[key].private for key in keys), row
            if not row.public.startswith(NONE_KNOWN):
                assert all(cited(part) for part in row.public.split("; ")), row
                assert row.public.startswith(keys[0]), row


def test_most_private_citations_have_a_public_counterpart() -> None:
    rows = [source.row(section, item) for item, source, section in private_citations()]
    known = [row for row in rows if row and not row.public.startswith(NONE_KNOWN)]
    assert len(known) / len(rows) > 0.95


def test_public_sources_say_where_to_get_them_and_every_one_is_cited() -> None:
    texts = [item.source for item in clauses().values()]
    texts += [row.public for source in sources().values() for row in source.rows]
    keys = {citation.key for text in texts for citation in cited(text)}
    assert keys == sources().keys()
    for source in sources().values():
        assert source.title
        assert source.private or re.search(r"<https://\S+>|`|the (?:clause|formula|definition)|\d", source.where), (
            source.key
        )


def test_sources_are_in_alphabetical_order() -> None:
    public = [
        source.key.lower() for source in sources().values() if "<http" in source.where and " " not in source.where
    ]
    assert public == sorted(public)


# --- reading ----------------------------------------------------------------------------------------------------------


def test_a_small_list_is_read() -> None:
    assert parse(SMALL) == {
        "Doe 2001": Source("Doe 2001", "J. Doe: A Title", "<https://example.org>"),
        "notes": Source(
            "notes", "Notes of a course.", "private",
            (
                Row(("§1", "chapter 1"), "it scales", (), "Doe 2001, §3", 18),
                Row(("§1",), "it masks", ("masks", "SDPA-SCALE"), "none known", 19),
            ),
        ),
    }  # fmt: skip


@pytest.mark.parametrize(
    ("old", "new", "line", "problem"),
    [
        ("| Doe 2001 | J. Doe: A Title |", "| Doe 2001 |", 7, "a row has 3 cells here, not 2"),
        ("### notes", "### Doe 2001", 11, "Doe 2001 is listed twice"),
        ("| §1 | it masks |", "| §1 |", 19, "a row has 4 cells here, not 3"),
        ("| Doe 2001, §3 |", "| |", 18, "only the cell 'for' may be empty"),
    ],
    ids=["cells", "twice", "cells of a section", "nothing public"],
)
def test_a_broken_list_is_refused_with_its_line(old: str, new: str, line: int, problem: str) -> None:
    with pytest.raises(SourceSyntaxError, match=re.escape(f"sources.md, line {line}: {problem}")):
        parse(SMALL.replace(old, new))


def test_a_private_source_without_rows_is_refused() -> None:
    with pytest.raises(SourceSyntaxError, match=r"line 3: empty has no rows"):
        parse("# Sources\n\n### empty\n\nA title.\n")


def test_the_closest_row_is_taken() -> None:
    notes = parse(SMALL)["notes"]
    found = {name: notes.row("§1", clause(name)) for name in ("SDPA-SCALE", "SDPA-SCALE-DIM", "MASK-NONE", "PE-SHAPE")}
    assert {name: row.says for name, row in found.items() if row} == {
        "SDPA-SCALE": "it masks", "SDPA-SCALE-DIM": "it masks", "MASK-NONE": "it masks", "PE-SHAPE": "it scales",
    }  # fmt: skip
    assert notes.row("§2", clause("PE-SHAPE")) is None


# --- citations --------------------------------------------------------------------------------------------------------


def test_sections_belong_to_the_source_before_them() -> None:
    assert cited("kit, consequence of handout §8.5; Vaswani et al. 2017, §3.2.1 and eq. 1; handout, appendix B") == (
        Citation("kit", ()), Citation("handout", ("§8.5",)), Citation("Vaswani et al. 2017", ("§3.2.1",)),
        Citation("handout", ("appendix B",)),
    )  # fmt: skip


def test_the_public_source_follows_the_private_one() -> None:
    assert with_public(clause("SDPA-SCALE")) == (
        "Vaswani et al. 2017, §3.2.1; handout §4.2 (private; public: Vaswani et al. 2017, §3.2.1)."
    )


def test_a_clause_without_private_sources_is_unchanged() -> None:
    assert with_public(clause("ROPE-NORM")) == clause("ROPE-NORM").source


def test_its_sections_are_those_of_the_source_before() -> None:
    text = with_public(clause("PAD-POLARITY"))
    assert text.startswith("design document §10 (private; public: Annotated Transformer, Batches and Masking;")
    assert text.endswith(
        "its §1 and §5 say the opposite (private; public: Annotated Transformer, Batches and Masking)."
    )


def test_an_unlisted_source_stays_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "sources", dict)
    module._keys.cache_clear()
    text = clause("SDPA-SCALE").source
    assert with_public(clause("SDPA-SCALE")) == text
    module._keys.cache_clear()
