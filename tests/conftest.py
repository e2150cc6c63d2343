"""For all tests: no measured time, a Ctrl-C that counts, one warm process; only skipped GPU tests are no success."""

import signal
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from conformkit.conformance.driver.spawn.shared import LentNursery, SharedNursery
from conformkit.conformance.driver.spawn.warm import nursery

settings.register_profile("kit", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("kit")

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # a shell's job in the background, and all that it starts
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """End as pytest does without tests where those of GPUs were asked for and each was skipped."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if session.config.option.markexpr == "gpu" and reporter is not None:
        ran = any(reporter.stats.get(outcome) for outcome in ("passed", "failed", "error"))
        if not ran and reporter.stats.get("skipped"):
            session.exitstatus = pytest.ExitCode.NO_TESTS_COLLECTED


@pytest.fixture(scope="session")
def warm() -> Iterator[LentNursery]:
    """A process that has imported torch, for several threads at a time, and outlives the runs that it is lent to."""
    process = SharedNursery(nursery(1, torch=True))
    yield LentNursery(process)
    process.close()
