import os
from pathlib import Path

import pytest

from conformkit.conformance.report.files import obstacle, write


def test_a_text_replaces_the_file_in_one_step(tmp_path, monkeypatch):
    target = tmp_path / "report.json"
    target.write_text("old")

    def fail(*_args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="No space left"):
        write(target, "new")
    assert target.read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["report.json"]


def test_a_link_stays_a_link_and_its_target_changes(tmp_path):
    (tmp_path / "real.json").write_text("old")
    (tmp_path / "link.json").symlink_to("real.json")
    write(tmp_path / "link.json", "new")
    assert (tmp_path / "link.json").is_symlink()
    assert (tmp_path / "real.json").read_text() == "new"


def test_a_device_is_written_to_and_not_replaced(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        write(pipe, "text")
        assert os.read(reader, 10) == b"text"
        assert pipe.is_fifo()
    finally:
        os.close(reader)


def test_a_report_is_as_readable_as_other_files_of_the_user(tmp_path):
    before = os.umask(0o022)
    try:
        write(tmp_path / "report.json", "{}")
    finally:
        os.umask(before)
    assert (tmp_path / "report.json").stat().st_mode & 0o777 == 0o644


def test_obstacles_are_sentences_with_advice(tmp_path):
    (tmp_path / "file").write_text("")
    missing = tmp_path / "no" / "report.json"
    assert obstacle(missing) == f"the folder {missing.parent} does not exist; create it with: mkdir -p {missing.parent}"
    assert "is a file, not a folder" in obstacle(tmp_path / "file" / "report.json")
    assert "name a file in it" in obstacle(tmp_path)
    assert obstacle(tmp_path / "new.json") == ""
    assert "File name too long" in obstacle(tmp_path / ("x" * 5000))


def test_a_file_in_a_folder_that_may_not_be_written_to_cannot_be_replaced(tmp_path, monkeypatch):
    (tmp_path / "report.json").write_text("old")
    monkeypatch.setattr(os, "access", lambda path, _: path != tmp_path)
    assert "no permission to write" in obstacle(tmp_path / "report.json")
    assert obstacle(Path("/dev/null")) == ""
