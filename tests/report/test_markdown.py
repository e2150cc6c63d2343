from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from conformkit.conformance.binding.declarations import Excuse
from conformkit.conformance.engine.declarations.not_judged import Unusable
from conformkit.conformance.engine.results import Verdict
from conformkit.conformance.report.json_report import as_object
from conformkit.conformance.report.markdown import as_markdown, block, body, code, escape
from conformkit.conformance.report.stored import from_object
from conformkit.conformance.text import plain

READER = MarkdownIt("gfm-like", {"linkify": False, "html": True})
FOREIGN = st.text(st.sampled_from("`~*_[]()<>!|#@$&\\\n abcx:/."), max_size=40)


def tokens(text):
    found = READER.parse(text)
    return [token for outer in found for token in [outer, *(outer.children or [])]]


def test_hostile_text_makes_no_link_no_picture_no_markup_and_no_heading(hostile):
    found = tokens(as_markdown(hostile))
    assert {t.type for t in found} & {"link_open", "image", "html_block", "html_inline", "table_open"} == set()
    headings = [found[n + 1].children for n, t in enumerate(found) if t.type == "heading_open"]
    assert not any("Heading" in child.content for children in headings for child in children if child.type == "text")


def test_no_line_of_hostile_text_begins_a_command_outside_of_code(hostile):
    outside = "\n".join(t.content for t in tokens(as_markdown(hostile)) if t.type in {"text", "paragraph"})
    assert "::error" not in outside
    assert "@everyone" not in outside


def test_the_document_has_the_same_content_as_the_terminal(told):
    text = as_markdown(told)
    for words in (
        "mypkg does not conform to SDPA of core", "output[0] is 1.75, expected 1.5", "24 of 24 differ",
        "not divided by √d\\_k", "divide by math.sqrt(k.shape\\[-1\\])", "mypkg/attention.py:2 in forward",
        "conform run --impl mypkg --only SDPA-SCALE --seed 7", "off by 0.52", 'activation = "relu"', "FeedForward",
        "not checked until `SDPA-V1` passes", "- `SDPA-SOFT`", "debug",
    ):  # fmt: skip
        assert words in text, words


def test_the_document_has_a_section_for_each_kind_of_entry_in_the_order_of_what_to_do(told):
    """Would break if a heading lost its words or its place, or what stands below it went with another one."""
    outline = [line for line in as_markdown(told).splitlines() if line.startswith("#")]
    assert outline == [
        "# Conformance of `mypkg`", "## So far", "## Cannot be judged", "## Undeclared", "## Where to look first",
        "## What fails",
        *(f"### {word}: `SDPA-V{number}` scores are divided by the square root of the key width"
          for number, word in enumerate(("fail", "error", "crash", "timeout"), 1)),
        "### fail: `SDPA-SCALE` the scores are not divided by √d\\_k",
        "### error: `SDPA-LINE` `it raised ValueError: no`",
        "## Warnings, which do not change the verdict", "## Not judged", "## Missing",
    ]  # fmt: skip
    assert [line for line in body(from_object(as_object(told)), 4).splitlines() if line.startswith("#")] == [
        f"##{line}" for line in outline[1:]
    ]


def test_each_section_lists_what_it_is_about(told):
    found = as_markdown(replace(told, excuses=[Excuse("weights", "components.X.weights", "X", "weights are computed")]))
    for title, line in {
        "Cannot be judged": "- `AdamW`: `AdamW is not available` (`conform.toml, line 3`); `mend it`",
        "Missing": "- `FeedForward`", "Not judged": "- 1 clause not checked until `SDPA-V1` passes",
        "Warnings, which do not change the verdict": "- `SDPA-SOFT` `not finite`",
        "So far": "- **attention**: broken", "Where to look first":
        "- **PositionalEncoding**: `table is the first part that differs: off by 0.52`",
    }.items():  # fmt: skip
        assert f"## {title}\n\n{line}\n" in found
    assert "## Declared\n\n- `" in found


@pytest.mark.parametrize(
    ("verdict", "unusable", "mark"),
    [(Verdict.PASS, False, "✅"), (Verdict.PASS, True, "❌"), (Verdict.FAIL, False, "❌")],
)
def test_the_verdict_has_its_mark(report, result, verdict, unusable, mark):
    """Would break if code of which a part could not be judged looked right."""
    found = report(result(verdict), unusable={"AdamW": Unusable("it is not there")} if unusable else {})
    assert as_markdown(found).splitlines()[2].startswith(f"{mark} `mypkg ")


def test_unfinished_parts_are_shown_with_the_next_step(report, result):
    text = as_markdown(report(result(), missing=["FeedForward"], stubs={"FeedForward": "mypkg/*x*.py:3"}))
    assert "- **attention**: done\n- **block**: not implemented\n" in text
    assert "- **next**: `implement FeedForward (mypkg/*x*.py:3)`" in text
    assert "- **again**: `conform run --impl mypkg --only FFN --seed 7`" in text
    assert "**next**" not in as_markdown(report(result(Verdict.FAIL)))


def test_after_twenty_failures_the_rest_is_a_list(report, result):
    text = as_markdown(report(*(result(Verdict.FAIL, f"SDPA-N{n}", line=n) for n in range(25))))
    assert text.count("### fail") == 20
    assert "And 5 more" in text


@given(FOREIGN)
def test_a_span_shows_exactly_its_text(text):
    (paragraph,) = [t for t in READER.parse(f"a {code(text)} b") if t.type == "inline"]
    spans = [t for t in paragraph.children if t.type == "code_inline"]
    assert len(spans) == 1
    assert spans[0].content.strip() == " ".join(plain(text).split())
    assert [t.content for t in paragraph.children if t.type == "text"] == ["a ", " b"]


@given(FOREIGN)
def test_a_block_shows_exactly_its_text(text):
    (fence,) = [t for t in READER.parse(f"before\n\n{block(text)}\n\nafter") if t.type == "fence"]
    assert fence.content.rstrip("\n") == text.rstrip()


@given(FOREIGN)
def test_our_own_text_is_never_markup(text):
    found = {t.type for t in tokens(f"so {escape(text)}")}
    assert found <= {"paragraph_open", "inline", "text", "text_special", "paragraph_close", "code_inline"}


@pytest.mark.parametrize("text", ["`cumsum - probs >= p` is", "a `lonely tick"], ids=["code", "no-partner"])
def test_code_of_the_law_stays_code(text):
    spans = [t.content for t in tokens(escape(text)) if t.type == "code_inline"]
    assert spans == (["cumsum - probs >= p"] if text.startswith("`") else [])


def test_a_failure_links_to_the_clauses_page_where_there_are_pages(told):
    assert "- **page**: <https://course.example/law/law/attention.html#sdpa-scale>" in as_markdown(told)
    told = replace(told, pages="")
    assert "**page**" not in as_markdown(told)
