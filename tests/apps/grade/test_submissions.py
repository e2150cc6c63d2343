import os
import shutil
import subprocess

import pytest

from conformkit.conformance.apps.grade.names import identity
from conformkit.conformance.apps.grade.policy import ArchiveLimits
from conformkit.conformance.apps.grade.submissions import NothingToGrade, find, pack
from conformkit.conformance.apps.grade.unpack import Refused, Unreadable
from tests.needs import without

from .conftest import tarred, zipped

LIMITS = ArchiveLimits(bytes=1 << 20, files=5)
ZIP = zipped(("solution.py", "x = 1"))


def packed(folder, name):
    (found,) = (f for f in find(folder).found if f.name == name)
    return pack(found, LIMITS)


def test_folders_archives_files_and_checkouts_are_found_and_others_left_aside(submissions):
    folder = submissions(
        anna={"a.py": ""}, ben__zip=ZIP, carl__tar__gz=tarred(("a.py", "")), dora__tgz=b"", eve__py="x = 1",
        fred={".git": {"config": "[core]"}, "a.py": ""}, gina__rar=b"", README__md="", grades__csv="", __DS_Store="",
    )  # fmt: skip
    (folder / ".hidden.py").write_text("")
    search = find(folder)
    assert {f.name: f.kind for f in search.found} == {
        "anna": "folder", "ben": "zip", "carl": "tar", "dora": "tar", "eve": "file", "fred": "folder", "gina": "none",
    }  # fmt: skip
    assert search.aside == ("grades.csv", "README.md")


def test_a_folder_that_holds_one_archive_stands_for_it(submissions):
    folder = submissions(**{"Doe Jane_17_": {"work.zip": ZIP}, "Roe Max_18_": {"work.zip": ZIP, "notes.txt": ""}})
    found = {f.name: (f.kind, f.source) for f in find(folder).found}
    assert found == {"Doe Jane_17_": ("zip", "Doe Jane_17_/work.zip"), "Roe Max_18_": ("folder", "Roe Max_18_")}


@pytest.mark.parametrize(
    "files",
    [{"anna": {}, "anna__zip": ZIP}, {"anna__py": "", "Anna__zip": ZIP}, {"e\u0301__py": "", "\u00e9__zip": ZIP}],
    ids=["folder and zip", "case", "accents"],
)
def test_two_students_with_one_name_are_refused_and_named(submissions, files):
    folder = submissions(**files)
    with pytest.raises(NothingToGrade) as caught:
        find(folder)
    assert all(str(path) in str(caught.value) for path in folder.iterdir())


def test_ids_are_fit_for_file_names_and_distinct():
    names = [
        "anna", "Jane Doe", "Jane_Doe", "..", "../../x", "M\u00fcller", "Muller", "\u5f20\u4f1f", "\u738b\u82b3",
        "a" * 300, "a" * 301, "-rf",
    ]  # fmt: skip
    found = [identity(name) for name in names]
    assert found[0] == "anna"
    assert len({word.lower() for word in found}) == len(names)
    assert all(word.isascii() and not word.startswith((".", "-")) and "/" not in word for word in found)
    assert max(map(len, found)) <= 120


def test_a_name_that_is_another_ones_id_is_refused(submissions):
    folder = submissions(**{"Jane Doe": {}, identity("Jane Doe"): {}})
    with pytest.raises(NothingToGrade, match="the same student"):
        find(folder)


def test_an_empty_folder_is_reported(submissions, tmp_path):
    with pytest.raises(NothingToGrade, match="there is no folder"):
        find(tmp_path / "nowhere")
    with pytest.raises(NothingToGrade, match="holds no submissions"):
        find(submissions(README__md=""))


@pytest.mark.parametrize(
    "names",
    [
        ["doejane_40037_90112_hw3.zip", "roemax_LATE_40041_90114_hw3-1.py"],
        ["Jane Doe_311_assignsubmission_file_/hw.py", "Max Roe_312_assignsubmission_file_/hw.py"],
        ["hw3_jdoe_attempt_2026-11-23-18-00-00_hw3.py", "hw3_mroe_attempt_2026-11-23-18-00-00.txt"],
        ["jane.zip", "max.tar.gz"],
    ],
    ids=["canvas", "moodle", "blackboard", "archives"],
)
def test_a_whole_class_in_one_archive_is_not_judged_as_one_submission(submissions, names):
    """Would break if the points of one student, whose code was found first, were those of all."""
    archive = submissions(all__zip=zipped(*((name, "") for name in names))) / "all.zip"
    with pytest.raises(NothingToGrade, match=r"holds 2 submissions; .*: unzip .all\.zip. -d .all."):
        find(archive)
    assert len(find(archive, single=True).found) == 1
    assert len(find(archive.parent).found) == 1


def test_a_folder_or_file_can_be_one_submission(submissions):
    folder = submissions(solution__py="x = 1")
    assert [(f.name, f.kind) for f in find(folder, single=True).found] == [("submissions", "folder")]
    assert [(f.name, f.kind) for f in find(folder / "solution.py").found] == [("solution", "file")]


def test_the_digest_follows_content_and_names_and_nothing_else(submissions):
    folder = submissions(anna={"a.py": "x = 1", "sub": {"b.py": ""}})
    before = packed(folder, "anna")
    (folder / "anna" / "a.py").chmod(0o755)
    os.utime(folder / "anna" / "a.py", (0, 0))
    (folder / "anna" / "__pycache__").mkdir()
    (folder / "anna" / "__pycache__" / "a.pyc").write_bytes(b"x")
    assert packed(folder, "anna") == before
    (folder / "anna" / "sub" / "b.py").rename(folder / "anna" / "sub" / "c.py")
    renamed = packed(folder, "anna").submission.digest
    (folder / "anna" / "a.py").write_text("x = 2")
    assert len({before.submission.digest, renamed, packed(folder, "anna").submission.digest}) == 3


def test_links_in_a_folder_are_not_followed(submissions, tmp_path):
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "key.py").write_text("secret")
    folder = submissions(anna={"a.py": ""})
    (folder / "anna" / "up").symlink_to(tmp_path / "secret")
    (folder / "anna" / "key.py").symlink_to(tmp_path / "secret" / "key.py")
    package = packed(folder, "anna")
    assert package.notes == ('"key.py" is a link and was left out', '"up" is a link and was left out')
    assert b"secret" not in package.data


@pytest.mark.parametrize(
    ("make", "error", "words"),
    [
        (lambda p: (p / "x.rar").write_bytes(b""), Unreadable, ".rar files are not supported"),
        (lambda p: (p / "x").symlink_to("/etc"), Unreadable, "it is a link"),
        (lambda p: (p / "x.py").write_bytes(b"#" * (1 << 20) + b"#"), Refused, "larger than 1 MiB"),
        (lambda p: [(p / "x").mkdir(), *((p / "x" / f"{i}.py").touch() for i in range(6))], Refused, "more than 5"),
        (lambda p: [(p / "x").mkdir(), os.mkfifo(p / "x" / "pipe")], Refused, "device or a pipe"),
        (lambda p: os.mkfifo(p / "x.py"), Refused, "device or a pipe"),
        (lambda p: [(p / "x").mkdir(), (p / "x" / "a\x1b.py").touch()], Refused, "control character"),
    ],
    ids=["other archive", "link", "large", "files", "pipe inside", "pipe", "name"],
)
def test_what_cannot_be_taken_is_a_package_with_its_problem(submissions, make, error, words):
    folder = submissions()
    make(folder)
    package = packed(folder, "x")
    assert isinstance(package.problem, error)
    assert words in str(package.problem)


@without("GIT", "" if shutil.which("git") else "git is not installed")
def test_nothing_of_a_checkout_is_run(submissions):
    folder = submissions(anna={"a.py": ""})
    witness = folder.parent / "ran"
    run = ["git", "-C", str(folder / "anna")]
    subprocess.run([*run, "init", "-q"], check=True)
    for key in ("core.fsmonitor", "core.sshCommand", "diff.external", "core.pager"):
        subprocess.run([*run, "config", key, f"touch {witness}"], check=True)
    (folder / "anna" / ".gitattributes").write_text("* filter=evil")
    subprocess.run([*run, "config", "filter.evil.clean", f"touch {witness}"], check=True)
    package = packed(folder, "anna")
    assert package.problem is None
    assert b".git/" not in package.data
    assert not witness.exists()
