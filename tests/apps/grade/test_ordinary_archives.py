"""Archives as the usual tools write them: with an entry for each folder, leftovers of systems, other separators."""

import io
import shutil
import subprocess
import sys
import zipfile

import pytest

from conformkit.conformance.apps.grade.policy import ArchiveLimits
from conformkit.conformance.apps.grade.unpack import unpack

FILES = {"anna/pkg/__init__.py": "x = 1\n", "anna/conform.toml": "", "anna/pkg/deep/b.py": "y = 2\n"}
WANTED = {name: text.encode() for name, text in FILES.items()}
LIMITS = ArchiveLimits(bytes=1 << 20, files=20, depth=4, ratio=50)


@pytest.fixture
def work(tmp_path):
    """A folder with `anna/` in it, as a student has it."""
    for name, text in FILES.items():
        place = tmp_path / "work" / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
    return tmp_path / "work"


def _run(work, *command):
    subprocess.run(command, cwd=work, check=True, capture_output=True)


def with_zip(work):
    if shutil.which("zip") is None:
        pytest.skip("needs the program zip")
    _run(work, "zip", "-r", "out.zip", "anna")


def with_python(work):
    _run(work, sys.executable, "-m", "zipfile", "-c", "out.zip", "anna")


def with_shutil(work):
    shutil.make_archive(str(work / "out"), "zip", work, "anna")


def with_shutil_tar(work):
    shutil.make_archive(str(work / "out"), "gztar", work, "anna")


def with_tar(work):
    _run(work, "tar", "-czf", "out.tar.gz", "./anna")


def with_git(work, kind="zip"):
    who = ("-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "commit.gpgsign=false")
    _run(work / "anna", "git", "init", "-q")
    _run(work / "anna", "git", "add", "-A")
    _run(work / "anna", "git", *who, "commit", "-qm", "all")
    _run(work / "anna", "git", "archive", "--prefix=anna/", "-o", f"../out.{kind}", "HEAD")


def with_git_tar(work):
    with_git(work, "tar.gz")


def entry(name, system, mode=0, attributes=0):
    info = zipfile.ZipInfo("x")
    info.filename = info.orig_filename = name  # as it is: the constructor changes separators
    info.create_system, info.external_attr = system, mode << 16 | attributes
    return info


def write(work, *entries):
    with zipfile.ZipFile(work / "out.zip", "w") as archive:
        for info, text in entries:
            archive.writestr(info, text)


def with_finder(work):
    """What macOS adds: folders, forks of files under __MACOSX, an icon whose name ends in a return."""
    folders = ("anna/", "anna/pkg/", "anna/pkg/deep/", "__MACOSX/", "__MACOSX/anna/", "anna/.DS_Store")
    forks = (
        "__MACOSX/anna/pkg/deep/._b.py",
        "__MACOSX/anna/pkg/deep/er/._b.py",
        "anna/Icon\r",
        "__MACOSX/anna/._Icon\r",
    )
    told = [(entry(name, 3, 0o040755 if name.endswith("/") else 0o100644), "") for name in (*folders, *forks)]
    write(work, *told, *((entry(name, 3, 0o100644), text) for name, text in FILES.items()))


def with_windows(work):
    """Backslashes, also at the end of folders, and folders that only an attribute tells from files."""
    folders = [(entry(name, 0, 0, 0x10), "") for name in ("anna\\", "anna\\pkg", "anna\\pkg\\deep\\")]
    write(work, *folders, *((entry(name.replace("/", "\\"), 0, 0, 0x20), text) for name, text in FILES.items()))


def with_java(work):
    """Folders that only their mode tells from files."""
    folders = [(entry(name, 3, 0o040755), "") for name in ("anna", "anna/pkg", "anna/pkg/deep")]
    write(work, *folders, *((entry(name, 3, 0o100644), text) for name, text in FILES.items()))


TOOLS = [
    with_zip, with_python, with_shutil, with_shutil_tar, with_tar, with_git, with_git_tar, with_finder, with_windows,
    with_java,
]  # fmt: skip


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.__name__.removeprefix("with_"))
def test_what_usual_tools_pack_comes_out_whole(work, tmp_path, tool):
    """Refused once: "something before its first file", since an entry for the folder stands there."""
    tool(work)
    (packed,) = work.glob("out.*")
    target = tmp_path / "target"
    target.mkdir()
    notes = unpack(packed.read_bytes(), "zip" if packed.suffix == ".zip" else "tar", "", target, LIMITS)
    found = {str(p.relative_to(target)): p.read_bytes() for p in target.rglob("*") if p.is_file()}
    assert (found, notes) == (WANTED, [])


def test_a_folder_with_content_is_not_taken_for_an_empty_one(tmp_path):
    """Its attribute alone must not make a file vanish."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr(entry("a.py", 0, 0, 0x10), "x = 1")
    unpack(stream.getvalue(), "zip", "", tmp_path, LIMITS)
    assert (tmp_path / "a.py").read_text() == "x = 1"
