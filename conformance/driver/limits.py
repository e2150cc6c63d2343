"""What a worker may use."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Limits"]


@dataclass(frozen=True, slots=True)
class Limits:
    """What a worker may use. Memory counts from what the warm process holds; output counts since it was last read.

    `processes` counts all that a worker started, with their threads where the system counts those. `file_bytes`
    bounds one file and `tmp_bytes` all files together: they hold in a sandbox only.
    """

    call_seconds: float = 20.0
    load_seconds: float = 120.0
    memory_bytes: int = 4 << 30
    output_bytes: int = 8 << 20
    threads: int = 1
    processes: int = 256
    file_bytes: int = 1 << 30
    tmp_bytes: int = 1 << 30
