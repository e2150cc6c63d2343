"""The pages in a browser: as seen, with the keyboard, with a screen reader, and with hostile texts."""

from __future__ import annotations

import itertools

import pytest
from selenium.webdriver.common.keys import Keys

from conformkit.conformance.apps.grade.outputs.appeal import appeals
from conformkit.conformance.apps.grade.outputs.appeal import as_html as as_appeal
from conformkit.conformance.apps.grade.outputs.overview import as_overview
from conformkit.conformance.apps.grade.outputs.student import as_html as as_student
from conformkit.conformance.apps.grade.outputs.wording import report_of
from conformkit.conformance.report.html import as_html
from tests.apps.grade.outputs import samples as graded
from tests.report import samples as reported
from tests.tiers import sampled

LONG = "Maximiliana-" * 20


def student(grade):
    return as_student(grade, report_of(grade))


def appealed(grade):
    (found,) = appeals(grade, report_of(grade))
    return as_appeal(found, LONG)


PAGES = {
    "report": lambda: as_html(reported.telling()),
    "hostile-report": lambda: as_html(reported.hostile()),
    "student": lambda: student(graded.graded(required=("SDPA-SCALE",), notes=("a note",))),
    "not-judged": lambda: student(graded.lost()),
    "hostile-student": lambda: student(graded.hostile()),
    "appeal": lambda: appealed(graded.graded(hidden=False)),
    "hostile-appeal": lambda: appealed(graded.hostile()),
    "overview": lambda: as_overview([graded.graded(LONG), graded.lost(), graded.graded("cleo", 4, points=12.5)]),
    "hostile-overview": lambda: as_overview([graded.hostile(), graded.graded()]),
    "nobody": lambda: as_overview([]),
}
SOURCES = ("conformance/report/html.py", "conformance/report/templates", "conformance/apps/grade/outputs")
QUICK = ["report", "hostile-report", "overview"]
ALL = pytest.mark.parametrize("page", sampled(PAGES, always=QUICK, files=lambda _: SOURCES))
HOSTILE = pytest.mark.parametrize("page", [name for name in PAGES if name.startswith("hostile")])

CONTRAST = """
const linear = (v) => { v /= 255; return v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; };
const light = ([r, g, b]) => 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
const parts = (color) => color.match(/[\\d.]+/g).map(Number);
const ground = (element) => {
  for (let at = element; at; at = at.parentElement) {
    const color = parts(getComputedStyle(at).backgroundColor);
    if (color.length < 4 || color[3] > 0) return color.slice(0, 3);
  }
  return [255, 255, 255];
};
const hasText = (element) => [...element.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
const unseen = (element) => !element.checkVisibility() || element.matches("script, style, title, desc");
const poor = [];
let looked = 0;
for (const element of document.querySelectorAll("body *")) {
  if (!hasText(element) || unseen(element)) continue;
  const style = getComputedStyle(element);
  const ink = parts(element.namespaceURI.endsWith("svg") ? style.fill : style.color);
  const [a, b] = [light(ink), light(ground(element))].sort((x, y) => y - x);
  looked += 1;
  if ((a + 0.05) / (b + 0.05) < 4.5) poor.push(`${element.tagName}: ${element.textContent.trim().slice(0, 40)}`);
}
return [looked, poor];
"""
"""Counts the texts of a page, and lists those whose contrast is below the minimum of WCAG 2 for small text."""


@pytest.mark.parametrize("width", [360, 1280])
@ALL
def test_a_page_fits_its_window_says_nothing_on_the_console_and_fetches_nothing(browser, page, width):
    browser.show(PAGES[page](), width)
    wide, window = browser.ask("return [document.documentElement.scrollWidth, innerWidth]")
    assert window == width
    assert wide <= width
    assert browser.complaints() == []
    assert browser.fetched() == []


@HOSTILE
def test_hostile_text_is_shown_as_text_and_runs_nothing(browser, page):
    browser.show(PAGES[page]())
    assert browser.driver.title != "ran"
    assert "<script>document.title='ran'</script>" in browser.ask("return document.body.textContent")
    assert browser.ask("return document.querySelectorAll('img, iframe, object, embed, form, base').length") == 0
    assert browser.ask("return document.scripts.length") == 1
    assert browser.ask("return [...document.querySelectorAll('a')].every(a => !/^(javascript|http)/.test(a.href))")


def test_injected_markup_neither_runs_nor_fetches(browser):
    evil = (
        "<script>document.title='ran'</script><img src='http://127.0.0.1:9/x' onerror=\"document.title='ran'\">"
        "<link rel='stylesheet' href='http://127.0.0.1:9/y'><iframe src='http://127.0.0.1:9/z'></iframe>"
    )
    browser.show(PAGES["report"]().replace("</main>", f"{evil}</main>"))
    assert browser.driver.title != "ran"
    blocked = browser.complaints(due=4)
    assert all("violates the following Content Security Policy" in line for line in blocked)


def test_a_page_that_fetched_something_would_be_noticed(browser):
    browser.show("<!doctype html><title>x</title><img src='http://127.0.0.1:9/x'>")
    assert browser.fetched(due=1) == ["http://127.0.0.1:9/x"]
    assert browser.complaints(due=1) != []


@ALL
def test_headings_begin_with_one_of_the_first_level_and_leave_none_out(browser, page):
    browser.show(PAGES[page]())
    levels = [node["level"] for node in browser.tree() if node["role"] == "heading"]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after - before <= 1 for before, after in itertools.pairwise(levels))


@ALL
def test_whatever_can_be_used_or_looked_at_has_a_name(browser, page):
    browser.show(PAGES[page]())
    tree = browser.tree()
    roles = {"link", "radio", "searchbox", "article", "region", "image", "columnheader", "rowheader", "table"}
    nameless = [n for n in tree if n["role"] in roles - {"table"} and not n["name"].strip()]
    assert nameless == []
    assert {"main", "contentinfo", "heading"} <= {node["role"] for node in tree}


def test_the_picture_of_scores_has_a_text_alternative(browser):
    browser.show(PAGES["overview"]())
    (picture,) = [n for n in browser.tree() if n["role"] in {"image", "img"}]
    assert "Number of submissions by share of the points" in picture["name"]
    assert "90 to 100 percent: 1" in picture["name"]


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@ALL
def test_text_stands_out_from_its_ground(browser, page, dark):
    browser.show(PAGES[page](), dark=dark)
    for summary in browser.all("details:not([open]) > summary"):
        browser.ask("arguments[0].parentElement.open = true", summary)
    looked, poor = browser.ask(CONTRAST)
    assert looked > 10
    assert poor == []


def test_dark_is_dark(browser):
    grounds = []
    for dark in (False, True):
        browser.show(PAGES["report"](), dark=dark)
        grounds.append(browser.ask("return getComputedStyle(document.body).backgroundColor"))
    assert grounds[0] != grounds[1]


def test_the_keyboard_reaches_everything_that_can_be_used_and_shows_where_it_is(browser):
    browser.show(PAGES["report"]())
    found = browser.reached_by_tab()
    named = browser.all("a[href], summary, input[type=search], input[type=radio]:checked")
    usable = {e.id for e in named if e.is_displayed()}  # not what is folded inside something folded
    assert {element.id for element in found} >= usable
    assert found[0].get_attribute("class") == "skip"


def test_the_focus_is_seen(browser):
    browser.show(PAGES["report"]())
    plain = []
    for _ in range(8):
        focused = browser.press(Keys.TAB)
        if browser.ask("return getComputedStyle(arguments[0]).outlineStyle", focused) == "none":
            plain.append(focused.get_attribute("outerHTML")[:80])
    assert plain == []


def test_skipping_leads_to_the_result(browser):
    browser.show(PAGES["report"]())
    browser.press(Keys.TAB)
    assert browser.press(Keys.ENTER).get_attribute("id") == "main"


def test_a_key_opens_what_is_folded(browser):
    browser.show(PAGES["report"]())
    summary = browser.all("article details > summary")[0]
    browser.ask("arguments[0].focus()", summary)
    browser.press(Keys.ENTER)
    assert browser.ask("return arguments[0].parentElement.open", summary)


def shown_rows(browser):
    return [row.get_attribute("class") for row in browser.all(".every tbody tr") if row.is_displayed()]


@pytest.mark.parametrize("scripts", [True, False], ids=["with-script", "without-script"])
def test_the_table_shows_the_requested_verdict(browser, scripts):
    browser.driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": not scripts})
    try:
        browser.show(PAGES["report"]())
        everything = len(shown_rows(browser))
        browser.all("#show-fail")[0].click()
        assert set(shown_rows(browser)) == {"v-fail"}
        browser.all("#show-all")[0].click()
        assert len(shown_rows(browser)) == everything == len(reported.telling().results)
        assert browser.all("#find")[0].is_displayed() == scripts
    finally:
        browser.driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})


def test_the_table_can_be_searched_and_says_how_much_it_found(browser):
    browser.show(PAGES["report"]())
    (field,) = browser.all("#find")
    field.send_keys("sdpa-soft")
    assert len(shown_rows(browser)) == 1
    assert browser.all("#found")[0].text == f"1 of {len(reported.telling().results)}"
    field.send_keys(Keys.CONTROL, "a")
    field.send_keys(Keys.DELETE)
    assert len(shown_rows(browser)) == len(reported.telling().results)


def test_a_link_of_the_table_leads_to_the_failure(browser):
    browser.show(PAGES["report"]())
    browser.all("a.id[href='#SDPA-SCALE']")[0].click()
    assert browser.ask("return document.querySelector(':target').id") == "SDPA-SCALE"


def test_an_overview_leads_to_a_student_s_page(browser, tmp_path):
    from conformkit.conformance.apps.grade.outputs import write_all

    write_all(tmp_path, [graded.graded(), graded.hostile()])
    browser.open(tmp_path / "overview.html")
    next(
        link for link in browser.all(".every a") if link.get_attribute("href").endswith("/students/s3/report.html")
    ).click()
    assert browser.driver.title
    assert browser.complaints() == []
