"""A sandbox's resources are bounded, it ends with all its processes, and the run continues in another one.

Everything here that multiplies or grows has its own bound, above the limit that must stop it.
"""

import contextlib
import os
import select
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from conformkit.conformance.driver.client.session import Session
from conformkit.conformance.driver.errors import ImplementationFailure, WorkerLost
from conformkit.conformance.driver.limits import Limits
from conformkit.conformance.driver.sandbox import bubblewrap
from conformkit.conformance.driver.sandbox import sandbox as sandbox_module
from conformkit.conformance.driver.sandbox.cgroups import ControlGroup
from conformkit.conformance.driver.sandbox.sandbox import SandboxedProcess
from conformkit.conformance.driver.spawn.usage import Meter, family
from conformkit.conformance.driver.worker.confinement import SAME_USER

SMALL = Limits(memory_bytes=1 << 29, output_bytes=1 << 16, processes=40, file_bytes=1 << 20, tmp_bytes=4 << 20)
WORKS = "found = 1"
MANY = """
    import os, signal
    for _ in range(400):
        if os.fork() == 0:
            signal.pause()
    found = "not stopped"
"""
MULTIPLYING = """
    import os
    for _ in range(9):  # to 512 at most
        try:
            os.fork()
        except OSError:
            pass
    while True:
        pass
"""
GREEDY = """
    import os
    if os.fork() == 0:
        while True:  # the control group ends it
            try:
                os.fork()
            except OSError:
                pass
    found = 1
"""
LINGERS = """
    import os, time
    def f():
        if os.fork() == 0:
            os.setsid()
            time.sleep(600)
        return 1.0
"""
DAEMON = """
    import os, time
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            time.sleep(600)
        os._exit(0)
    os.wait()
    found = [int(name) for name in os.listdir("/proc") if name.isdigit()]
"""


def inhabitants(session):
    return set(family(session._factory._number))


def alive(pid):
    with contextlib.suppress(OSError):
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    return False


def lost(session, evaluate, code, seconds=None):
    """Run code that ends its worker; return how, after the next worker has run alone in a sandbox."""
    with pytest.raises(WorkerLost) as caught:
        evaluate(session, code, seconds)
    before = inhabitants(session)
    session.restart()
    assert evaluate(session, WORKS) == 1
    assert inhabitants(session) == {session._factory._number, session._channel.pid}
    assert not any(map(alive, before - inhabitants(session)))
    return caught.value.kind, caught.value.detail


@pytest.fixture
def unaided(monkeypatch):
    """Leave a sandbox without control groups."""
    monkeypatch.setattr(ControlGroup, "make", lambda **_: None)
    monkeypatch.setattr(SandboxedProcess, "_processes_count_apart", lambda _: False)


def test_processes_are_counted_by_the_kernel(jail, evaluate):
    session = jail(limits=SMALL)
    if not session._factory._processes_count_apart():
        pytest.skip("this kernel counts a user's processes for all sandboxes together")
    with pytest.raises(ImplementationFailure, match="Resource temporarily unavailable"):
        evaluate(session, MANY)
    kind, _ = lost(session, evaluate, "import os; os._exit(0)")
    assert kind == "exit"


def test_processes_are_counted_from_outside_where_the_kernel_does_not(unaided, jail, evaluate):
    kind, detail = lost(jail(limits=SMALL), evaluate, MANY)
    assert kind == "processes"
    assert detail in {"started more than 40 processes", "started more than 42 processes"}  # of a worker, of all


@pytest.mark.full(guard="test_processes_are_counted_from_outside_where_the_kernel_does_not")
@pytest.mark.parametrize("aid", ["", "unaided"], ids=["aided", "unaided"])
def test_what_multiplies_is_stopped(aid, jail, evaluate, request):
    if aid:
        request.getfixturevalue(aid)
    kind, _ = lost(jail(limits=SMALL), evaluate, MULTIPLYING, seconds=3)
    assert kind in {"timeout", "processes"}


def test_one_that_answers_too_late_makes_no_more_workers(jail, evaluate, monkeypatch):
    def too_late(seconds):
        raise TimeoutError

    session = jail(limits=SMALL)
    with monkeypatch.context() as late:
        late.setattr(session._factory, "_read_reply", too_late)
        with pytest.raises(WorkerLost):
            evaluate(session, "import os; os._exit(0)")
    session.restart()  # the answer about the first worker must not be taken for one about the second
    assert evaluate(session, WORKS) == 1
    assert inhabitants(session) == {session._factory._number, session._channel.pid}


def test_a_worker_is_replaced_though_others_take_every_room_for_it(jail, evaluate, monkeypatch):
    monkeypatch.setattr(SandboxedProcess, "_processes_count_apart", lambda _: False)
    monkeypatch.setattr(Meter, "excess", lambda _: None)
    session = jail(limits=SMALL)
    if session._factory._group is None:
        pytest.skip("no control group can be made here")
    with Session(session.location, None, SMALL, warm=session._factory) as other:
        other.start()
        evaluate(other, GREEDY)
        while len(inhabitants(session)) < SMALL.processes + sandbox_module._SPARE:
            os.sched_yield()
        with pytest.raises(WorkerLost):
            evaluate(session, "import os; os._exit(0)")
        session.restart()
        assert evaluate(session, WORKS) == 1


def test_memory_of_all_processes_counts_together(unaided, jail, evaluate):
    code = """
        import os, signal
        for _ in range(8):
            if os.fork() == 0:
                hoard = bytearray(os.urandom(1 << 20) * 128)
                signal.pause()
        signal.pause()
    """
    kind, detail = lost(jail(limits=SMALL), evaluate, code, seconds=60)
    assert (kind, detail) == ("memory", "used more than 512 MiB of memory")


@pytest.mark.full(guard="test_memory_of_all_processes_counts_together")
def test_memory_that_processes_share_counts_once(unaided, jail, evaluate):
    code = """
        import os, time
        hoard = bytearray(os.urandom(1 << 20) * 200)
        children = []
        for _ in range(6):
            children.append(os.fork())
            if children[-1] == 0:
                time.sleep(0.5)
                os._exit(0)
        found = [os.waitpid(child, 0)[1] for child in children]
    """
    assert evaluate(jail(limits=SMALL), code) == [0] * 6


def test_a_process_killed_for_memory_is_reported(jail, evaluate, monkeypatch):
    # files in memory belong to no process, so only the control group counts them
    monkeypatch.setattr(SandboxedProcess, "_most_memory", lambda _: 64 << 20)
    session = jail(limits=Limits(tmp_bytes=1 << 28))
    if session._factory._group is None or not {"memory", "unified"} & set(session._factory._group.folders):
        pytest.skip("no control group for memory can be made here")
    code = "file = open('/tmp/big', 'wb')\nfor _ in range(1 << 12):\n    file.write(bytes(1 << 16))"
    assert lost(session, evaluate, code) == ("memory", "used more memory than 64 MiB, files included")
    assert evaluate(session, "import os; found = os.path.exists('/tmp/big')") is False


def test_one_file_and_all_files_together_are_bounded(jail, evaluate):
    code = """
        import os
        written = {}
        for folder in ("/tmp", "/dev/shm"):
            for number in range(100):
                try:
                    with open(f"{folder}/{number}", "wb") as file:
                        for _ in range(1 << 7):
                            file.write(bytes(1 << 14))
                            file.flush()
                except OSError:
                    pass
            sizes = [os.path.getsize(entry.path) for entry in os.scandir(folder) if entry.is_file()]
            written[folder] = [max(sizes), sum(sizes)]
        found = written
    """
    for most, total in evaluate(jail(limits=SMALL), code).values():
        assert most == SMALL.file_bytes
        assert SMALL.tmp_bytes // 2 < total <= SMALL.tmp_bytes


def test_a_flood_of_output_is_stopped(jail, evaluate):
    kind, _ = lost(jail(limits=SMALL), evaluate, "import os\nwhile True:\n    os.write(1, b'x' * 4096)")
    assert kind == "output"


def test_a_daemon_ends_with_its_worker(jail, evaluate):
    session = jail(limits=SMALL)
    assert len(evaluate(session, DAEMON)) == 3
    assert len(inhabitants(session)) == 3
    assert lost(session, evaluate, "import os; os._exit(0)")[0] == "exit"


def test_nothing_runs_after_close(jail, evaluate):
    session = jail()
    evaluate(session, DAEMON)
    pids = inhabitants(session) | {session._factory._process.pid}
    assert len(pids) == 4
    assert all(map(alive, pids))
    session.close()
    assert not any(map(alive, pids))


@pytest.mark.parametrize("stage", ["with a daemon", "at the start", "with a first process that hangs"])
def test_nothing_runs_after_the_harness_was_killed(bwrap, write, stage):
    if stage == "with a first process that hangs" and bubblewrap.user_inside() != SAME_USER:
        pytest.skip("root's sandbox hears of it by its socket alone, and only root could make it hang")
    location = write(source=LINGERS)
    code = f"""
import os, signal
from conformkit.conformance.driver.sandbox.sandbox import SandboxedProcess
from conformkit.conformance.driver.client.session import *
from conformkit.conformance.driver.spawn.usage import Meter, family
place = locate({str(location.path)!r})
session = Session(place, make=lambda: SandboxedProcess(place, Limits(), torch={stage == "at the start"}))
if {stage == "with a daemon"}:
    session.start()
    handle = session.request({{"op": "build", "path": "mypkg:f"}}).header["handle"]
    session.request({{"op": "call", "handle": handle, "args": []}})
print(*family(session._factory._process.pid), flush=True)
if {stage == "with a first process that hangs"}:
    session.start()
    os.kill(session._factory._number, signal.SIGSTOP)
os.kill(os.getpid(), signal.SIGKILL)
"""
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    pids = [int(word) for word in shown.stdout.split()]
    assert len(pids) == 4 if stage == "with a daemon" else 2, shown.stderr
    while any(map(alive, pids)):
        os.sched_yield()


def test_a_sandbox_that_is_ended_from_outside_costs_a_call_and_the_next_is_a_sandbox_too(jail, evaluate):
    session = jail()
    first = os.pidfd_open(session._factory._number)
    os.kill(session._factory._number, signal.SIGKILL)
    assert select.select([first], [], [], 60)[0]  # it ends after all others in its namespace
    os.close(first)
    with pytest.raises(WorkerLost) as caught:
        evaluate(session, WORKS)
    assert caught.value.kind == "signal"
    session.restart()
    assert evaluate(session, "import os; found = os.path.exists('/dev/null')") is True


def test_a_sandbox_outlives_the_thread_that_made_it(jail, evaluate):
    made = []
    thread = threading.Thread(target=lambda: made.append(jail()))
    thread.start()
    thread.join()
    assert evaluate(made[0], WORKS) == 1
    assert made[0]._factory.alive


def test_a_session_that_is_never_started_closes(jail):
    session = jail(start=False)
    process = session._factory._process
    session.close()
    session.close()
    assert process.poll() is not None


def test_no_descriptor_and_no_control_group_is_left(jail, evaluate):
    def descriptors():
        return len(list(Path("/proc/self/fd").iterdir()))

    session = jail(limits=SMALL)
    before = descriptors()
    for _ in range(3):
        lost(session, evaluate, "import os; os._exit(0)")
    assert descriptors() == before
    group = session._factory._group
    session.close()
    assert group is None or not any(folder.exists() for folder in group.folders.values())
    for _ in range(2):
        jail(limits=SMALL).close()
    assert descriptors() < before
