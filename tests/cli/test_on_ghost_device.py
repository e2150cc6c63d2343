"""Where the system has no fork, no POSIX modules and no Unix sockets, commands work or say why not."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

BARE = """
import os, select, signal, socket, sys
for name in ("fcntl", "grp", "pty", "pwd", "resource", "termios", "tty"):
    sys.modules[name] = None
gone = {
    os: ("fork", "geteuid", "getpgid", "getuid", "killpg", "setpgid", "setsid", "sysconf", "wait4"),
    select: ("epoll", "poll"),
    signal: ("SIGALRM", "SIGCHLD", "SIGHUP", "setitimer"),
    socket: ("recv_fds", "send_fds"),
}
for module, names in gone.items():
    for name in names:
        if hasattr(module, name):
            delattr(module, name)
from conformkit.cli.main import main
"""
"""What a system like Windows lacks, taken away before the command starts."""


NO_POSIX = """
from conformkit.conformance.driver.spawn import warm
class Elsewhere:
    name = "nt"
    def __getattr__(self, name):
        return getattr(os, name)
warm.os = Elsewhere()
"""


def bare(*arguments, more=""):
    command = [sys.executable, "-P", "-c", f"{BARE}{more}sys.exit(main())", *map(str, arguments)]
    # with a PYTHONPATH the command would start again without it, and nothing would be taken away from that process
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT, env=clean)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--version"], "conform"),
        (["spec", "SDPA"], "SDPA-SCALE"),
        (["explain", "SDPA-SCALE"], "normative:"),
        (["defects", "sdpa-no-scale"], "sdpa-no-scale"),
        (["run", "--impl", "examples/numpy_only", "--isolation", "none", "--only", "SDPA-OUT-SHAPE"], "1 pass"),
        pytest.param(["train", "--recipes"], "tiny", marks=pytest.mark.full),
    ],
    ids=["version", "spec", "explain", "defects", "run", "recipes"],
)
def test_commands_without_a_separate_process_work(arguments, words):
    done = bare(*arguments)
    assert (done.returncode, done.stderr) == (0, "")
    assert words in done.stdout


@pytest.mark.parametrize(
    "arguments",
    ["run --impl", "compare examples/numpy_only", "inspect --impl", "watch --impl"],
    ids=lambda text: text.split()[0],
)
def test_where_no_worker_can_be_made_the_isolation_that_works_is_named(arguments):
    done = bare(*arguments.split(), "examples/numpy_only", more=NO_POSIX)
    assert (done.returncode, done.stdout) == (4, "")
    assert "--isolation none" in done.stderr
    assert "itself failed" not in done.stderr


def test_grading_says_that_it_needs_more(tmp_path):
    (tmp_path / "class" / "ada").mkdir(parents=True)
    (tmp_path / "class" / "ada" / "attention.py").write_text("")
    (tmp_path / "policy.toml").write_text('[[groups]]\nname = "a"\npoints = 1\nclauses = ["SDPA"]\n')
    done = bare("grade", tmp_path / "class", "--policy", tmp_path / "policy.toml", "--out", tmp_path / "out")
    assert done.returncode == 2
    assert "POSIX" in done.stderr
    assert "Traceback" not in done.stderr
