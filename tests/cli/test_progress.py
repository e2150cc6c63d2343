"""What long commands show: something on a terminal, nothing in a pipe."""

import io
import sys

import pytest

from conformkit.cli.progress import progress_bar, spinner


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture(params=[Terminal, io.StringIO], ids=["terminal", "pipe"])
def stream(request, monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    return request.param()


def test_a_bar_is_shown_on_a_terminal_and_nothing_in_a_pipe(stream, monkeypatch):
    monkeypatch.setattr(sys, "stderr", stream)
    with progress_bar("pages") as step:
        step(3, 7)
    assert ("pages" in stream.getvalue()) == stream.isatty()
    assert stream.isatty() or stream.getvalue() == ""


def test_what_is_being_done_is_shown_on_a_terminal_and_nothing_in_a_pipe(stream, monkeypatch):
    monkeypatch.setattr(sys, "stderr", stream)
    with spinner("looking into [red]mypkg[/red]"):
        pass
    assert ("looking into [red]mypkg[/red]" in stream.getvalue()) == stream.isatty()
    assert stream.isatty() or stream.getvalue() == ""
