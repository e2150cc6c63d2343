import json

import pytest

from conformkit.conformance.engine.finding import LoadFailure
from conformkit.conformance.engine.results import Result, Verdict
from conformkit.conformance.findings.finding import stated


@pytest.fixture
def one_red(fake_run, small_law):
    fake_run.results[1] = Result(small_law["SDPA-SCALE"], Verdict.FAIL, stated("output[0] is 1.75, expected 1.5"))
    return fake_run


@pytest.mark.parametrize(
    ("option", "begins"),
    [("--html", "<!doctype html>"), ("--sarif", "{"), ("--markdown", "# Conformance of"), ("--json", "{")],
)
def test_each_format_is_written_and_reports_failures(conform, one_red, tmp_path, option, begins):
    del one_red
    target = tmp_path / "report"
    assert conform("run", "--impl", "mypkg", option, str(target)).exit_code == 1
    text = target.read_text(encoding="utf-8")
    assert text.startswith(begins)
    assert "output[0] is 1.75, expected 1.5" in text


@pytest.mark.parametrize("option", ["--html", "--sarif", "--markdown"])
def test_a_place_that_cannot_be_written_is_refused_before_anything_runs(conform, one_red, option):
    result = conform("run", "--impl", "mypkg", option, "/no/such/folder/report")
    assert result.exit_code == 2
    assert option in result.stderr
    assert one_red.requests == []


@pytest.mark.parametrize("option", ["--html", "--json", "--junit"])
@pytest.mark.parametrize("name", ["model.py", "conform.toml", "work.ipynb"])
def test_a_report_does_not_overwrite_a_users_file(conform, one_red, tmp_path, option, name):
    (tmp_path / name).write_text("mine")
    result = conform("run", "--impl", "mypkg", option, str(tmp_path / name))
    assert result.exit_code == 2
    assert "would be lost" in result.stderr
    assert (tmp_path / name).read_text() == "mine"
    assert one_red.requests == []


def test_two_forms_in_one_file_are_refused_by_name(conform, one_red, tmp_path):
    del one_red
    target = str(tmp_path / "report")
    result = conform("run", "--impl", "mypkg", "--html", target, "--sarif", target)
    assert result.exit_code == 2
    assert "--html" in result.stderr
    assert "--sarif" in result.stderr


def test_hidden_reaches_the_run(conform, one_red):
    conform("run", "--impl", "mypkg", "--hidden", "--seed", "7")
    assert (one_red.requests[0].hidden, one_red.requests[0].seed) == (True, 7)


def test_on_github_commands_are_off_until_the_report_is_out_and_annotations_follow(
    conform, one_red, tmp_path, monkeypatch
):
    one_red.prints = "::add-mask::everything\n"
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "summary.md"))
    result = conform("run", "--impl", "mypkg", "--github")
    assert result.exit_code == 1
    lines = result.stdout.splitlines()
    assert lines[0].startswith("::stop-commands::")
    on_again = lines.index(f"::{lines[0].removeprefix('::stop-commands::')}::")
    assert lines.index("::add-mask::everything") < on_again
    assert [line for line in lines[:on_again] if line.startswith("::error")] == []
    assert any(line.startswith("::error title=SDPA-SCALE") for line in lines[on_again:])
    assert "does not conform" in (tmp_path / "summary.md").read_text()


def test_on_github_code_that_cannot_be_loaded_is_annotated_at_its_line(conform, one_red, tmp_path, monkeypatch):
    (tmp_path / "mypkg").mkdir()
    (tmp_path / "mypkg" / "__init__.py").write_text("import nothing\n")
    monkeypatch.chdir(tmp_path)
    one_red.error = LoadFailure("importing it raised\n::error::100%", where="mypkg/__init__.py:1 in <module>")
    result = conform("run", "--impl", "mypkg", "--github")
    assert result.exit_code == 3
    last = result.stdout.splitlines()[-1]
    assert last.startswith("::error file=mypkg/__init__.py,line=1,title=conform::mypkg cannot be judged: importing it")
    assert "100%25" in last


@pytest.mark.parametrize("written", [True, False])
def test_code_that_cannot_be_loaded_is_a_result_in_sarif_and_changes_no_other_file(conform, one_red, tmp_path, written):
    one_red.error = LoadFailure("importing it raised ZeroDivisionError", where="mypkg/__init__.py:1 in <module>")
    others = [("--json", "report.json"), ("--html", "report.html"), ("--junit", "report.xml")]
    options = [part for option, name in others for part in (option, str(tmp_path / name))]
    log = tmp_path / "results.sarif"
    result = conform("run", "--impl", "mypkg", *options, *(["--sarif", str(log)] if written else []))
    assert result.exit_code == 3
    assert log.exists() == written
    assert not any((tmp_path / name).exists() for _, name in others)
    if written:
        assert "importing it raised ZeroDivisionError" in log.read_text()


def test_on_github_commands_are_on_again_when_the_run_fails(conform, one_red):
    one_red.error = KeyboardInterrupt()
    result = conform("run", "--impl", "mypkg", "--github")
    assert result.exit_code == 130
    first, last = result.stdout.split()
    assert last == f"::{first.removeprefix('::stop-commands::')}::"


def test_json_on_stdout_stands_alone_on_github_too(conform, one_red, tmp_path, monkeypatch):
    del one_red
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "summary.md"))
    result = conform("run", "--impl", "mypkg", "--github", "--json", "-")
    assert json.loads(result.stdout)["conforms"] is False
    assert "::error title=SDPA-SCALE" in result.stderr


def test_outside_of_github_the_missing_summary_is_reported_and_changes_no_verdict(conform, one_red, monkeypatch):
    del one_red
    monkeypatch.delenv("GITHUB_STEP_SUMMARY", raising=False)
    result = conform("run", "--impl", "mypkg", "--github")
    assert result.exit_code == 1
    assert "GITHUB_STEP_SUMMARY is not set" in result.stderr
