import os
import signal
import subprocess
import sys

import pytest

ATTENTION = """
import numpy as np


def attention(q, k, v, mask=None):
    scores = q @ np.swapaxes(k, -1, -2) / np.sqrt(q.shape[-1])
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True) @ v
"""


@pytest.fixture
def watching(tmp_path):
    path = tmp_path / "watched_code.py"
    path.write_text(ATTENTION)
    command = [sys.executable, "-P", "-m", "conformkit.cli", "watch", "--impl", str(path), "--only", "SDPA-SCALE"]
    environment = {**os.environ, "COLUMNS": "60"}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment
    ) as process:
        yield process, path
        process.kill()


def save(path, text):
    """Save as editors do, in one step: else what is there between emptying and writing is a save of its own."""
    beside = path.with_suffix(".new")
    beside.write_text(text)
    beside.replace(path)


def until(process, words):
    lines = []
    for line in process.stdout:
        lines.append(line)
        if words in line:
            return "".join(lines)
    raise AssertionError("".join(lines))


# the code has another name than the contract's: watch looks for it, as a run does
def test_saves_are_judged_in_plain_lines_and_ctrl_c_ends_it_with_130(watching):
    process, path = watching
    first = until(process, "watching")
    assert "conforms to SDPA-SCALE" in first
    save(path, "def scaled_dot(")
    assert "SyntaxError" in until(process, "waiting for the next save")
    save(path, ATTENTION.replace("np.sqrt(q.shape[-1])", "q.shape[-1]"))
    second = until(process, "watching")
    assert "broke:  SDPA-SCALE" in second
    assert "\x1b" not in first + second
    assert max(len(line) for line in second.splitlines() if "again:" not in line) <= 60
    process.send_signal(signal.SIGINT)
    rest = process.stdout.read()
    assert process.wait() == 130
    assert "Traceback" not in rest


def test_a_missing_file_is_reported_with_its_code(conform, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = conform("watch", "--impl", "nowhere_to_be_found")
    assert result.exit_code == 3
    assert "nowhere_to_be_found cannot be judged" in result.stderr
    assert conform("watch", "--impl", "").exit_code == 2


def test_it_judges_in_the_format_that_is_requested(conform, monkeypatch):
    asked = []

    def session(request):
        asked.append(request.dtype)
        raise FileNotFoundError(request.impl)

    monkeypatch.setattr("conformkit.conformance.apps.watch.session.WatchSession", session)
    assert conform("watch", "--impl", "mypkg", "--dtype", "bfloat16").exit_code == 3
    assert conform("watch", "--impl", "mypkg", "--dtype", "int").exit_code == 2
    assert asked == ["bfloat16"]
