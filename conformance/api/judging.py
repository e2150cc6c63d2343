"""Judge code from a program: a text, a file or a package; one, or many side by side.

judge(code)                      one verdict
with JudgePool(workers=2) as judges: many, in processes that keep torch imported
    for found in judges.map(codes): …
"""

from __future__ import annotations

import asyncio
import tempfile
import threading
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from contextlib import ExitStack
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Self, Unpack

from conformkit.conformance.api import judge_worker
from conformkit.conformance.api.candidate import Candidate, Task, asked, judged
from conformkit.conformance.api.judgment import Judgment, refused
from conformkit.conformance.apps.grade.harness import EXTRA_SECONDS, Harness, HarnessDied
from conformkit.conformance.engine.request import RunOptions, drawn_seed
from conformkit.conformance.report.score import RunOutcome

__all__ = ["JudgePool", "judge"]

_KEPT = 10_000
"""Verdicts that a JudgePool remembers, so that the same text is not judged twice."""
_AHEAD = 2
"""Codes that wait for each worker, so that it need not wait for them; no more are taken from an iterator."""
_UNLIMITED = 24 * 3600.0


def judge(code: Candidate, **options: Unpack[RunOptions]) -> Judgment:
    """Judge code in a sandbox, and return the verdict. Options are those of `RunRequest`.

    By default isolation is `sandbox`, the limit 600 seconds, and the seed is drawn, so that nobody knows the inputs
    beforehand; `stop=True` ends at the first failure. Code that cannot be loaded gets a verdict that says why.

    Raises: IsolationUnavailable where there is no sandbox, ValueError or TypeError for a wrong option.
    """
    task = Task(code, asked(options))
    with tempfile.TemporaryDirectory(prefix="conform-judge-") as scratch:
        return judged(task, Path(scratch), lambda: None)


class JudgePool:
    """Judges codes side by side, each in processes of its own; use it as a context.

    A worker is a process that keeps torch imported: with isolation `process`, code is judged in forks of it. A worker
    that is killed costs the code that it was judging one repetition, and no finished verdict. Codes of the same text
    are judged once if the seed is given.
    """

    def __init__(self, workers: int = 1, **options: Unpack[RunOptions]) -> None:
        if workers < 1:
            raise ValueError(f"workers must be at least 1, not {workers}")
        asked(options)
        self._given = options
        self._workers = workers
        self._closing = ExitStack()
        self._pool: ThreadPoolExecutor | None = None
        self._own = threading.local()
        self._harnesses: list[Harness] = []
        self._known: OrderedDict[str, Judgment] = OrderedDict()
        self._lock = threading.Lock()

    def __enter__(self) -> Self:
        self._scratch = Path(self._closing.enter_context(tempfile.TemporaryDirectory(prefix="conform-judge-")))
        self._pool = ThreadPoolExecutor(self._workers, thread_name_prefix="judge")
        return self

    def __exit__(self, *_: object) -> None:
        """Cancel what has not begun, and end the workers."""
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)
            for harness in self._harnesses:
                harness.stop()
            self._pool.shutdown(wait=True)
            self._pool = None
            for harness in self._harnesses:
                harness.close()
        self._closing.close()

    def submit(self, code: Candidate, **options: Unpack[RunOptions]) -> Future[Judgment]:
        """Return a future of the verdict; `cancel()` takes back what has not begun. `options` hold for this code alone.

        Raises TypeError, ValueError for a wrong option.
        """
        if self._pool is None:
            raise RuntimeError("a JudgePool is open inside `with JudgePool() as judges:` only")
        given: RunOptions = {**self._given, **options}
        drawn = "seed" not in given
        task = Task(code, {**asked(given), **({"seed": drawn_seed()} if drawn else {})})
        key = "" if drawn else task.key()
        with self._lock:
            known = self._known.get(key)
        if known is not None:
            found: Future[Judgment] = Future()
            found.set_result(replace(known, cached=True, seconds=0.0))
            return found
        return self._pool.submit(self._answered, task, key)

    def judge(self, code: Candidate, **options: Unpack[RunOptions]) -> Judgment:
        """Return the verdict on one code."""
        return self.submit(code, **options).result()

    async def judged(self, code: Candidate, **options: Unpack[RunOptions]) -> Judgment:
        """Return the verdict on one code without blocking an event loop."""
        return await asyncio.wrap_future(self.submit(code, **options))

    def map(self, codes: Iterable[Candidate], *, in_order: bool = True) -> Iterator[Judgment]:
        """Yield the verdict on each code, in the order of the codes or as they come.

        Codes are taken from an iterator as workers become free.
        """
        waiting, rest = list[Future[Judgment]](), iter(codes)
        for code in islice(rest, self._workers * _AHEAD):
            waiting.append(self.submit(code))
        try:
            while waiting:
                done = waiting[0] if in_order else next(as_completed(waiting))
                found = done.result()
                waiting.remove(done)
                waiting.extend(self.submit(code) for code in islice(rest, 1))
                yield found
        finally:
            for future in waiting:
                future.cancel()

    def _answered(self, task: Task, key: str) -> Judgment:
        found = self._asked_twice(task)
        if key and found.outcome is not RunOutcome.INTERRUPTED:
            with self._lock:
                self._known[key] = found
                if len(self._known) > _KEPT:
                    self._known.popitem(last=False)
        return found

    def _asked_twice(self, task: Task) -> Judgment:
        """Ask this thread's worker; once more if it died, which may be none of the code's doing."""
        try:
            return self._ask(task)
        except HarnessDied:
            try:
                return self._ask(task)
            except HarnessDied as died:
                return refused(task.name, f"the process that judged it ended twice: {died}")

    def _ask(self, task: Task) -> Judgment:
        if not hasattr(self._own, "harness"):
            self._own.harness = Harness(self._scratch, judge_worker.__name__)
            with self._lock:
                self._harnesses.append(self._own.harness)
        seconds = task.options["seconds"]
        kind, answer = self._own.harness.ask(task, _UNLIMITED if seconds is None else 2 * seconds + EXTRA_SECONDS)
        if kind == "raised":
            raise answer
        found: Judgment = answer
        return found
