"""Other programs get verdicts as lines of JSON: every line an answer, whatever it holds."""

from __future__ import annotations

import json
import os
import socket
import stat
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

from conformkit.conformance.api.judgment import Failure, Judgment
from conformkit.conformance.api.serving import SCHEMA, answer_lines, lines_of, listen
from conformkit.conformance.report.score import RunOutcome

FAILURE = Failure("SDPA-SCALE", "rule", "MUST", "ScaledDotProductAttention", "fail", "what", names=({"title": "t"},))
VERDICT = Judgment("candidate", RunOutcome.FAILS, "1 of 2 fails", 0.5, {"X": 0.5}, (FAILURE,), seed=3, complete=True)


class Judges:
    """Answers at once, or when `finish` is called; `asked` is what was asked for."""

    def __init__(self, *, at_once: bool = True) -> None:
        self.asked: list[tuple[Any, dict[str, Any]]] = []
        self.futures: list[Future[Judgment]] = []
        self._at_once = at_once

    def submit(self, code: Any, **options: Any) -> Future[Judgment]:
        if options.get("profile") == "cor":
            raise ValueError("profile 'cor' is not one of core")
        self.asked.append((code, options))
        self.futures.append(Future())
        if self._at_once:
            self.futures[-1].set_result(VERDICT)
        return self.futures[-1]


def answers(*lines: str, judges: Any = None) -> list[dict[str, Any]]:
    found: list[str] = []
    answer_lines(lines, found.append, judges or Judges())
    assert all(text.endswith("\n") and text.count("\n") == 1 for text in found)
    return [json.loads(text) for text in found]


def test_a_verdict_is_one_object_with_the_failures_in_it() -> None:
    judges = Judges()
    (found,) = answers('{"id": "a", "code": "import numpy", "only": "SDPA", "seed": 3}', judges=judges)
    assert judges.asked == [("import numpy\n", {"only": "SDPA", "seed": 3})]
    assert (found["schema"], found["id"], found["outcome"], found["score"]) == (SCHEMA, "a", "fails", 0.5)
    assert found["failures"][0]["clause"] == "SDPA-SCALE"
    assert found["failures"][0]["names"] == [{"title": "t"}]


def test_files_and_paths_are_handed_on() -> None:
    judges = Judges()
    answers('{"files": {"a.py": "x"}}', '{"path": "mypkg"}', '{"path": "dir/a.py", "strict": true}', judges=judges)
    assert judges.asked == [
        ({"a.py": "x"}, {}), ("mypkg", {}), (Path("dir/a.py"), {"strict": True}),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("{", "it is no JSON: "), ("[1]", "it holds list, not an object"), ("[" * 100_000, "it is no JSON: "),
        ('{"id": 1}', "give one of code, files, path, not none"),
        ('{"code": "x", "path": "y"}', "give one of code, files, path, not code and path"),
        ('{"code": 3}', "code must be a text, not int"), ('{"files": ["x"]}', "files must be an object"),
        ('{"path": ""}', "path must be a module's name"), ('{"code": "x", "seed": -1}', "seed must be a whole number"),
        ('{"code": "x", "seed": true}', "seed must be a whole number"),
        ('{"code": "x", "seconds": 0}', "seconds must be a number from 1 to 86400"),
        ('{"code": "x", "strict": 1}', "strict must be true or false, not int"),
        ('{"code": "x", "isolation": "none"}', "'isolation' is not one of id, code, "),
        ('{"code": "x", "profile": "cor"}', "profile 'cor' is not one of core"),
    ],
)  # fmt: skip
def test_what_is_no_request_is_told_with_its_line_and_the_next_is_served(line: str, why: str) -> None:
    told, served = answers("", line, '{"id": 2, "code": "x"}')[-2:]
    assert told["line"] == 2
    assert told["error"].startswith(f"line 2: {why}")
    assert (served["id"], served["outcome"]) == (2, "fails")


def test_what_has_not_begun_is_cancelled() -> None:
    judges = Judges(at_once=False)

    def lines() -> Iterator[str]:
        yield '{"id": 1, "code": "x"}'
        yield '{"id": 2, "code": "y"}'
        yield '{"cancel": 2}'
        judges.futures[0].set_result(VERDICT)

    found: list[str] = []
    answer_lines(lines(), found.append, judges)  # type: ignore[arg-type]
    assert [(json.loads(text)["id"], json.loads(text)["outcome"]) for text in found] == [
        (2, "cancelled"), (1, "fails"),
    ]  # fmt: skip


def test_a_caller_that_reads_no_more_ends_its_own_requests() -> None:
    judges = Judges(at_once=False)

    def lines() -> Iterator[str]:
        yield '{"id": 1, "code": "x"}'
        yield '{"id": 2, "code": "y"}'
        judges.futures[0].set_result(VERDICT)

    def write(_: str) -> None:
        raise BrokenPipeError

    answer_lines(lines(), write, judges)  # type: ignore[arg-type]
    assert judges.futures[1].cancelled()


def test_an_error_of_the_kit_is_an_answer_too() -> None:
    judges = Judges(at_once=False)

    def lines() -> Iterator[str]:
        yield '{"id": 1, "code": "x"}'
        judges.futures[0].set_exception(RuntimeError("the kit failed"))

    found: list[str] = []
    answer_lines(lines(), found.append, judges)  # type: ignore[arg-type]
    assert json.loads(found[0])["error"] == "the kit failed"


def test_a_line_without_an_end_is_read_in_part(tmp_path: Path) -> None:
    (tmp_path / "lines").write_bytes(b"x" * 16_500_000 + b"\n{}\n\xff\n")
    with (tmp_path / "lines").open("rb") as stream:
        assert [len(line) for line in lines_of(stream)] == [16_000_002, 3, 2]


def test_a_socket_serves_its_owner_alone_and_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # a socket's path is short
    ready, path = threading.Event(), Path("s")
    servers: list[Any] = []
    monkeypatch.setattr("conformkit.conformance.api.serving._Server.serve_forever", _kept(servers))
    thread = threading.Thread(target=listen, args=(path, Judges(), ready.set))
    thread.start()
    ready.wait()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    with socket.socket(socket.AF_UNIX) as caller:
        caller.connect("s")
        caller.sendall(b'{"id": 1, "code": "x"}\n')
        caller.shutdown(socket.SHUT_WR)
        assert json.loads(caller.makefile().read())["outcome"] == "fails"
    servers[0].shutdown()
    thread.join()
    assert os.listdir() == []  # noqa: PTH208 - names alone


def _kept(servers: list[Any]) -> Any:
    from socketserver import BaseServer

    plain = BaseServer.serve_forever

    def serve_forever(self: Any) -> None:
        servers.append(self)
        plain(self, poll_interval=0.01)

    return serve_forever
