"""The page of a group in which points were lost. Would break if it named the code as the class does, or told others."""

from dataclasses import replace

import pytest

from conformkit.conformance.apps.grade.choice import choose
from conformkit.conformance.apps.grade.outputs import write_all
from conformkit.conformance.apps.grade.outputs.appeal import appeals, as_html, as_markdown
from conformkit.conformance.apps.grade.outputs.wording import report_of
from conformkit.conformance.engine.results import Verdict

from . import samples
from .test_pages import words


def only(grade):
    (found,) = appeals(grade, report_of(grade))
    return found


def both(grade):
    """Return the text of both forms, without what protects Markdown's signs."""
    return words(as_html(only(grade), "Week 3")), as_markdown(only(grade), "Week 3").replace("\\", "")


def test_it_tells_the_count_the_evidence_the_seed_and_the_command(graded):
    for text in both(graded(hidden=False, own_name="mypkg")):
        for told in (
            "Week 3", "Attention", "5 of 10 points", "1 of 2 clauses pass", "2 clauses share 10 points: 5 each",
            "numbers are wrong", "ada.zip", f"{1:064x}", "in the folder that contains mypkg",
            "conform run --impl mypkg --only SDPA-SCALE --seed 7",
        ):  # fmt: skip
            assert told in text, told
        assert "--impl ada" not in text


def test_a_group_without_a_loss_has_no_page(graded):
    assert [found.name for found in appeals(graded(), None)] == ["Attention"]


def test_a_hidden_seed_is_in_no_page(graded):
    for text in both(graded(hidden=True, own_name="mypkg")):
        assert "hidden by the instructor" in text
    assert "the instructor can repeat it with the hidden seed" in as_html(only(graded()))


def test_a_clause_that_waits_for_another_group_s_shows_that_one(graded):
    stored = samples.report(
        samples.result("SDPA-SCALE", Verdict.FAIL, message="too sharp"),
        samples.result("MHA-ORACLE", Verdict.BLOCKED, blocked_by="MHA-SCALE-DHEAD"),
        samples.result("MHA-SCALE-DHEAD", Verdict.BLOCKED, blocked_by="SDPA-SCALE"),
    )
    lost = replace(samples.GROUPS[1], points=0.0, failed=("MHA-ORACLE", "MHA-GOLDEN"))
    for text in both(graded(report=stored, groups=(lost,), own_name="mypkg")):
        assert "too sharp" in text
        assert "--only SDPA-SCALE" in text
        assert "not checked until MHA-SCALE-DHEAD passes" in text
        assert "MHA-GOLDEN" in text


def test_a_clause_that_waits_for_one_in_no_group_is_repeated_with_that_one(graded):
    stored = samples.report(
        samples.result("MHA-ORACLE", Verdict.BLOCKED, blocked_by="MHA-SCALE-DHEAD"),
        samples.result("MHA-SCALE-DHEAD", Verdict.BLOCKED, blocked_by="SDPA-SCALE"),
        isolation="sandbox", own_name="mypkg",
    )  # fmt: skip
    lost = replace(samples.GROUPS[1], points=0.0, failed=("MHA-ORACLE",))
    for text in both(graded(report=stored, groups=(lost,), own_name="mypkg")):
        assert "conform run --impl mypkg --only SDPA-SCALE" in text
        assert "--isolation" not in text


def test_code_that_was_not_judged_has_a_command_too(lost):
    found = next(appeals(lost, None))
    for text in (words(as_html(found)), as_markdown(found)):
        assert "No module named 'numpyy'" in text
        assert "conform run --impl ." in text


def test_nothing_of_other_students_is_on_a_page(tmp_path, graded):
    write_all(tmp_path, [graded(), graded("Grace-Hopper", 2, functions=("same",)), graded("cleo", 3)])
    for file in (tmp_path / "students" / "s1" / "appeals").iterdir():
        assert not any(name in file.read_text() for name in ("Grace", "cleo", "s2", "s3"))


def test_a_page_goes_when_its_group_loses_nothing_any_more(tmp_path, graded):
    write_all(tmp_path, [graded()])
    folder = tmp_path / "students" / "s1" / "appeals"
    assert {file.name for file in folder.iterdir()} == {"attention.html", "attention.md"}
    write_all(tmp_path, [graded(groups=(replace(samples.GROUPS[0], points=10.0),))])
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize(
    ("files", "name"),
    [
        (("attention.py",), "attention"),
        (("hw3/mypkg/__init__.py", "hw3/mypkg/attention.py", "hw3/run.py"), "mypkg"),
        (("__init__.py", "attention.py"), "."),
        (("-x/attention.py", "-x/b.py", "tests/t.py"), "attention"),
        (("my file.py",), "./my file.py"),
    ],
    ids=["file", "package", "folder", "beside-others", "no-name-of-a-module"],
)
def test_its_author_s_name_can_be_pasted(tmp_path, files, name):
    for file in files:
        path = tmp_path / file
        path.parent.mkdir(parents=True, exist_ok=True)
        defined = "scaled_dot_product_attention" if path.name in {"attention.py", "my file.py"} else "other"
        path.write_text(f"def {defined}(q, k, v, mask=None): ...\n")
    assert choose(tmp_path).own_name == name
