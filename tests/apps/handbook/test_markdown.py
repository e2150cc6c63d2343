"""The law appears on its page as written, even where Markdown would interpret it."""

import pytest
from markdown_it import MarkdownIt

from conformkit.conformance.apps.handbook import markdown


def text_of(source):
    """Return what a reader of the rendered Markdown sees."""
    tokens = MarkdownIt("commonmark", {"html": False}).parseInline(source)[0].children
    return "".join(token.content for token in tokens)


@pytest.mark.parametrize(
    "written",
    [
        "ids < V, T > 1 and <eos>",
        "x_1 and _x_ and __init__",
        "a[0](b) and [x] and ![x](y)",
        "1 | 2 ~ 3 # 4",
        "a\\b {c}",
    ],
    ids=["tags", "underscores", "links", "signs", "backslash"],
)
def test_prose_means_nothing_but_itself(written):
    assert text_of(markdown.prose(written)) == written


def test_code_and_stress_are_kept():
    assert text_of(markdown.prose("drop when `p >= <q>` comes *before*")) == "drop when p >= <q> comes before"
    assert "<em>before</em>" in MarkdownIt().render(markdown.prose("comes *before* it"))


def test_a_block_of_code_ends_where_it_should():
    block = markdown.code("x = '```'\ny", "diff")
    tokens = MarkdownIt().parse(block + "\nafter")
    assert [token.content for token in tokens if token.type == "fence"] == ["x = '```'\ny\n"]


def test_fields_that_say_nothing_are_left_out():
    assert markdown.fields({"Why": "so", "Needs": ""}) == ":Why: so"
