"""The process in which an implementation runs: requests and replies share one descriptor."""

from __future__ import annotations

import contextlib
import faulthandler
import importlib
import mmap
import os
import signal
import socket
import sys
import traceback
import types
from pathlib import Path
from typing import Any, TextIO

from conformkit.conformance.driver.errors import ProtocolError
from conformkit.conformance.driver.wire import frames as wire
from conformkit.conformance.driver.worker.late_torch import import_torch
from conformkit.conformance.driver.worker.operations import Operations

__all__ = ["main", "prepare_threads", "run"]

_DIE_WITH_PARENT = 1
_OUR_FAULT = 70
_ROOM = 32 << 20


def run(wire_fd: int, output_fd: int, memory: int | None) -> None:
    """Become a worker on these descriptors, and never return."""
    code = _OUR_FAULT
    try:
        _detach(output_fd)
        if memory is not None:
            _limit_memory(memory)
        stdout = _new_streams()
        connection = socket.socket(fileno=wire_fd)
        _serve(connection, stdout)
    except (EOFError, ConnectionError):
        code = 0  # the harness has gone
    except BaseException:  # noqa: BLE001 - it is told, and ends the process
        traceback.print_exc()
    finally:
        os._exit(code)  # no exit handlers of the implementation


def main(arguments: list[str]) -> None:
    """Run a worker that was spawned, not forked. Arguments: descriptors, threads, memory (0: any), torch (0 or 1)."""
    wire_fd, output_fd, threads, memory, torch = map(int, arguments)
    prepare_threads(threads, torch=bool(torch))
    run(wire_fd, output_fd, memory or None)


def prepare_threads(threads: int, *, torch: bool) -> None:
    """Import what workers need: NumPy at least, torch if asked to, held to `threads`.

    Where torch cannot be imported, code that needs it says so when it is loaded, and other code is judged without it.
    """
    importlib.import_module("conformkit.conformance.driver.worker.frameworks.numpy")
    with contextlib.suppress(ImportError, OSError):
        if torch:
            import_torch()
            from conformkit.conformance.driver.worker.frameworks.torch import prepare  # noqa: PLC0415

            prepare(threads)


def _serve(connection: socket.socket, stdout: TextIO) -> None:
    """Say hello once the limits are known to leave room for any work; then answer requests until the end."""
    mmap.mmap(-1, _ROOM).close()
    _send(connection, {"seq": 0, "ok": True}, {})
    operations = Operations()
    while True:
        header, arrays = _receive(connection)
        reply, out = operations.answer(header, arrays)
        with contextlib.suppress(BaseException):  # the implementation may have replaced it
            sys.stdout.flush()
            stdout.flush()
        _send(connection, {"seq": header["seq"], **reply}, out)


def _receive(connection: socket.socket) -> tuple[dict[str, Any], dict[str, Any]]:
    head, payload = wire.lengths(_read(connection, wire.LENGTHS))
    return wire.decode(_read(connection, head), _read(connection, payload))


def _read(connection: socket.socket, size: int) -> memoryview:
    buffer, done = wire.room(size), 0
    while done < size:
        count = connection.recv_into(buffer[done:])
        if not count:
            raise EOFError
        done += count
    return buffer


def _send(connection: socket.socket, header: dict[str, Any], arrays: dict[str, Any]) -> None:
    try:
        frame = wire.encode(header, arrays)
    except MemoryError:
        frame = wire.encode(_too_big(header, "memory", "MemoryError", "no memory for the reply"), {})
    except ProtocolError as error:
        frame = wire.encode(_too_big(header, "output", "output", f"the reply is too big: {error}"), {})
    connection.sendall(frame)


def _too_big(header: dict[str, Any], kind: str, name: str, message: str) -> dict[str, Any]:
    error = {"kind": kind, "type": name, "base": "", "message": message, "where": ""}
    return {"seq": header["seq"], "ok": False, "error": error}


def _detach(output_fd: int) -> None:
    """Leave the session and process group of the harness, and redirect the standard streams."""
    with contextlib.suppress(OSError):
        os.setsid()
    for name in ("SIGINT", "SIGTERM", "SIGCHLD"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_DFL)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.dup2(output_fd, 1)
    os.dup2(output_fd, 2)
    for descriptor in {null, output_fd} - {0, 1, 2}:
        os.close(descriptor)
    _die_with_parent()


def _new_streams() -> TextIO:
    """Give Python fresh standard streams, a blank `__main__`, and a trace for segmentation faults."""
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
    stdout, stderr = _stream(1), _stream(2)
    sys.stdout = sys.__stdout__ = stdout  # type: ignore[misc, assignment]
    sys.stderr = sys.__stderr__ = stderr  # type: ignore[misc, assignment]
    faulthandler.enable(2)
    sys.argv = [""]
    sys.modules["__main__"] = types.ModuleType("__main__")
    return stdout


def _stream(descriptor: int) -> TextIO:
    return open(descriptor, "w", encoding="utf-8", errors="backslashreplace", buffering=1, closefd=False)


def _limit_memory(extra: int) -> None:
    """Allow `extra` bytes of address space beyond what is in use now, and no core files."""
    try:
        import resource  # noqa: PLC0415
    except ImportError:
        return
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        used = int(Path("/proc/self/statm").read_bytes().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + extra, used + extra))


def _die_with_parent() -> None:
    """On Linux, ask for SIGKILL when the process that started this one dies."""
    if not sys.platform.startswith("linux"):
        return
    import ctypes  # noqa: PLC0415

    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_DIE_WITH_PARENT, signal.SIGKILL)


if __name__ == "__main__":
    main(sys.argv[1:])
