"""What tests cost is processor time of all their processes."""

from __future__ import annotations

import subprocess
import sys
from types import SimpleNamespace

from . import spent

BUSY = "import time\nwhile time.process_time() < 0.3: pass\n"


def test_living_and_ended_children_count():
    """Would break if what a test starts, or what a warm process computes for it, were free."""
    before = spent.spent()
    subprocess.run([sys.executable, "-c", BUSY], check=True)
    ended = spent.spent()
    assert ended - before >= 0.3
    waiting = f"{BUSY}\nprint(flush=True)\ninput()"
    with subprocess.Popen([sys.executable, "-c", waiting], stdin=-1, stdout=-1) as child:
        assert child.stdout is not None
        child.stdout.readline()
        living = spent.spent()
        child.kill()
    assert living - ended >= 0.28


def test_the_clock_is_replaced_by_what_was_computed():
    """Would break if a test were dear on a busy machine alone, or one phase of it took the time of another."""
    plugin = spent.Spent(iter([10.0, 12.0, 12.5]).__next__)
    plugin.pytest_runtest_logstart()
    assert [reported(plugin).duration for _ in range(2)] == [2.0, 0.5]


def reported(plugin: spent.Spent) -> SimpleNamespace:
    report = SimpleNamespace(duration=99.0)
    making = plugin.pytest_runtest_makereport()
    next(making)
    try:
        making.send(report)
    except StopIteration as made:
        return made.value
    raise AssertionError("it went on")
