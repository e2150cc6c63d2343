import contextlib
import io
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformkit.conformance.engine.results import Verdict
from conformkit.conformance.report import github
from conformkit.conformance.report.github import commands, muted, summarize
from conformkit.spec.clauses import Level

DATA = {"%0D": "\r", "%0A": "\n", "%25": "%"}
PROPERTY = {"%3A": ":", "%2C": ",", **DATA}


def parsed(command):
    """Read a workflow command as the runner does: name, properties, message."""
    head, _, data = command.removeprefix("::").partition("::")
    kind, _, rest = head.partition(" ")
    properties = dict(pair.split("=", 1) for pair in rest.split(",") if pair)
    return kind, {name: decoded(value, PROPERTY) for name, value in properties.items()}, decoded(data, DATA)


def decoded(text, codes):
    return re.sub("|".join(codes), lambda match: codes[match[0]], text)


def test_each_red_clause_is_one_line_whatever_it_says(hostile):
    lines = commands(hostile)
    assert len(lines) == 3
    assert all("\n" not in line and "\r" not in line for line in lines)
    assert [parsed(line)[0] for line in lines] == ["error", "error", "warning"]


@given(st.text(st.sampled_from("%0DA3:,\r\n=ab"), max_size=30))
def test_texts_come_back_unchanged(text):
    line = github._command("error", {"title": text, "file": text}, text)
    assert parsed(line) == ("error", {"title": text, "file": text}, text)


def test_a_line_that_raised_is_annotated(report, result, tmp_path, monkeypatch):
    (tmp_path / "mypkg").mkdir()
    (tmp_path / "mypkg" / "__init__.py").write_text("a\nb\n")
    monkeypatch.setenv("GITHUB_WORKSPACE", str(tmp_path))
    made = report(
        result(Verdict.ERROR, message="it raised ValueError", where="mypkg/__init__.py:2 in forward"),
        location=str(tmp_path / "mypkg"),
    )
    kind, properties, said = parsed(commands(made)[1])
    assert (kind, properties["file"], properties["line"]) == ("error", "mypkg/__init__.py", "2")
    assert said == "it raised ValueError"


def test_no_more_than_github_shows_and_the_rest_is_counted(report, result):
    red = [result(Verdict.FAIL, f"A-M{n}", line=n) for n in range(30)]
    soft = [result(Verdict.FAIL, f"A-S{n}", line=n, level=Level.SHOULD) for n in range(12)]
    kinds = [parsed(line) for line in commands(report(*red, *soft))]
    assert [kind for kind, _, _ in kinds].count("error") == github.MOST
    assert [kind for kind, _, _ in kinds].count("warning") == github.MOST
    assert {said for _, _, said in kinds if said.startswith("and ")} == {"and 22 clauses more", "and 3 clauses more"}


def test_a_run_that_conforms_is_a_notice(report, result):
    (line,) = commands(report(result()))
    assert line.startswith("::notice title=conform::mypkg conforms")


def test_commands_are_off_while_an_implementation_may_print_and_on_again_after_an_error():
    stream = io.StringIO()
    with contextlib.suppress(ValueError), muted(stream):
        stream.write("::add-mask::x")
        raise ValueError("stop")
    first, hostile, last = stream.getvalue().splitlines()
    word = first.removeprefix("::stop-commands::")
    assert (hostile, last) == ("::add-mask::x", f"::{word}::")
    assert len(word) == 32


def test_the_word_that_turns_commands_on_is_another_one_each_time():
    words = set()
    for _ in range(3):
        stream = io.StringIO()
        with muted(stream):
            pass
        words.add(stream.getvalue())
    assert len(words) == 3


def test_the_summary_is_appended(report, result, tmp_path, monkeypatch):
    target = tmp_path / "summary.md"
    target.write_text("before\n")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(target))
    assert summarize(report(result())) == ""
    assert target.read_text().startswith("before\n# Conformance of `mypkg`")


def test_a_summary_that_is_too_large_is_the_verdict(report, result, tmp_path, monkeypatch):
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "s.md"))
    monkeypatch.setattr(github, "_LARGEST", 100)
    assert summarize(report(result(Verdict.FAIL))) == ""
    assert "does not conform" in (tmp_path / "s.md").read_text()
    assert "##" not in (tmp_path / "s.md").read_text()


@pytest.mark.parametrize(
    ("place", "words"),
    [("", "this is not a step of a GitHub job"), ("/no/such/folder/s.md", "/no/such/folder/s.md: No such file")],
    ids=["not-set", "not-writable"],
)
def test_a_summary_that_cannot_be_written_is_a_sentence(report, result, monkeypatch, place, words):
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", place)
    assert words in summarize(report(result()))
