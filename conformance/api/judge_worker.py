"""A process that judges one code after another for a JudgePool."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from conformkit.conformance.api.candidate import Task, judged
from conformkit.conformance.apps.grade.harness import serve
from conformkit.conformance.driver.errors import IsolationUnavailable
from conformkit.conformance.driver.spawn.shared import LentFactory
from conformkit.conformance.driver.spawn.warm import WorkerFactory, worker_factory

__all__ = ["main"]


class _Warm:
    """The process that codes are judged in forks of: it has imported torch, and computed nothing."""

    def __init__(self) -> None:
        self._made: WorkerFactory | None = None

    def __call__(self) -> WorkerFactory:
        """Return it, lent; another one if the last was lost."""
        if self._made is None or not self._made.alive:
            self._made = worker_factory(1, torch=True)
        return LentFactory(self._made)


def main(arguments: list[str]) -> None:
    """Judge codes that are sent until the parent is gone. Arguments: descriptor, folder."""
    warm = _Warm()
    serve(arguments, lambda task, scratch: _answer(task, scratch, warm))


def _answer(task: Task, scratch: Path, warm: _Warm) -> tuple[str, Any]:
    try:
        return "judged", judged(task, scratch, warm)
    except IsolationUnavailable as error:
        return "raised", error
    except Exception as error:  # noqa: BLE001 - the caller gets it
        return "raised", RuntimeError(f"the kit failed while judging {task.name}: {type(error).__name__}: {error}")


if __name__ == "__main__":
    main(sys.argv[1:])
