import contextlib
import ctypes
import os
import platform
import socket
from pathlib import Path

from .wrong import scaled_dot_product_attention, tell

LIBC = ctypes.CDLL(None, use_errno=True)
NAMED = {
    "ptrace": (101, 117, (16, 1, 0, 0)),
    "unshare": (272, 97, (0x10000000,)),
    "mount": (165, 40, (0, b"/tmp", b"tmpfs", 0, 0)),
    "setns": (308, 268, (0, 0)),
    "keyctl": (250, 219, (0, -3, 1)),
    "add_key": (248, 217, (b"user", b"x", b"y", 1, -3)),
    "bpf": (321, 280, (0, 0, 0)),
    "perf_event_open": (298, 241, (0, 0, -1, -1, 0)),
    "io_uring_setup": (425, 425, (1, 0)),
    "userfaultfd": (323, 282, (1,)),
    "memfd_create": (319, 279, (b"x", 0)),
    "open_by_handle_at": (304, 265, (-100, 0, 0)),
    "pidfd_getfd": (438, 438, (0, 0, 0)),
    "process_vm_readv": (310, 270, (1, 0, 0, 0, 0, 0)),
    "fsopen": (430, 430, (b"tmpfs", 0)),
}
"""Numbers on x86-64 and on arm64. With these arguments none changes anything, were it allowed."""
REFUSED = {1, 38}
"""Not permitted; no such call."""
COLUMN = {"x86_64": 0, "aarch64": 1}.get(platform.machine())
ALLOWED_BY_THE_KERNEL = {"pidfd_getfd", "process_vm_readv", "setns", "ptrace"}

FILTERED = "Seccomp:\t2" in Path("/proc/self/status").read_text()
"""Without libseccomp there is no filter, and the report says so: then the kernel alone decides what is allowed."""

if COLUMN is not None and FILTERED:
    for name, (*numbers, arguments) in NAMED.items():
        ctypes.set_errno(0)
        done = LIBC.syscall(numbers[COLUMN], *arguments)
        if done >= 0 or (ctypes.get_errno() not in REFUSED and name not in ALLOWED_BY_THE_KERNEL):
            tell("SUCCEEDED", name, done, ctypes.get_errno())
for family, kind in (
    (17, socket.SOCK_RAW),
    (38, socket.SOCK_SEQPACKET),
    (40, socket.SOCK_STREAM),
    (44, socket.SOCK_RAW),
):
    with contextlib.suppress(OSError):
        socket.socket(family, kind).close()
        tell("SUCCEEDED", "socket of family", family)
with contextlib.suppress(OSError):
    socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP).close()
    tell("SUCCEEDED", "raw socket")
for path in ("/proc/kcore", "/proc/kmsg", "/dev/mem", "/dev/kmsg", "/proc/1/mem", "/proc/1/root/etc/shadow"):
    with contextlib.suppress(OSError):
        os.close(os.open(path, os.O_RDONLY))
        tell("SUCCEEDED", path)
