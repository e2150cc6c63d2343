"""Clauses judged by several workers at once: one thread, worker and judge each.

A document stays with one worker. Of documents whose clauses train a model, the clauses about one lesson do.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, closing, contextmanager
from queue import Empty, SimpleQueue

from conformkit.conformance.engine.implementation import Implementation
from conformkit.conformance.engine.judge import Judge, Verdicts
from conformkit.conformance.engine.portions import Portions
from conformkit.conformance.engine.results import Result
from conformkit.conformance.suite.registry import tests
from conformkit.spec.clauses import Clause

__all__ = ["judge_in_parallel"]

_TURN = 0.0005
"""Seconds that a thread may keep Python while another one waits for it."""
Open = Callable[[], AbstractContextManager[Implementation]]


def judge_in_parallel(
    clauses: list[Clause], first: Implementation, another: Open,
    *, processes: int, seed: int, profile: str, tell: Callable[[Result], None], known: Iterable[Result] = (),
    in_order: bool = False,
) -> None:  # fmt: skip
    """Judge with `processes` workers, the first of which exists already; report each result from this thread.

    A needed clause is judged once, by the worker that needs it first; `known` ones are not judged at all. With
    `in_order`, clauses are taken one by one as they are given, and not by document.
    """
    verdicts = Verdicts.of(known)
    portions = Portions(clauses, tests(profile), verdicts, in_order=in_order)
    processes = max(1, min(processes, portions.count))  # more workers would have nothing to do
    done: SimpleQueue[Result] = SimpleQueue()

    def work(implementation: Implementation) -> None:
        judge = Judge(implementation, tests(profile), seed=seed, verdicts=verdicts)
        with closing(iter(portions)) as turns:
            for clause in turns:
                done.put(judge.result(clause.id))

    def open_and_work() -> None:
        with another() as implementation:
            work(implementation)

    with _eager_threads(), ThreadPoolExecutor(processes) as pool:
        futures: list[Future[None]] = [pool.submit(work, first)]
        futures += [pool.submit(open_and_work) for _ in range(processes - 1)]
        try:
            while not _all_done(futures) or not done.empty():
                _tell_next(done, tell)
        finally:
            portions.stop()


@contextmanager
def _eager_threads() -> Iterator[None]:
    """Let a thread whose worker has answered go on soon: by default another one keeps Python for ten times as long."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(_TURN)
    try:
        yield
    finally:
        sys.setswitchinterval(usual)


def _all_done(futures: list[Future[None]]) -> bool:
    finished, pending = wait(futures, timeout=0.0, return_when=FIRST_EXCEPTION)
    failed = next((future for future in finished if future.exception() is not None), None)
    if failed is not None:
        failed.result()
    return not pending


def _tell_next(done: SimpleQueue[Result], tell: Callable[[Result], None]) -> None:
    try:
        tell(done.get(timeout=0.05))
    except Empty:
        return
