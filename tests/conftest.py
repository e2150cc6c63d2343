"""For all tests: tiers, no deadlines, a working Ctrl-C, one warm process; skipped GPU tests are not a success."""

import os
import signal
import sys
import tempfile
import threading
from collections.abc import Collection, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from conformkit.conformance.api import embed
from conformkit.conformance.apps.port import port
from conformkit.conformance.diagnosis import causes
from conformkit.conformance.driver.client import head_start
from conformkit.conformance.driver.spawn.shared import LentFactory, SharedFactory
from conformkit.conformance.driver.spawn.warm import WorkerFactory, worker_factory
from conformkit.conformance.engine import loading

from . import changed, costs, one_clause, outcomes, recording, shares, spent, tiers

settings.register_profile("kit", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("quick", settings.get_profile("kit"), max_examples=40)
settings.load_profile("kit")

os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # or each process that a test starts compiles the kit again
sys.dont_write_bytecode = False  # and this one all tests
for _folder in os.environ.pop("PYTHONPATH", "").split(os.pathsep):  # tests judge code by where it can be found
    sys.path[:] = [path for path in sys.path if not _folder or path != str(Path(_folder).absolute())]

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # background jobs of a shell, and their children
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options that say what runs and what is recorded."""
    about = "run only what concerns a clause: the form of the law, the reference, the known mistakes that name it"
    parser.addoption("--clause", metavar="ID", default="", help=about)
    about = "run only what the changed files concern, nearest and cheapest first, in less than a minute"
    parser.addoption("--changed", action="store_true", help=about)
    parser.addoption("--part", metavar="I/N", default="", help="run one of N parts that take equally long")
    parser.addoption("--record-costs", action="store_true", help="record what each test computes, for the next runs")
    about = "run also cases whose outcome is known, since nothing that they depend on has changed (tests/outcomes.py)"
    parser.addoption("--no-store", action="store_true", help=about)
    parser.addoption("--record", metavar="FILE", help="write what each test runs and how long it takes, with -n0")


@pytest.hookimpl(tryfirst=True)  # before pytest-xdist counts its processes
def pytest_cmdline_main(config: pytest.Config) -> None:
    """Find out what changed, once for all workers; a small change needs none."""
    if hasattr(config, "workerinput"):
        return
    os.environ[tiers.CHANGED] = "\n".join(sorted(tiers.changed_files()))
    if config.getoption("changed") and changed.Selection.of(tiers.changed_now()).law_alone:
        config.option.numprocesses = 0


def pytest_configure(config: pytest.Config) -> None:
    """With `--clause` and `--changed`, look only where tests of that are; measure, and record if asked."""
    places: Collection[str] = ()
    if config.getoption("clause"):
        one_clause.wanted(config.getoption("clause"))
        places = one_clause.PLACES
    elif config.getoption("changed"):
        places = changed.Selection.of(tiers.changed_now()).places()
        if not places:
            pytest.exit("no file that a test concerns differs from main", returncode=0)
    if places:
        config.option.markexpr = "not gpu"
        if config.args_source is not pytest.Config.ArgsSource.ARGS:
            config.args = [str(tiers.ROOT / place) for place in places]
    tiers.says_what_runs(config)
    if "not full" in config.option.markexpr and not config.getoption("hypothesis_profile", None):
        settings.load_profile("quick")
    if config.getoption("part"):
        config.pluginmanager.register(costs.Part(config.getoption("part")), "part")
    if config.getoption("changed"):
        config.option.randomly_reorganize = False  # the nearest come first
    else:
        config.pluginmanager.register(LongestFirst(), "longest first")
    ignored = any(config.getoption(name) for name in ("no_store", "record", "record_costs"))
    config.pluginmanager.register(outcomes.Outcomes(outcomes.place(), ignored=ignored), "outcomes")
    _measure(config)


def _measure(config: pytest.Config) -> None:
    if config.getoption("record_costs"):
        config.pluginmanager.register(spent.Spent(), "spent")
    if config.getoption("record"):
        config.pluginmanager.register(recording.Recorder(Path(config.getoption("record"))), "recording")
    if not hasattr(config, "workerinput"):
        quick = "not full" in config.option.markexpr
        config.pluginmanager.register(costs.Watch(config.getoption("record_costs"), quick_alone=quick), "costs")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Note which tests are in which tier, before marks deselect any; keep what the options ask for."""
    known, files = costs.recorded(), tiers.changed_now()
    ordered = _in_order(items)
    tiers.dear_ones_leave(ordered, known, changed.quick_again(items, known, files) if files else ())
    config.stash[tiers.COLLECTED] = tiers.Collected.of(items)
    if wait := shares.waiting(ordered, known):
        _keep(config, items, [item for item in items if item not in wait])
    if config.getoption("clause"):
        _keep(config, items, one_clause.concerned(items, one_clause.wanted(config.getoption("clause"))))
    elif config.getoption("changed"):
        _keep(config, items, changed.Selection.of(files).choose(items, known))


class LongestFirst:
    """The plugin that orders what is left of a run."""

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Let the longest begin; all else stays in its order."""
        processes = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
        order = costs.longest_first([item.nodeid for item in items], costs.recorded(), processes)
        items[:] = [items[number] for number in order]


def _in_order(items: Collection[pytest.Item]) -> list[pytest.Item]:
    """Return items as they stand in the files: they run in random order. A place is looked up once a test."""
    ones = {costs.family(item.nodeid): item for item in items}
    places = {name: (item.location[0], item.location[1] or 0) for name, item in ones.items()}
    return sorted(items, key=lambda item: (places[costs.family(item.nodeid)], item.nodeid))


def _keep(config: pytest.Config, items: list[pytest.Item], kept: Collection[pytest.Item]) -> None:
    of_these = set(kept)
    config.hook.pytest_deselected(items=[item for item in items if item not in of_these])
    items[:] = kept


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Exit as pytest does without tests if GPU tests were requested and all were skipped."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if session.config.option.markexpr == "gpu" and reporter is not None:
        ran = any(reporter.stats.get(outcome) for outcome in ("passed", "failed", "error"))
        if not ran and reporter.stats.get("skipped"):
            session.exitstatus = pytest.ExitCode.NO_TESTS_COLLECTED


class TorchProcess:
    """One process that has imported torch, started when it is first needed."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._made: SharedFactory | None = None

    def lent(self) -> LentFactory:
        """Lend it, also to several threads at a time. It outlives the runs that use it."""
        with self._lock:
            if self._made is None or not self._made.alive:
                self.close()
                self._made = SharedFactory(worker_factory(1, torch=True))
            return LentFactory(self._made)

    def close(self) -> None:
        """End it, if there is one."""
        if self._made is not None:
            self._made.close()


@pytest.fixture(scope="session")
def torch_process() -> Iterator[TorchProcess]:
    process = TorchProcess()
    yield process
    process.close()


@pytest.fixture(scope="session")
def warm(torch_process: TorchProcess) -> LentFactory:
    """A process that has imported torch, for tests that pass it on."""
    return torch_process.lent()


@pytest.fixture
def temporary(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Path]:
    """A folder that is the one for temporary files, of child processes too."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    yield tmp_path
    tempfile.tempdir = None


@pytest.fixture(autouse=True)
def _torch_is_imported_once(torch_process: TorchProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lend it also to runs that would start one of their own. Folders about processes override this."""

    def lent(threads: int, *, torch: bool) -> WorkerFactory:
        return torch_process.lent() if torch and threads == 1 else worker_factory(threads, torch=torch)

    for module in (causes, embed, head_start, loading, port):
        monkeypatch.setattr(module, "worker_factory", lent)
