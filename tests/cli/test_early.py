"""What `conform run` begins before its options are read, and that nothing of it is left over."""

import sys
from unittest.mock import Mock

import pytest

from conformkit.cli import early
from conformkit.cli import main as command
from conformkit.conformance.driver.client import head_start as starting


class Start:
    """What was begun, without a process."""

    def __init__(self, *given):
        self.given, self.closed = given, False

    def close(self):
        self.closed = True


@pytest.fixture
def starts(monkeypatch):
    made = []

    def head_start(*given):
        made.append(Start(*given))
        return made[-1]

    monkeypatch.setattr(starting, "head_start", head_start)
    yield made
    early.end()


@pytest.mark.parametrize(
    "words",
    [
        "run mypkg -q",
        "run --impl mypkg",
        "run -q --impl mypkg --only SDPA",
        "run --only SDPA --impl=mypkg",
        "run --impl other --impl mypkg",
    ],
)
def test_a_run_begins_before_its_options_are_read(starts, words):
    early.begin(words.split())
    assert [start.given for start in starts] == [("mypkg", "process")]
    assert early.begun("mypkg", "process", 2) is starts[0]
    assert len(starts) == 1


@pytest.mark.parametrize(
    "words", ["", "run", "run -q mypkg", "run --impl", "run mypkg --help", "run -h", "spec mypkg",
              "run mypkg --isolation sandbox", "run mypkg --isolation=none"]
)  # fmt: skip
def test_what_is_no_usual_run_begins_nothing(starts, words):
    """Would start a process for help, or one without the sandbox that was asked for."""
    early.begin(words.split())
    assert starts == []


@pytest.mark.parametrize("asked", [("other", "process"), ("mypkg", "sandbox")])
def test_what_was_begun_for_something_else_is_ended(starts, asked):
    """Would judge other code than was asked for, or leave a process behind."""
    early.begin(["run", "mypkg"])
    assert early.begun(*asked, 2) is starts[1]
    assert starts[1].given == (*asked, 2)
    assert [start.closed for start in starts] == [True, False]


def test_wrong_options_end_what_was_begun(starts, monkeypatch):
    """Would leave a process that imports torch for nobody."""
    monkeypatch.setattr(command, "_outcome", lambda: 2)
    assert command._begun_early(["run", "mypkg", "--no-such-option"]) == 2
    assert starts[0].closed


@pytest.mark.parametrize(("where", "begun"), [("_open_closed_streams", 0), ("_outcome", 1)])
def test_ctrl_c_before_options_are_read_ends_it_without_a_traceback(starts, monkeypatch, where, begun):
    """Would show lines of the kit's imports, end as if a signal had killed it, and leave a process behind."""

    def interrupted():
        raise KeyboardInterrupt

    monkeypatch.setattr(command, where, interrupted)
    monkeypatch.setattr(command.clean_start, "ensure", lambda _: None)
    monkeypatch.setattr(command, "gc", Mock())
    monkeypatch.setattr(sys, "argv", ["conform", "run", "mypkg"])
    assert command.main() == 130
    assert [start.closed for start in starts] == [True] * begun


def test_what_cannot_be_begun_is_told_when_it_is_asked_for(monkeypatch):
    """Would end with the traceback of a guess, where a wrong name has a sentence."""

    def refuse(*_):
        raise ValueError("no name")

    monkeypatch.setattr(starting, "head_start", refuse)
    early.begin(["run", "my\0pkg"])
    with pytest.raises(ValueError, match="no name"):
        early.begun("my\0pkg", "process", 2)
