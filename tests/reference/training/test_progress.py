"""What a person sees: a bar on a terminal of any width, lines elsewhere."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from conformkit.reference.training.loop import Measured
from conformkit.reference.training.progress import Silent, watching

LAST = Measured(step=250, loss=1.23456, norm=0.5, rate=1e-3, speed=12345.6, unit="tokens")


def screen(width: int, *, terminal: bool) -> Console:
    return Console(file=io.StringIO(), width=width, force_terminal=terminal, color_system=None)


def text(console: Console) -> str:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_without_a_terminal_there_is_a_line_per_evaluation() -> None:
    lines, bar = screen(120, terminal=False), screen(120, terminal=False)
    with watching(lines, bar, 2000) as listener:
        listener.measured(LAST)
        listener.evaluated(250, 1.5, best=True)
        listener.evaluated(500, 1.6, best=False)
    assert text(lines).splitlines() == [
        "step  250/2000 · validation 1.5000 · training 1.2346 · 12,346 tokens/s · best",
        "step  500/2000 · validation 1.6000 · training 1.2346 · 12,346 tokens/s",
    ]
    assert text(bar) == ""


@pytest.mark.parametrize(("width", "shown"), [(120, ["12,346 tokens/s", "left", "━"]), (40, [])])
def test_a_bar_shows_loss_speed_and_time_left_as_far_as_there_is_room(width: int, shown: list[str]) -> None:
    bar = screen(width, terminal=True)
    with watching(None, bar, 2000, 100) as listener:
        for step in (200, 250):
            listener.measured(Measured(step, 1.23456, 0.5, 1e-3, 12345.6, "tokens"))
        listener.evaluated(250, 1.5, best=True)
    drawn = text(bar)
    assert "250/2000" in drawn
    assert "loss 1.235" in drawn
    assert all(word in drawn for word in shown)
    assert all(len(line) <= width for line in drawn.replace("\r", "\n").splitlines() if "\x1b" not in line)
    assert ("tokens/s" in drawn) == bool(shown)


def test_lines_go_above_the_bar_on_a_terminal_and_to_the_file_elsewhere() -> None:
    terminal, file = screen(100, terminal=True), screen(100, terminal=False)
    for lines, wanted in ((screen(100, terminal=True), terminal), (file, file)):
        with watching(lines, terminal, 10) as listener:
            listener.evaluated(5, 2.0, best=False)
        assert "step  5/10 · validation 2.0000" in text(wanted)


def test_silence_is_possible() -> None:
    Silent().measured(LAST)
    Silent().evaluated(1, 2.0, best=True)
