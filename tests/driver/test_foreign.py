"""Text that somebody else chose names a file of theirs, or nothing: no error, and nothing outside."""

import os

import pytest

from conformkit.conformance.driver.foreign import fits, inside, own_file


@pytest.fixture
def home(tmp_path):
    """A folder with a file, a folder, a link to itself, and links that lead outside; a secret lies beside it."""
    home = tmp_path / "home"
    (home / "sub").mkdir(parents=True)
    (home / "own.py").write_text("")
    (tmp_path / "secret.py").write_text("")
    (home / "loop.py").symlink_to("loop.py")
    (home / "out.py").symlink_to(tmp_path / "secret.py")
    (home / "up").symlink_to(tmp_path)
    os.mkfifo(home / "pipe.py")
    return home


@pytest.mark.parametrize("text", ["own.py", "sub/../own.py", "./own.py"])
def test_a_name_of_its_own_file_is_that_file(home, text):
    assert own_file(home, text, home) == home / "own.py"


@pytest.mark.parametrize(
    "text",
    [
        "", "none.py", "sub", "pipe.py", "loop.py", "loop.py/x.py", "out.py", "up/secret.py", "../secret.py",
        "/etc/passwd", "own.py/x", "\u0416" * 150 + ".py", "x" * 300 + ".py", "x/" * 3000 + "x.py", "a\0.py", "a\n.py",
        "\udcff.py", "\x1b.py",
    ],
    ids=ascii,
)  # fmt: skip
def test_any_other_text_names_nothing(home, text):
    """Names of 150 Cyrillic letters, and links to themselves, ended the kit with exit code 5 once."""
    assert own_file(home, text, home) is None


def test_a_folder_may_be_meant(home):
    assert inside(home, "sub", home) == home / "sub"
    assert inside(home, "\u0416" * 150, home) is None


def test_a_full_table_of_files_is_not_the_texts_fault(home, monkeypatch):
    """Otherwise a kit that is out of files would call right code unreadable."""

    def full(*_, **__):
        raise OSError(24, "Too many open files")

    monkeypatch.setattr("pathlib.Path.resolve", full)
    with pytest.raises(OSError, match="Too many"):
        inside(home, "own.py", home)


def test_whole_numbers_have_64_bits():
    assert [fits(n) for n in (2**63 - 1, -(2**63), 2**63, -(2**63) - 1)] == [True, True, False, False]
