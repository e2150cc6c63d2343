import io
import struct
import tarfile
import zipfile
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conformkit.conformance.apps.grade.policy import ArchiveLimits
from conformkit.conformance.apps.grade.unpack import Refused, SubmissionError, Unreadable, unpack

from .conftest import tarred, zipped

SMALL = ArchiveLimits(bytes=1 << 20, files=20, depth=4, ratio=50)


@pytest.fixture
def taken(tmp_path):
    """Unpack into a folder, and return its contents by relative path; nothing may be outside."""

    def run(data, kind="zip", name="", limits=SMALL):
        target = tmp_path / "outer" / "target"
        target.mkdir(parents=True)
        run.notes = unpack(data, kind, name, target, limits)
        everything = {p for p in tmp_path.rglob("*") if p.is_file() or p.is_symlink()}
        assert all(p.is_relative_to(target) for p in everything)
        return {str(p.relative_to(target)): p.read_bytes() for p in everything}

    return run


@pytest.mark.parametrize("pack", [zipped, tarred], ids=["zip", "tar.gz"])
def test_files_come_out_as_they_went_in_without_what_systems_leave_behind(taken, pack):
    junk = [("__MACOSX/._a.py", "x"), ("pkg/__pycache__/a.pyc", "x"), (".git/config", "x"), ("venv/lib/y.py", "x")]
    found = taken(pack(("pkg/a.py", "1"), ("pkg/sub/b.py", "2"), *junk), "zip" if pack is zipped else "tar")
    assert found == {"pkg/a.py": b"1", "pkg/sub/b.py": b"2"}


def test_a_single_file_keeps_its_name(taken):
    assert taken(b"x = 1", "file", "my solution.py") == {"my solution.py": b"x = 1"}


def test_folders_that_windows_wrote_are_folders(taken):
    assert taken(zipped(("pkg\\a.py", "1"))) == {"pkg/a.py": b"1"}


def test_nothing_is_executable_and_another_user_can_read_it(taken, tmp_path):
    taken(zipped(("pkg/run.py", "1"), mode=0o104777))
    (file,) = tmp_path.rglob("run.py")
    assert (file.stat().st_mode & 0o7777, file.parent.stat().st_mode & 0o7777) == (0o644, 0o755)


OUTSIDE = ["../x.py", "/x.py", "a/../../x.py", "..\\x.py", "C:/x.py", "\\x.py", ".."]
HIDDEN = ["a\x1b[31m.py", "a\nb.py", "a\x07.py", "a\u202egnp.py", "a\u2028.py"]
TOO_LONG = ["a/b/c/d/e.py", "a" * 201 + ".py", "/".join(["a" * 150] * 4)]


@pytest.mark.parametrize("name", [*OUTSIDE, *HIDDEN, *TOO_LONG], ids=ascii)
@pytest.mark.parametrize("pack", [zipped, tarred], ids=["zip", "tar"])
def test_a_name_that_no_honest_archive_has_ends_it(taken, pack, name):
    with pytest.raises(Refused):
        taken(pack(("good.py", "1"), (name, "2")), "zip" if pack is zipped else "tar")


@pytest.mark.parametrize("name", [b"\0ood.py", b"good\0py"], ids=["first", "later"])
def test_a_name_with_a_nul_is_not_cut_at_it(taken, name):
    with pytest.raises(Refused, match="control character"):
        taken(zipped(("good.py", "1")).replace(b"good.py", name))


def test_a_name_that_is_no_text_is_told_in_words(taken):
    with pytest.raises(Unreadable, match="a name in it is not valid text"):
        taken(zipped(("good\u00e9", "1")).replace(b"good", b"\xff\xff\xff\xff"))


TWO = zipped(("good.py", "1")), zipped(("good.py", "2"))


@pytest.mark.parametrize(
    "data",
    [TWO[0][:-2] + len(TWO[1]).to_bytes(2, "little") + TWO[1], b"x" * 100 + TWO[1]],
    ids=["in the comment", "before it"],
)
def test_an_archive_within_an_archive_is_not_chosen_silently(taken, data):
    with pytest.raises(Refused, match="pack it again"):
        taken(data)


def test_a_place_beyond_every_file_is_told_in_words(taken):
    data = bytearray(zipped(("good.py", "1")))
    end = data.index(b"PK\x05\x06")
    data[end + 16 : end + 20] = b"\xf0\xff\xff\xff"
    with pytest.raises(Unreadable, match=r"a number in its table of contents|not a zip|Bad magic"):
        taken(bytes(data))


@pytest.mark.parametrize(
    ("names", "words"),
    [
        (("a.py", "A.py"), "systems that ignore case"),
        (("a.py", "a.py"), "systems that ignore case"),
        (("\u00e9.py", "e\u0301.py"), "systems that ignore case"),
        (("a", "a/b.py"), "a file and a folder"),
        (("a/b.py", "A"), "systems that ignore case"),
    ],
    ids=["case", "twice", "accents", "file as folder", "folder as file"],
)
@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_two_members_that_are_one_file_somewhere_end_it(taken, names, words):
    with pytest.raises(Refused, match=words):
        taken(zipped(*((name, "x") for name in names)))


@pytest.mark.parametrize("kind", [tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE], ids=["char", "block", "fifo"])
def test_devices_end_it(taken, kind):
    with pytest.raises(Refused, match="device or a pipe"):
        taken(tarred(("a.py", ""), kind=kind), "tar")


def test_a_device_in_a_zip_ends_it(taken):
    with pytest.raises(Refused, match="device or a pipe"):
        taken(zipped(("a.py", ""), mode=0o020644))


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (zipped(("link", "/etc/passwd"), mode=0o120777), "zip"),
        (tarred(("link", "/etc/passwd"), kind=tarfile.SYMTYPE), "tar"),
        (tarred(("link", "/etc/passwd"), kind=tarfile.LNKTYPE), "tar"),
    ],
    ids=["zip", "symbolic", "hard"],
)
def test_links_are_left_out_and_named(taken, data, kind):
    assert taken(data, kind) == {}
    assert taken.notes == ['"link" is a link and was left out']


def test_a_file_below_a_link_lands_in_a_separate_folder(taken, tmp_path):
    """The classic: first a link to a folder outside, then a file through it."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as archive:
        link = tarfile.TarInfo("out")
        link.type, link.linkname = tarfile.SYMTYPE, str(elsewhere)
        archive.addfile(link)
        file = tarfile.TarInfo("out/x.py")
        file.size = 1
        archive.addfile(file, io.BytesIO(b"1"))
    assert taken(stream.getvalue(), "tar") == {"out/x.py": b"1"}
    assert list(elsewhere.iterdir()) == []


MEGABYTES = b"\0" * (3 << 20)


@pytest.mark.parametrize(
    ("data", "kind", "words"),
    [
        (zipped(("a", MEGABYTES)), "zip", "50 times larger"),
        (tarred(("__MACOSX/a", MEGABYTES)), "tar", "50 times larger"),
        (tarred(("a", MEGABYTES), compression=""), "tar", "larger than 1 MiB"),
        (zipped(*((f"{i}.py", "") for i in range(21))), "zip", "more than 20 files"),
        (tarred(*((f"{i}.py", "") for i in range(21))), "tar", "more than 20 files"),
        (zipped(*((f"__MACOSX/{i}", "") for i in range(1001))), "zip", "more than 20 files"),
        (tarred(*((f"__MACOSX/{i}", "") for i in range(1001))), "tar", "more than 20 files"),
    ],
    ids=["zip bomb", "tar bomb", "large tar", "files", "files in a tar", "entries", "entries in a tar"],
)
def test_what_becomes_too_much_is_refused(taken, data, kind, words):
    with pytest.raises(Refused, match=words):
        taken(data, kind)


def test_many_files_that_are_too_much_together_are_refused(taken):
    noise = bytes(range(256)) * 2048
    with pytest.raises(Refused, match="larger than 1 MiB"):
        taken(zipped(*((f"{i}.py", noise) for i in range(3))), limits=ArchiveLimits(bytes=1 << 20, ratio=10_000))


def test_a_size_that_lies_lets_no_more_in(taken):
    data = bytearray(zipped(("a.py", MEGABYTES)))
    size = (3 << 20).to_bytes(4, "little")
    assert data.count(size) == 2
    data = data.replace(size, (100).to_bytes(4, "little"))
    with pytest.raises(SubmissionError):
        taken(bytes(data))


def encrypted():
    data = bytearray(zipped(("a.py", "1")))
    for start, flags in ((data.index(b"PK\x03\x04"), 6), (data.index(b"PK\x01\x02"), 8)):
        data[start + flags] |= 1
    return bytes(data)


def beginning_at(offset):
    """A zip whose table of contents says in 64 bits where its member begins."""
    data = zipped(("a.py", "1"))
    start, end = data.index(b"PK\x01\x02"), data.index(b"PK\x05\x06")
    extra = struct.pack("<HHQ", 1, 8, offset)
    entry = bytearray(data[start:end])
    struct.pack_into("<H", entry, 30, len(extra))
    struct.pack_into("<I", entry, 42, 0xFFFFFFFF)
    tail = struct.pack("<4s4H2IH", b"PK\x05\x06", 0, 0, 1, 1, len(entry) + len(extra), start, 0)
    return data[:start] + bytes(entry) + extra + tail


def packed_with(method):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", method) as archive:
        archive.writestr("a.py", "1" * 1000)
    return stream.getvalue()


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (b"", "zip"), (b"PK", "zip"), (b"\x1f\x8b", "tar"), (b"hello" * 200, "tar"),
        (zipped(("a.py", "1" * 1000))[:-40], "zip"), (tarred(("a.py", "1" * 90_000), compression="")[:2000], "tar"),
        (tarred(("a.py", "1" * 90_000))[:-40], "tar"), (encrypted(), "zip"), (packed_with(zipfile.ZIP_LZMA), "zip"),
        (packed_with(zipfile.ZIP_BZIP2), "zip"), (beginning_at(2**63), "zip"), (beginning_at(2**64 - 1), "zip"),
    ],
    ids=["empty", "two bytes", "magic", "text", "cut zip", "cut tar", "cut tar.gz", "encrypted", "lzma", "bzip2", "far",
         "as far as it goes"],
)  # fmt: skip
def test_what_is_broken_or_locked_is_unreadable(taken, data, kind):
    with pytest.raises(Unreadable):
        taken(data, kind)


def test_a_password_is_named_as_the_reason(taken):
    with pytest.raises(Unreadable, match="encrypted"):
        taken(encrypted())


@given(st.sampled_from(["zip", "tar", "plain"]), st.lists(st.tuples(st.integers(0), st.integers(0, 255)), max_size=8))
def test_no_damage_gets_past_the_two_errors(tmp_path_factory, kind, damage):
    files = (("pkg/a.py", "x = 1\n" * 50), ("pkg/b.py", "y = 2\n"))
    data = bytearray(zipped(*files) if kind == "zip" else tarred(*files, compression="gz" if kind == "tar" else ""))
    for place, value in damage:
        data[place % len(data)] = value
    target = tmp_path_factory.mktemp("damaged") / "target"
    target.mkdir()
    with suppress(SubmissionError):
        unpack(bytes(data), "zip" if kind == "zip" else "tar", "", target, SMALL)
    assert [p.name for p in target.parent.iterdir()] == ["target"]
    assert not any(p.is_symlink() for p in Path(target).rglob("*"))
