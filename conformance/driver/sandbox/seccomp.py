"""System calls that a sandbox refuses, as the program that bubblewrap installs.

libseccomp, which is part of every distribution that has systemd or apt, knows their numbers and writes the program.
"""

from __future__ import annotations

import ctypes
import errno
import os
from typing import Any

__all__ = ["program"]

_ALLOW = 0x7FFF0000
_ERRNO = 0x00050000
_MASKED_EQUAL = 7
_LOW = 0xFFFFFFFF
_NEW_USER_NAMESPACE = 0x10000000
_FAKE_INPUT = 0x5412
_FAMILIES = range(64)
_ALLOWED_FAMILIES = frozenset({1, 2, 10, 16})
"""unix, inet, inet6, netlink: those that a network namespace contains. Others, such as vsock, reach beyond it."""

_REFUSED = {
    errno.EPERM: (
        # other processes' memory and descriptors
        "ptrace process_vm_readv process_vm_writev process_madvise pidfd_getfd kcmp",
        # mounts and other namespaces
        "mount umount umount2 pivot_root chroot move_mount open_tree open_tree_attr fsopen fsconfig fsmount fspick",
        "mount_setattr unshare setns name_to_handle_at open_by_handle_at fanotify_init quotactl quotactl_fd",
        # parts of the kernel with most of its past vulnerabilities, which no model needs
        "bpf perf_event_open userfaultfd keyctl add_key request_key lookup_dcookie modify_ldt vmsplice",
        "remap_file_pages",
        # memory that no process limit counts
        "memfd_create memfd_secret shmget msgget semget mq_open",
        # the machine
        "init_module finit_module delete_module kexec_load kexec_file_load reboot swapon swapoff acct syslog iopl",
        "ioperm settimeofday clock_settime clock_adjtime adjtimex sethostname setdomainname personality vhangup",
        "nfsservctl _sysctl sysfs ustat uselib",
    ),
    # as if the kernel lacked them: their arguments cannot be checked, and programs have fallbacks
    errno.ENOSYS: ("clone3 io_uring_setup io_uring_enter io_uring_register",),
}


class _Comparison(ctypes.Structure):
    _fields_ = (
        ("argument", ctypes.c_uint),
        ("operation", ctypes.c_int),
        ("mask", ctypes.c_uint64),
        ("value", ctypes.c_uint64),
    )


def program() -> bytes | None:
    """Return the filter; None if libseccomp is missing."""
    try:
        library = _library()
    except (OSError, AttributeError):
        return None
    context = library.seccomp_init(_ALLOW)
    if not context:
        return None
    try:
        _add_rules(library, context)
        return _exported(library, context)
    finally:
        library.seccomp_release(context)


def _library() -> Any:
    library = ctypes.CDLL("libseccomp.so.2")
    library.seccomp_init.restype = ctypes.c_void_p
    library.seccomp_init.argtypes = [ctypes.c_uint32]
    library.seccomp_release.argtypes = [ctypes.c_void_p]
    library.seccomp_syscall_resolve_name.argtypes = [ctypes.c_char_p]
    library.seccomp_export_bpf.argtypes = [ctypes.c_void_p, ctypes.c_int]
    library.seccomp_rule_add_array.argtypes = [
        ctypes.c_void_p, ctypes.c_uint32, ctypes.c_int, ctypes.c_uint, ctypes.POINTER(_Comparison),
    ]  # fmt: skip
    return library


def _add_rules(library: Any, context: Any) -> None:
    for code, lines in _REFUSED.items():
        for name in " ".join(lines).split():
            _refuse(library, context, name, code)
    _refuse(library, context, "clone", errno.EPERM, _Comparison(0, _MASKED_EQUAL, *[_NEW_USER_NAMESPACE] * 2))
    _refuse(library, context, "ioctl", errno.EPERM, _Comparison(1, _MASKED_EQUAL, _LOW, _FAKE_INPUT))
    for family in _FAMILIES:
        if family not in _ALLOWED_FAMILIES:
            compared = _Comparison(0, _MASKED_EQUAL, _LOW, family)
            _refuse(library, context, "socket", errno.EAFNOSUPPORT, compared)


def _refuse(library: Any, context: Any, name: str, code: int, compared: _Comparison | None = None) -> None:
    """Refuse a call, or only with such an argument. A call that this machine lacks needs no rule."""
    number = library.seccomp_syscall_resolve_name(name.encode())
    if number == -1:
        return
    comparisons = (_Comparison * 1)(compared) if compared is not None else None
    failed = library.seccomp_rule_add_array(context, _ERRNO | code, number, int(compared is not None), comparisons)
    if failed and -failed != errno.EDOM:  # EDOM: a call of another architecture
        raise OSError(-failed, f"libseccomp rejects the rule for {name}: {os.strerror(-failed)}")


def _exported(library: Any, context: Any) -> bytes:
    read, write = os.pipe()
    with os.fdopen(read, "rb") as stream:
        try:
            failed = library.seccomp_export_bpf(context, write)
        finally:
            os.close(write)
        if failed:
            raise OSError(-failed, f"libseccomp cannot write the filter: {os.strerror(-failed)}")
        return stream.read()
