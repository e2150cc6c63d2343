import base64
import hashlib
import itertools
import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from conformkit.conformance.engine.results import Verdict
from conformkit.conformance.report.html import as_html
from conformkit.spec.clauses import Level

VOID = {"meta", "link", "input", "rect", "br", "circle", "path"}


class Page(HTMLParser):
    """The elements of a page, with their attributes, and the contents of scripts and styles."""

    def __init__(self, text):
        super().__init__()
        self.elements, self.open, self.raw, self.text = [], [], {"script": [], "style": []}, []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag, f"{tag} is closed and was not open last"

    def handle_data(self, data):
        if self.open and self.open[-1] in self.raw:
            self.raw[self.open[-1]].append(data)
        else:
            self.text.append(data)

    def all(self, tag):
        return [attributes for name, attributes in self.elements if name == tag]


@pytest.mark.parametrize("which", ["told", "hostile"])
def test_every_element_is_closed_and_every_id_is_there_once(request, which):
    page = Page(as_html(request.getfixturevalue(which)))
    assert page.open == []
    ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert sorted(set(ids)) == sorted(ids)
    named = {attributes["aria-labelledby"] for _, attributes in page.elements if "aria-labelledby" in attributes}
    assert named <= set(ids)


def test_nothing_is_fetched_and_nothing_runs_but_the_own_style_and_script(hostile):
    page = Page(as_html(hostile))
    assert len(page.raw["script"]) == len(page.raw["style"]) == 1
    targets = {a.get("src", a.get("href")) for _, a in page.elements if "src" in a or "href" in a}
    assert {target for target in targets if not target.startswith("#")} == {"data:,"}
    assert not {name for _, attributes in page.elements for name in attributes if name.startswith("on")}
    assert not any("style" in attributes for _, attributes in page.elements)
    assert "url(" not in page.raw["style"][0]


def test_the_policy_names_the_digests_of_what_is_there(told):
    page = Page(as_html(told))
    (policy,) = [m["content"] for m in page.all("meta") if m.get("http-equiv") == "Content-Security-Policy"]
    for kind in ("script", "style"):
        digest = base64.b64encode(hashlib.sha256(page.raw[kind][0].encode()).digest()).decode()
        assert f"{kind}-src 'sha256-{digest}';" in policy
    assert policy.startswith("default-src 'none';")
    assert "unsafe" not in policy


def test_headings_step_down_one_at_a_time_from_a_single_first_one(told):
    levels = [int(tag[1]) for tag, _ in Page(as_html(told)).elements if re.fullmatch("h[1-6]", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after - before <= 1 for before, after in itertools.pairwise(levels))


def test_the_page_has_a_section_for_each_kind_of_entry_in_the_order_of_what_to_do(told):
    """Would break if a heading lost its words, or a section its place."""
    found = re.findall(r"<h2[^>]*>(.*?)</h2", as_html(told), re.DOTALL)
    assert [re.sub("<.*?>", "", heading).strip() for heading in found] == [
        "Clauses", "So far", "Choices that are not declared", "Where to look first", "What fails",
        "Warnings, which do not change the verdict", "What could not be judged", "Every clause", "About this run",
    ]  # fmt: skip


def test_the_page_has_the_same_content_as_the_terminal(told):
    text = " ".join(" ".join(Page(as_html(told)).text).split())
    for words in (
        "mypkg does not conform to SDPA of core", "output[0] is 1.75, expected 1.5", "24 of 24 differ",
        "the scores are not divided by √d_k", "divide by math.sqrt(k.shape[-1])", "mypkg/attention.py:2 in forward",
        "conform run --impl mypkg --only SDPA-SCALE --seed 7", "unscaled, the softmax saturates",
        "table is the first part that differs: off by 0.52", 'activation = "relu"', "FeedForward is required",
        "weights bound by name", "a warning, which does not change the verdict", "debug",
    ):  # fmt: skip
        assert words in text, words


def test_the_text_of_a_clause_of_the_law_stands_below_its_failure(report, result):
    text = " ".join(Page(as_html(report(result(Verdict.FAIL)))).text)
    assert "dot product of its query and key" in " ".join(text.split())


@pytest.mark.parametrize(("hints", "shown"), [(1, 1), (2, 2), (3, 3)])
def test_hints_are_shown_step_by_step(told, hints, shown):
    told = replace(told, hints=hints)
    text = " ".join(Page(as_html(told)).text)
    steps = ["the weights are too sharp", "between products and softmax"]
    known = [step in text for step in steps] if hints < 3 else ["divide by math.sqrt" in text] * 3
    assert sum(known) == shown
    assert ("the scores are not divided" in text) == (hints == 3)
    assert ("off by 0.52" in text) == (hints > 1)


PAGE = "https://course.example/law/law/attention.html#sdpa-scale"


def test_a_failure_links_to_the_clauses_page_where_there_are_pages(told):
    links = [attributes["href"] for attributes in Page(as_html(told)).all("a")]
    assert PAGE in links
    told = replace(told, pages="")
    assert "course.example" not in as_html(told)


def test_actual_and_wanted_values_are_drawn_side_by_side(told):
    page = Page(as_html(told))
    drawn = [attributes["aria-label"] for attributes in page.all("svg") if attributes.get("role") == "img"]
    assert [label.partition(":")[0] for label in drawn] == ["yours", "wanted", "difference"] * 2
    assert len([rect for rect in page.all("rect") if "fill-opacity" in rect]) == 3 * 6 + 3 * 4
    assert len(page.all("circle")) == 2 + 1  # 1.75, and its difference; NaN has a cross; the difference of the leak
    assert "matrix [3]" in " ".join(page.text)
    assert "-0.5" in page.text


def test_what_a_mask_hides_is_hatched_and_what_is_seen_there_is_framed(told):
    page = Page(as_html(told))
    assert [path["d"].partition("l")[0] for path in page.all("path") if path["class"] == "hatch"] == ["M16 8"] * 2
    assert [rect["x"] for rect in page.all("rect") if rect["class"] == "leak"] == ["18"]
    assert " ".join(page.text).count("hidden,") == 1
    assert "framed" in " ".join(page.text)


def test_unfinished_parts_are_shown_with_the_next_step(report, result):
    built = report(
        result(line=1), result(Verdict.NOT_IMPLEMENTED, "FFN-SHAPE", component="FeedForward", line=2, unfinished=True),
        missing=["FeedForward"], stubs={"FeedForward": "mypkg/<b>.py:3"},
    )  # fmt: skip
    text = " ".join(" ".join(Page(as_html(built)).text).split())
    assert "attention ✓ done block – not implemented" in text
    assert "next implement FeedForward (mypkg/<b>.py:3)" in text
    assert "again conform run --impl mypkg --only FFN --seed 7" in text
    built = replace(built, missing=[], stubs={})
    assert "implement FeedForward" not in as_html(built)


def test_a_row_for_each_clause_carries_its_verdict_as_a_word(told):
    page = as_html(told)
    rows = re.findall(r'<tr class="v-([a-z-]+)"[^>]*>\s*<td>.*?</span> ([a-z ]+)</td>', page)
    assert len(rows) == len(told.results)
    assert all(word.replace(" ", "-") == verdict for verdict, word in rows)
    for verdict in Verdict:
        assert f"#show-{verdict.value.replace(' ', '-')}:checked" in page


def test_after_twenty_failures_the_rest_is_folded(report, result):
    page = as_html(report(*(result(Verdict.FAIL, f"SDPA-N{n}", line=n) for n in range(25))))
    assert page.count("Show more") == 5
    assert page.count('class="failure v-fail"') == 25


def test_a_green_report_has_no_section_of_failures(report, result):
    page = as_html(report(result()))
    assert "What fails" not in page
    assert "mypkg conforms" in page


def test_what_changes_no_verdict_is_counted_apart_and_folded(report, result):
    made = report(result(), result(Verdict.FAIL, "A-SOFT", level=Level.SHOULD, message="off by 1"))
    page = as_html(made)
    assert made.conforms
    assert "<b>1</b> warning</li>" in page
    assert "</b> fail</li>" not in page
    assert "What fails" not in page
    told = page[page.index('id="A-SOFT"') :]
    assert told.index("off by 1") < told.index("<details>") < told.index("again")
    assert 'id="show-warning"' in page
