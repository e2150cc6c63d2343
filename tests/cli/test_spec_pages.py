"""`conform spec --html` writes all pages or none, and says why not."""

import sys

import pytest

from conformkit.conformance.apps.handbook import site

pytestmark = pytest.mark.filterwarnings("ignore:.*myst_parser")


def test_the_command_writes_pages_and_says_where_to_begin(conform, monkeypatch, tmp_path):
    monkeypatch.setattr(site, "sources", lambda: {"index": "# Law\n"})
    result = conform("spec", "--html", str(tmp_path / "deep" / "pages"))
    assert result.exit_code == 0
    assert f"start with {tmp_path / 'deep' / 'pages' / 'index.html'}" in result.stdout
    assert (tmp_path / "deep" / "pages" / "index.html").is_file()


@pytest.mark.parametrize("others", [["SDPA"], ["--json"]], ids=["prefix", "json"])
def test_pages_are_of_the_whole_law(conform, tmp_path, others):
    result = conform("spec", "--html", str(tmp_path / "pages"), *others)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "the whole law" in result.stderr


def test_a_folder_that_is_there_is_left_alone(conform, tmp_path):
    (tmp_path / "own.txt").write_text("mine")
    result = conform("spec", "--html", str(tmp_path))
    assert result.exit_code == 2
    assert "exists; name a new folder" in result.stderr
    assert [file.name for file in tmp_path.iterdir()] == ["own.txt"]


def test_a_folder_that_cannot_be_written_is_reported(conform, tmp_path):
    (tmp_path / "file").write_text("")
    result = conform("spec", "--html", str(tmp_path / "file" / "pages"))
    assert result.exit_code == 2
    assert "can't write" in result.stderr


def test_without_the_extra_the_advice_is_the_install_command(conform, monkeypatch, tmp_path):
    monkeypatch.delitem(sys.modules, "conformkit.conformance.apps.handbook.site")
    monkeypatch.setitem(sys.modules, "sphinx.application", None)
    result = conform("spec", "--html", str(tmp_path / "pages"))
    assert result.exit_code == 2
    assert "pip install 'conformkit[docs]'" in result.stderr
