"""A worker that misbehaves costs one request; the causes are distinguished, and the next one works."""

import contextlib
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from conformkit.conformance.driver.client.channel import Channel
from conformkit.conformance.driver.client.session import Limits, Session
from conformkit.conformance.driver.errors import DriverError, ImplementationFailure, StartError, WorkerLost
from conformkit.conformance.driver.spawn import warm as warm_module
from conformkit.conformance.driver.spawn.usage import Meter
from conformkit.conformance.driver.spawn.warm import ColdProcess, WarmProcess, scrubbed

SMALL = Limits(memory_bytes=1 << 30, output_bytes=1 << 16)
IMPATIENT = Limits(load_seconds=1.0, output_bytes=1 << 16)
"""For an import that hangs."""
LINUX = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs /proc")

DOINGS = """
    import ctypes, os, signal, socket, struct, subprocess, sys
    import numpy as np

    def fine(x):
        return x + 1
    def loops():
        while True:
            pass
    def stops():
        os.kill(os.getpid(), signal.SIGSTOP)
    def leaves():
        os._exit(0)
    def leaves_with_3():
        os._exit(3)
    def says_exit():
        sys.exit(0)
    def interrupts():
        raise KeyboardInterrupt
    def crashes():
        ctypes.string_at(0)
    def aborts():
        os.abort()
    def floods():
        while True:
            os.write(1, b"x" * 4096)
    def allocates():
        return np.ones(1 << 40)
    def fills():
        hoard = [np.ones(1 << 20) for _ in range(1 << 12)]
        return hoard[0]
    def kills_parent():
        os.kill(os.getppid(), signal.SIGKILL)
        signal.pause()
    def prints():
        print("out \\x1b[31mred\\x1b[0m")
        print("err", file=sys.stderr)
        os.system("echo child")
        sys.stdout.write("unfinished")
        return 1.0
    def reads():
        return float(len(sys.stdin.read()))
    def environment():
        import json
        shown = {"environ": dict(os.environ), "argv": sys.argv, "cmdline": open("/proc/self/cmdline").read()}
        print(json.dumps(shown))
        return 1.0

    def wire():
        # found by looking at descriptors: the only socket
        for fd in range(3, 64):
            try:
                return socket.socket(fileno=os.dup(fd))
            except OSError:
                pass
    def writes(data):
        wire().send(data.encode("latin-1"))
        return 1.0
    def closes():
        os.closerange(3, 64)
        signal.pause()
    def forges(seq, header):
        head = ('{"seq": %d, %s}' % (seq, header)).encode()
        wire().send(struct.pack("<QQ", len(head), 0) + head)
        os._exit(0)
    def leaves_children(path):
        tell = f"open({path!r}, 'a').write(str(os.getpid()) + '\\\\n')"
        command = f"import os, time; os.setsid() if {{}} else 0; {tell}; time.sleep(600)"
        for own_group in (0, 1):
            child = subprocess.Popen([sys.executable, "-c", command.format(own_group)])
        while len(open(path).read().splitlines() if os.path.exists(path) else ()) < 2:
            pass
        os._exit(0)
"""


@pytest.fixture
def session(write, open_session):
    return open_session(write(source=DOINGS), limits=SMALL)


def do(session, name, *args, seconds=None, **arrays):
    handle = session.request({"op": "build", "path": f"mypkg:{name}"}).header["handle"]
    header = {"op": "call", "handle": handle, "args": [*args, *({"$tensor": key} for key in arrays)]}
    return session.request(header, arrays, seconds)


def works(session):
    return do(session, "fine", x=np.ones(2)).tensors["out"].tolist() == [2, 2]


@pytest.mark.parametrize(
    ("name", "kind", "detail"),
    [
        ("loops", "timeout", "no answer after 0.3 s"),
        ("stops", "timeout", "no answer after 0.3 s"),
        ("leaves", "exit", "exited with status 0 in the middle of a call"),
        ("leaves_with_3", "exit", "exited with status 3 in the middle of a call"),
        ("crashes", "signal", "killed by SIGSEGV"),
        ("aborts", "signal", "killed by SIGABRT"),
        ("floods", "output", "printed more than 0.0625 MiB"),
        ("closes", "protocol", "closed its wire and went on running"),
    ],
)
def test_a_worker_that_is_lost_says_how_and_the_next_one_works(session, name, kind, detail):
    with pytest.raises(WorkerLost) as caught:
        do(session, name, seconds=0.3 if kind == "timeout" else None)
    assert (caught.value.kind, caught.value.detail) == (kind, detail)
    assert session.lost
    session.restart()
    assert session.generation == 2
    assert works(session)


@pytest.mark.parametrize(
    ("name", "kind", "type_"),
    [
        ("says_exit", "exit", "SystemExit"),
        ("interrupts", "exception", "KeyboardInterrupt"),
        ("allocates", "memory", None),
    ],
)
def test_what_can_be_caught_is_a_failure_and_the_worker_lives_on(session, name, kind, type_):
    with pytest.raises(ImplementationFailure) as caught:
        do(session, name)
    assert caught.value.kind == kind
    assert type_ in {None, caught.value.type}
    assert not session.lost
    assert works(session)


def test_memory_is_limited_from_what_the_warm_process_holds(write, open_session, monkeypatch):
    # what is resident is also watched from outside, and by chance that is quicker
    monkeypatch.setattr(Meter, "_over", lambda *_: False)
    limits = Limits(memory_bytes=256 << 20)
    session = open_session(write(source=DOINGS), limits=limits)
    with pytest.raises(ImplementationFailure) as caught:
        do(session, "fills")
    assert caught.value.kind == "memory"
    assert works(session)


@LINUX
def test_memory_beyond_the_reach_of_the_rlimit_is_watched_from_outside(write, open_session, monkeypatch):
    # as root, an implementation can lift its own limit
    monkeypatch.setattr(
        WarmProcess, "spawn", lambda self, wire, output, _, spawn=WarmProcess.spawn: spawn(self, wire, output, None)
    )
    session = open_session(write(source=DOINGS), limits=Limits(memory_bytes=128 << 20))
    with pytest.raises(WorkerLost) as caught:
        do(session, "fills")
    assert (caught.value.kind, caught.value.detail) == ("memory", "used more than 128 MiB of memory")
    session.restart()
    assert works(session)


def test_a_limit_that_an_empty_worker_hits_is_not_a_failure_of_the_implementation(write, open_session):
    session = open_session(write(source=DOINGS), limits=Limits(memory_bytes=4096), start=False)
    with pytest.raises(StartError, match="an empty worker does not run within"):
        session.start()


@pytest.mark.parametrize(
    "data",
    ["garbage that is no frame at all", "\xff" * 64, "\x02" + "\0" * 15 + "[]", "\0" * 16],
    ids=["text", "huge-lengths", "no-object", "empty"],
)
def test_garbage_on_the_wire_is_reported(session, data):
    with pytest.raises(WorkerLost) as caught:
        do(session, "writes", data)
    assert caught.value.kind == "protocol"
    session.restart()
    assert works(session)


@pytest.mark.parametrize(
    ("seq", "header"),
    [
        (1, '"ok": true'),
        (3, '"ok": "yes"'),
        (3, '"ok": true'),
        (3, '"ok": true, "verdict": "pass"'),
        (-1, '"ok": true'),
    ],
)
def test_a_malformed_forged_reply_is_reported(session, seq, header):
    with pytest.raises(WorkerLost) as caught:
        do(session, "forges", seq, header)
    assert caught.value.kind == "protocol"


def test_a_frame_too_many_is_noticed_at_the_next_request(session):
    # without this, the leftover frame would be taken for the reply to the next request
    source_seq = 4
    head = json.dumps({"seq": source_seq, "ok": True}).encode()
    late = len(head).to_bytes(8, "little") + bytes(8) + head
    handle = session.request({"op": "build", "path": "mypkg:writes"}).header["handle"]
    with pytest.raises(WorkerLost) as caught:
        session.request({"op": "call", "handle": handle, "args": [late.decode("latin-1")]})
    assert caught.value.kind == "protocol"


def test_a_lost_session_refuses_until_it_is_restarted(session):
    with pytest.raises(WorkerLost):
        do(session, "leaves")
    with pytest.raises(DriverError, match="restart the session first"):
        session.request({"op": "copy", "handle": 1})


def test_the_session_survives_a_worker_that_kills_the_warm_process(write):
    with Session(write(source=DOINGS), None, SMALL) as session:  # not the warm process of the other tests
        session.start()
        with pytest.raises(WorkerLost) as caught:
            do(session, "kills_parent")
        assert caught.value.detail == "killed, together with the process that supervises it"
        session.restart()
        assert works(session)


def test_what_is_printed_arrives_cleaned_and_once(session):
    assert do(session, "prints").tensors["out"] == 1
    shown = session.take_output()
    assert sorted(shown.replace("unfinished", "").split("\n")) == ["", "child", "err", "out red"]
    assert "unfinished" in shown
    assert session.take_output() == ""


def test_output_counts_from_when_it_was_last_taken(session):
    for _ in range(3):
        for _ in range(20):
            do(session, "prints")
        assert session.take_output()


def test_output_of_a_worker_that_died_is_kept(session):
    do(session, "prints")
    with pytest.raises(WorkerLost):
        do(session, "crashes")
    session.restart()
    assert "Segmentation fault" in (shown := session.take_output())
    assert "mypkg.py" in shown


def test_standard_input_is_empty(session):
    assert do(session, "reads").tensors["out"] == 0


@LINUX
def test_the_environment_reveals_nothing(write, open_session, monkeypatch):
    monkeypatch.setenv("PYTEST_CURRENT_TEST", "SDPA-SCALE")
    monkeypatch.setenv("CONFORM_GRADING", "1")
    monkeypatch.setenv("PYTHONPATH", "/somewhere")
    with Session(write(source=DOINGS), limits=Limits(threads=1)) as session:
        session.start()
        do(session, "environment")
        shown = json.loads(session.take_output())
    allowed = warm_module._KEPT | set(scrubbed({}, 1)) | {"LC_CTYPE", "LC_ALL"}
    assert set(shown["environ"]) <= allowed
    assert shown["environ"]["OMP_NUM_THREADS"] == "1"
    assert shown["argv"] == [""]
    assert "SDPA" not in shown["cmdline"]


def alive(pid):
    with contextlib.suppress(OSError):
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    return False


@LINUX
def test_children_of_a_worker_die_with_it_even_outside_of_its_group(write, open_session, tmp_path):
    session = open_session(write(source=DOINGS), limits=Limits(call_seconds=60))
    path = tmp_path / "pids"
    with pytest.raises(WorkerLost) as caught:
        do(session, "leaves_children", str(path))
    assert caught.value.kind == "exit"
    pids = [int(line) for line in path.read_text().split()]
    assert len(pids) == 2
    assert not any(map(alive, pids))


@LINUX
def test_nothing_runs_after_close(write):
    session = Session(write(source=DOINGS), limits=SMALL)
    session.start()
    pids = [session._channel.pid, session._factory._process.pid]
    assert all(map(alive, pids))
    session.close()
    assert not any(map(alive, pids))


@LINUX
def test_nothing_runs_after_the_harness_was_killed(write):
    location = write(source=DOINGS)
    code = (
        "import os, signal\n"
        "from conformkit.conformance.driver.client.session import *\n"
        f"s = Session(locate({str(location.path)!r})); s.start()\n"
        "print(s._channel.pid, s._factory._process.pid, flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    pids = [int(word) for word in shown.stdout.split()]
    assert len(pids) == 2
    while any(map(alive, pids)):
        os.sched_yield()


def test_sessions_that_share_a_warm_process_get_their_own_workers(write, open_session):
    first, second = (open_session(write(source=DOINGS), start=False) for _ in range(2))
    second.start()
    first.start()
    with pytest.raises(WorkerLost):
        do(first, "loops", seconds=0.1)  # kills its own worker, not the other one's
    assert works(second)


def test_a_session_that_is_never_started_closes(write):
    Session(write(source=DOINGS)).close()


def test_a_restart_uses_the_same_warm_process(session):
    before = session._factory._process.pid
    first = session._channel.pid
    session.restart()
    assert (session._factory._process.pid, session.generation) == (before, 2)
    assert session._channel.pid != first


@LINUX
def test_no_descriptor_is_left_open_by_restarts(session):
    session.restart()
    before = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(5):
        with pytest.raises(WorkerLost):
            do(session, "leaves")
        session.restart()
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_a_restart_sees_the_file_as_it_is_now(write, open_session):
    session = open_session(write(source="def f():\n    return 1.0"))
    write(source="def f():\n    return 2.0")
    session.restart()
    assert do(session, "f").tensors["out"] == 2


@pytest.mark.parametrize(
    ("source", "error", "kind"),
    [
        ("1 / 0", ImplementationFailure, "load"),
        ("raise SystemExit", ImplementationFailure, "exit"),
        ("import os; os._exit(0)", WorkerLost, "exit"),
        ("while True: pass", WorkerLost, "timeout"),
        ("while True: print('x' * 1000)", WorkerLost, "output"),
        ("import os; os.abort()", WorkerLost, "signal"),
    ],
    ids=["raises", "exits", "leaves", "loops", "floods", "aborts"],
)
def test_a_failing_import_is_explained_and_the_session_can_restart(write, open_session, source, error, kind):
    session = open_session(write(source=source), limits=IMPATIENT, start=False)
    with pytest.raises(error) as caught:
        session.start()
    assert caught.value.kind == kind
    write(source=DOINGS)
    session.restart()
    assert works(session)


def test_what_an_import_prints_is_output(write, open_session):
    assert open_session(write(source="print('hello')")).take_output() == "hello\n"


def test_a_big_frame_crosses_both_ways_while_the_worker_prints(session):
    x = np.arange(1 << 20, dtype=np.float64)
    do(session, "prints")
    assert (do(session, "fine", x=x).tensors["out"] == x + 1).all()


def test_a_reply_over_the_bound_is_a_separate_error(inside, write, open_session):
    session = open_session(write(source="import numpy as np\ndef f():\n    return np.zeros(1 << 26)"))
    with pytest.raises(ImplementationFailure) as caught:
        do(session, "f")
    assert caught.value.kind == "output"


def test_a_batch_of_the_wire_answers_each_request(session):
    handle = session.request({"op": "build", "path": "mypkg:fine"}).header["handle"]
    header = {"op": "call", "handle": handle, "args": [{"$tensor": "x"}]}
    replies = session.batch([(header, {"x": np.full(1, i)}) for i in range(3)] + [({"op": "copy", "handle": 9}, {})])
    assert [float(reply.tensors["out"].item()) for reply in replies[:3]] == [1, 2, 3]
    assert isinstance(replies[3], ImplementationFailure)


def test_a_worker_without_fork_is_a_fresh_process(write):
    process = ColdProcess(1, torch=False)
    with contextlib.closing(process), Session(write(source=DOINGS), limits=Limits(), warm=process) as session:
        session.start()
        with pytest.raises(WorkerLost) as caught:
            do(session, "crashes")
        assert caught.value.detail == "killed by SIGSEGV"
        session.restart()
        with pytest.raises(WorkerLost) as caught:
            do(session, "leaves_with_3")
        assert caught.value.detail == "exited with status 3 in the middle of a call"
        session.restart()
        assert works(session)


def test_a_warm_process_that_cannot_start_says_why(monkeypatch):
    monkeypatch.setattr(warm_module, "_WORKER_HALF", "conformkit.nowhere")
    process = WarmProcess(1, torch=False)
    with contextlib.closing(process), pytest.raises(StartError, match="nowhere"):
        process.wait_ready()


def test_an_interrupt_in_the_harness_leaves_no_worker_in_the_middle_of_a_frame(session, monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Channel, "exchange", interrupt)
        with pytest.raises(KeyboardInterrupt):
            do(session, "fine", x=np.ones(1))
    assert session.lost
    session.restart()
    assert works(session)


TORCH = """
    import torch
    from torch import nn
    class Model(nn.Linear):
        def __init__(self):
            super().__init__(3, 3)
    def state():
        threads = torch.get_num_threads(), torch.get_num_interop_threads()
        return threads[0] == threads[1] == 1 and not torch.backends.cuda.matmul.allow_tf32
    def huge():
        return torch.ones(1 << 50)
"""


def test_a_fork_with_torch_builds_calls_and_differentiates(write, open_session):
    session = open_session(write(source=TORCH), torch=True)
    for _ in range(2):
        handle = session.request({"op": "build", "path": "Model", "dtype": "float64"}).header["handle"]
        header = {"op": "vjp", "handle": handle, "args": [{"$tensor": "x"}], "wrt": ["x"], "parameters": True}
        reply = session.request(header, {"x": np.ones((2, 3)), "cotangent": np.ones((2, 3))})
        assert set(reply.tensors) == {"out", "grad:x", "param:weight", "param:bias"}
        session.restart()
    assert do(session, "state").tensors["out"]
    with pytest.raises(ImplementationFailure) as caught:
        do(session, "huge")
    assert caught.value.kind == "memory"


def test_the_warm_process_imports_no_implementation_and_a_worker_no_law(write, open_session):
    source = """
        import sys
        def f():
            law = "conformkit.spec", "conformkit.fixtures", "conformkit.conformance.suite"
            return float(any(name.startswith(law) for name in sys.modules))
    """
    assert do(open_session(write(source=source)), "f").tensors["out"] == 0


def test_torch_is_imported_only_on_demand(write, open_session):
    session = open_session(write(source="import sys\ndef f():\n    return float('torch' in sys.modules)"))
    assert do(session, "f").tensors["out"] == 0


def test_the_driver_runs_from_the_command_line_of_another_folder(write, tmp_path):
    # a torch.py or a sitecustomize.py in the current folder must not get into the harness's processes
    (tmp_path / "numpy.py").write_text("raise SystemExit('shadowed')")
    location = write(target="sub/mypkg.py", source=DOINGS)
    code = (
        "from conformkit.conformance.driver.client.session import *\n"
        f"s = Session(locate({str(location.path)!r})); print(s.start().module); s.close()"
    )
    command = [sys.executable, "-P", "-c", code]
    shown = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert shown.stdout == "mypkg\n", shown.stderr
