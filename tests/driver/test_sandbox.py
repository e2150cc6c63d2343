"""What code in a sandbox can see, reach and change: itself, the system (read-only), and files in memory."""

import ast
import os
import socket
import sys
from pathlib import Path

import pytest

from conformkit.conformance.driver.errors import IsolationUnavailable
from conformkit.conformance.driver.location import locate
from conformkit.conformance.driver.sandbox import bubblewrap, seccomp, snapshot
from conformkit.conformance.driver.sandbox import enclosure as enclosure_module
from conformkit.conformance.driver.worker.confinement import SAME_USER
from tests.needs import without

ROOT = Path(enclosure_module.__file__).resolve().parents[3]


def refusals(calls):
    """Code that tries calls of the C library or of the kernel and says how each of them ends."""
    return f"""
        import ctypes, errno
        libc = ctypes.CDLL(None, use_errno=True)
        found = {{}}
        for name, call in {calls!r}.items():
            ctypes.set_errno(0)
            scope = {{"libc": libc, "long": ctypes.c_long, "buffer": ctypes.create_string_buffer(4096)}}
            failed = eval(call, scope) < 0
            found[name] = errno.errorcode.get(ctypes.get_errno(), "0") if failed else "done"
    """


def test_there_is_no_network(cell, evaluate):
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket(socket.AF_UNIX) as abstract:
        abstract.bind("\0conformkit-test")
        abstract.listen()
        found = evaluate(
            cell,
            f"""
            import socket
            def reach(family, address):
                try:
                    with socket.socket(family) as one:
                        one.settimeout(5)
                        one.connect(address)
                    return "reached"
                except OSError as error:
                    return type(error).__name__
            found = [
                [name for _, name in socket.if_nameindex()],
                reach(socket.AF_INET, ("127.0.0.1", {server.getsockname()[1]})),
                reach(socket.AF_INET, ("192.0.2.1", 80)),
                reach(socket.AF_UNIX, "\\0conformkit-test"),
            ]
            """,
        )
    assert found == [["lo"], "ConnectionRefusedError", "OSError", "ConnectionRefusedError"]


@without("SECCOMP", "" if seccomp.program() else "needs libseccomp")
def test_sockets_that_no_network_namespace_holds_are_refused(cell, evaluate):
    # vsock leads out of a virtual machine; a check of all 64 bits would let the one with a high bit through
    families = {"vsock": 40, "packet": 17, "alg": 38, "bluetooth": 31}
    calls = {name: f"libc.socket({family}, 1, 0)" for name, family in families.items()}
    calls["disguised"] = f"libc.syscall({SOCKET[os.uname().machine]}, long((1 << 32) + 40), 1, 0)"
    assert evaluate(cell, refusals(calls)) == dict.fromkeys(calls, "EAFNOSUPPORT")


EVALUATE = """
import json
def evaluate(code):
    scope = {}
    exec(code, scope)
    print(json.dumps(scope["found"]))
    return 1.0
"""
SOCKET = {"x86_64": 41, "aarch64": 198}
CALLS = {
    "ptrace": "libc.ptrace(0, 0, 0, 0)",
    "mount": "libc.mount(b'none', b'/tmp', b'tmpfs', 0, None)",
    "unshare": "libc.unshare(0x10000000)",
    "setns": "libc.setns(0, 0)",
    "chroot": "libc.chroot(b'/tmp')",
    "read another process": "libc.process_vm_readv(1, None, 0, None, 0, 0)",
    "take a descriptor": "libc.syscall(438, 0, 0, 0)",
    "memory without a limit": "libc.memfd_create(b'x', 0)",
    "shared memory": "libc.shmget(0, 4096, 0o1600)",
    "mount by descriptor": "libc.syscall(428, -100, b'/', 1)",
    "personality": "libc.personality(0x40000)",
    "host name": "libc.sethostname(b'x', 1)",
}
ABSENT = {"io_uring": "libc.syscall(425, 4, buffer)", "clone3": "libc.syscall(435, buffer, 88)"}


@without("SECCOMP", "" if seccomp.program() else "needs libseccomp")
def test_calls_that_no_model_needs_are_refused_by_the_kernel(cell, evaluate):
    want = dict.fromkeys(CALLS, "EPERM") | dict.fromkeys(ABSENT, "ENOSYS")
    assert evaluate(cell, refusals(CALLS | ABSENT)) == want


def test_only_temporary_folders_and_devices_can_be_written_to(cell, evaluate):
    found = evaluate(
        cell,
        """
        with open("/proc/self/mountinfo") as lines:
            fields = [line.split() for line in lines]
        found = [[field[4] for field in fields if kind in field[5].split(",")] for kind in ("rw", "ro")]
        """,
    )
    devices = {f"/dev/{name}" for name in ("full", "null", "pts", "random", "tty", "urandom", "zero", "console")}
    writable, others = map(set, found)
    assert writable - devices == {"/proc", "/tmp", "/dev/shm"}
    assert others >= {"/", "/dev", "/proc/sys", "/usr/lib", str(cell.location.path)}


def test_what_belongs_to_others_cannot_be_written_to(cell, evaluate):
    places = ["/usr", "/usr/lib", "/etc", "/", "/dev", "/proc", "/proc/sys/kernel", "/var"]
    places += ["/sys/devices/system/cpu", "/run", f"{sys.prefix}/lib", f"{sys.base_prefix}/bin"]
    places.append(str(cell.location.path))
    files = ["/etc/passwd", "/proc/sys/kernel/core_pattern", "/proc/sysrq-trigger"]
    files.append(str(cell.location.path / "__init__.py"))
    found = evaluate(
        cell,
        f"""
        def can(*arguments):
            try:
                os.close(os.open(*arguments))
            except OSError:
                return False
            return True
        import os
        found = [path for path in {places!r} if can(path + "/made", os.O_CREAT | os.O_WRONLY)]
        found += [path for path in {files!r} if can(path, os.O_WRONLY)]
        """,
    )
    assert found == []


def test_files_are_private_and_gone_afterwards(jail, evaluate, tmp_path):
    places = "import os; places = [p + '/mark' for p in (os.environ['HOME'], '/tmp', '/dev/shm')]\n"
    write = places + "for place in places: open(place, 'w').close()"
    look = places + "found = [os.path.exists(place) for place in places]"
    first, second = jail(), jail()
    evaluate(first, write)
    assert evaluate(first, look) == [True] * 3
    assert evaluate(second, look) == [False] * 3
    assert not Path("/tmp/mark").exists()
    assert not Path("/dev/shm/mark").exists()
    first._factory.close()
    first.restart()
    assert evaluate(first, look) == [False] * 3


def test_of_the_kit_there_is_the_half_of_the_driver_that_a_worker_needs(cell, evaluate):
    found = evaluate(
        cell,
        """
        import importlib, pkgutil, sys, conformkit, conformkit.conformance, conformkit.conformance.driver as driver
        def is_there(name):
            try:
                importlib.import_module(name)
            except ModuleNotFoundError:
                return False
            return True
        names = ["spec", "spec.attention", "fixtures", "reference", "cli", "conformance.suite", "conformance.engine",
                 "conformance.defects", "conformance.evidence", "conformance.runner", "conformance.apps"]
        found = [
            [name for name in names if is_there("conformkit." + name)],
            [m.name for of in (conformkit, conformkit.conformance, driver) for m in pkgutil.iter_modules(of.__path__)],
            sorted(next(each for each in sys.meta_path if type(each).__name__ == "Carried")._modules),
        ]
        """,
    )
    above = ["conformkit", "conformkit.conformance", "conformkit.conformance.driver"]
    assert found == [[], [], [*above, *sorted(f"{above[-1]}.{name}" for name in worker_half())]]


def worker_half():
    """The modules of the driver that a worker's process may import, read from their sources."""
    driver = "conformkit.conformance.driver."
    found, waiting = set(), ["worker.main", "worker.zygote", "worker.frameworks.numpy", "worker.frameworks.torch"]
    waiting += ["worker.carried", "worker.plain_program"]
    while waiting:
        name = waiting.pop()
        if name in found:
            continue
        found |= {name, *(name[:at] for at, letter in enumerate(name) if letter == ".")}
        for node in ast.walk(ast.parse(driver_file(name).read_text())):
            if isinstance(node, ast.ImportFrom) and f"{node.module}.".startswith(driver):
                module = f"{node.module}.".removeprefix(driver)
                named = [module + alias.name for alias in node.names]
                waiting += [name for name in [*named, module.rstrip(".")] if name and driver_file(name).is_file()]
    return found


def driver_file(name):
    return (ROOT / "conformance" / "driver" / name.replace(".", "/")).with_suffix(".py")


def test_files_of_the_kit_the_neighbors_the_policy_and_home_are_out_of_sight(cell, evaluate):
    own = cell.location.path
    hidden = [*(ROOT / name for name in ("spec", "fixtures", "reference", "cli", "conformance", "tests", ".git"))]
    hidden += [own.parent / "neighbor", own.parent.parent / "policy.toml", Path.home() / ".bashrc", Path("/var/lib")]
    code = f"import os; found = [p for p in {[*map(str, hidden)]!r} if os.path.exists(p)]"
    assert evaluate(cell, code) == []
    assert evaluate(cell, f"import os; found = os.listdir({str(own.parent)!r})") == ["own"]
    assert evaluate(cell, "import importlib.util; found = importlib.util.find_spec('neighbor') is None")


def test_the_environment_is_the_same_for_all(jail, evaluate, monkeypatch):
    for name in ("CONFORM_GRADING", "TMPDIR", "LD_LIBRARY_PATH", "PYTHONPATH"):
        monkeypatch.setenv(name, "/somewhere")
    session = jail()
    shown, folder = evaluate(session, "import os; found = [dict(os.environ), os.getcwd()]")
    assert not {"CONFORM_GRADING", "TMPDIR", "LD_LIBRARY_PATH", "PYTHONPATH", "PWD"} & set(shown)
    assert (shown["HOME"], shown["USER"], folder) == ("/tmp/home", "nobody", "/tmp")
    code = (
        "import getpass, pathlib, tempfile as t; found = [getpass.getuser(), str(pathlib.Path.home()), t.gettempdir()]"
    )
    assert evaluate(session, code) == ["nobody", "/tmp/home", "/tmp"]


def test_other_processes_can_be_neither_seen_nor_stopped(cell, evaluate):
    found = evaluate(
        cell,
        """
        import os, signal
        pids = sorted(int(name) for name in os.listdir("/proc") if name.isdigit())
        def readable(name):
            try:
                return bool(open("/proc/1/" + name, "rb").read(1))
            except OSError:
                return False
        for number in (signal.SIGKILL, signal.SIGSTOP, signal.SIGTERM):
            os.kill(1, number)
        found = [pids, os.getpid(), os.getppid(), [n for n in ("environ", "mem", "maps", "fd/3") if readable(n)]]
        """,
    )
    pids, own, parent, readable = found
    assert pids == [1, own]
    assert (parent, readable) == (1, [])
    cell.restart()
    assert cell.generation == 2  # by the same warm process
    assert evaluate(cell, "import os; found = os.getpid() > 1")


def test_it_runs_as_a_user_without_rights(cell, evaluate):
    found = evaluate(
        cell,
        """
        import os
        status = dict(line.split(":", 1) for line in open("/proc/self/status"))
        found = [os.getuid(), os.geteuid(), os.getgid(), os.getgroups(), int(status["CapEff"], 16),
                 int(status["CapPrm"], 16), int(status["NoNewPrivs"]), int(status["Seccomp"])]
        """,
    )
    user, effective, group, groups, *rest = found
    assert user == effective == group != 0
    assert set(groups) <= {65534}
    assert rest == [0, 0, 1, 2 if seccomp.program() else 0]
    outside = Path(f"/proc/{cell._channel.pid}").stat().st_uid
    assert outside == (os.getuid() if bubblewrap.user_inside() == SAME_USER else user)


def test_a_worker_has_its_streams_and_its_wire_and_passes_none_but_the_streams_on(cell, evaluate):
    found = evaluate(
        cell,
        """
        import os, subprocess, sys
        listed = {int(name) for name in os.listdir("/proc/self/fd")}
        def kind(descriptor):
            try:
                return os.readlink(f"/proc/self/fd/{descriptor}").partition(":")[0]
            except OSError:
                return None
        kinds = {descriptor: kind(descriptor) for descriptor in sorted(listed)}
        code = "import os; print(len(os.listdir('/proc/self/fd')) - 1)"
        inherited = subprocess.run([sys.executable, "-c", code], close_fds=False, capture_output=True, text=True)
        found = [[kind for kind in kinds.values() if kind], inherited.stdout]
        """,
    )
    assert found == [["/dev/null", "pipe", "pipe", "socket"], "3\n"]


def test_the_note_tells_what_holds(cell, evaluate):
    status = evaluate(cell, "found = dict(line.split(':', 1) for line in open('/proc/self/status'))")
    assert cell.note.startswith("sandbox: bubblewrap ")
    assert ("seccomp" in cell.note) == (status["Seccomp"].strip() == "2")
    landlock = evaluate(cell, refusals({"version": "libc.syscall(444, None, 0, 1)"}))["version"] == "done"
    assert ("landlock" in cell.note) == landlock


def test_lines_of_the_implementation_have_the_names_that_they_have_outside(jail, write):
    session = jail(write("pkg", {"pkg/__init__.py": "from .part import f", "pkg/part.py": "def f():\n    1 / 0"}))
    handle = session.request({"op": "build", "path": "pkg:f"}).header["handle"]
    with pytest.raises(Exception, match="division") as caught:
        session.request({"op": "call", "handle": handle})
    assert caught.value.where == "pkg/part.py:2 in f"


@pytest.mark.parametrize(
    ("target", "belongs"),
    [
        ("pkg", "pkg"),
        ("pkg/inner", "pkg"),
        ("pkg/inner/deep.py", "pkg"),
        ("loose", "loose"),
        ("loose/a.py", "loose/a.py"),
        ("link", "link"),
    ],
)
def test_an_implementation_is_its_file_its_folder_or_its_whole_package(tmp_path, target, belongs):
    for name in ("pkg/__init__.py", "pkg/inner/__init__.py", "pkg/inner/deep.py", "loose/a.py", "loose/b.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "link").symlink_to("pkg")
    found = enclosure_module.belongings(locate(str(tmp_path / target)))
    assert found == [(tmp_path / belongs).resolve()]


def test_a_package_is_found_by_name_and_shown_without_what_is_next_to_it(tmp_path, jail, evaluate, write):
    write("pkg", {"pkg/__init__.py": "", "pkg/inner/__init__.py": EVALUATE, "beside.py": ""})
    session = jail(locate("pkg.inner", tmp_path))
    assert evaluate(session, f"import os; found = os.listdir({str(tmp_path)!r})") == ["pkg"]


def test_a_package_that_is_a_link_is_shown_where_it_leads(tmp_path, jail, evaluate, write):
    write("elsewhere/pkg", {"elsewhere/pkg/__init__.py": "def evaluate(code):\n    print(1)\n    return 1.0"})
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "pkg").symlink_to(tmp_path / "elsewhere" / "pkg")
    assert evaluate(jail(locate("pkg", tmp_path)), "") == 1


@pytest.mark.parametrize("path", ["/", "/tmp", "/usr"])
def test_a_folder_of_half_the_machine_is_not_an_implementation(path):
    with pytest.raises(IsolationUnavailable, match="cannot show"):
        enclosure_module.belongings(locate(path))


def test_unreadable_files_are_copied_and_the_copy_is_removed(bwrap, jail, evaluate, write, tmp_path):
    if bubblewrap.user_inside() == SAME_USER:
        pytest.skip("only root's sandbox has another user")
    write("own", {"own/__init__.py": "from own.part import evaluate", "own/part.py": EVALUATE})
    os.mkfifo(tmp_path / "own" / "pipe")
    (tmp_path / "own" / "link").symlink_to("/etc/shadow")
    for path in (tmp_path / "own", tmp_path / "own" / "part.py"):
        path.chmod(path.stat().st_mode & ~0o077)
    session = jail(locate(str(tmp_path / "own")))
    look = f"import os; found = [sorted(os.listdir({str(tmp_path / 'own')!r})), os.path.exists('/etc/shadow')]"
    assert evaluate(session, look) == [["__init__.py", "link", "part.py"], False]
    copy = session._factory._copy
    assert copy.exists()
    session.close()
    assert not copy.exists()


def test_what_would_be_too_big_a_copy_is_refused_with_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setattr(snapshot, "_MOST_BYTES", 1000)
    (tmp_path / "big").write_bytes(bytes(2000))
    with snapshot.readable_copy(tmp_path / "big", user=1) as copy:
        assert copy is None  # everybody can read it, whatever its size
    (tmp_path / "big").chmod(0o600)
    with pytest.raises(IsolationUnavailable, match="too big") as caught, snapshot.readable_copy(tmp_path / "big", 1):
        pass
    assert "chmod" in caught.value.advice[0]
