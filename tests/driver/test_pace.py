"""A busy or slow machine costs nobody a clause: waiting for a processor is not counted."""

import os
import subprocess
import sys
import time

import pytest

from conformkit.conformance.driver.client import channel as channels
from conformkit.conformance.driver.client import pace
from conformkit.conformance.driver.client.channel import Broken, Channel


@pytest.fixture
def line():
    """A worker's wire on which nobody answers."""
    made = Channel(1 << 20, lambda: None)
    yield made
    made.handed_over()
    made.close()


def waiting_from(line, monkeypatch, *waited):
    """Let the system say, at each look, how long the worker has waited for a processor."""
    said = list(waited)
    monkeypatch.setattr(channels, "seconds_waited", lambda pid: said.pop(0) if len(said) > 1 else said[0])
    line.pid = os.getpid()


def test_time_without_a_processor_does_not_count(line, monkeypatch):
    waiting_from(line, monkeypatch, 5.0, 5.3)
    started = time.monotonic()
    with pytest.raises(Broken, match=r"no answer after 0\.2 s"):
        line.receive(0.2)
    assert 0.45 < time.monotonic() - started < 3.0


def test_a_worker_that_only_pretends_to_wait_is_ended_all_the_same(line, monkeypatch):
    waiting_from(line, monkeypatch, 0.0, 1e9)
    started = time.monotonic()
    with pytest.raises(Broken, match="no answer"):
        line.receive(0.1)
    assert time.monotonic() - started < 0.1 * (1 + pace.MOST_PATIENCE) + 2.0


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux says how long a process waited")
def test_what_waits_for_a_processor_is_seen():
    spin = [sys.executable, "-c", "import time\nend = time.time() + 1.5\nwhile time.time() < end: pass"]
    both = [subprocess.Popen(spin) for _ in range(2)]
    for process in both:
        os.sched_setaffinity(process.pid, {min(os.sched_getaffinity(0))})
    time.sleep(1.2)
    waited = [pace.seconds_waited(process.pid) for process in both]
    for process in both:
        process.wait()
    assert sum(waited) > 0.2
    assert pace.seconds_waited(2**22 + 1) == 0.0


def test_a_slow_machine_is_given_more_time_within_bounds(monkeypatch):
    for took, wanted in ((0.0001, 1.0), (0.006, 2.0), (9.0, 10.0)):
        monkeypatch.setattr(pace, "_round", lambda took=took: took)
        pace.slowness.cache_clear()
        assert pace.slowness() == pytest.approx(wanted)
    pace.slowness.cache_clear()
