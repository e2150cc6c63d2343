"""Grade a class: find the submissions, grade those without a grade, store each result at once, write the outputs.

Raises NothingToGrade, StoreUnusable, ExecutorUnusable: nothing was changed. StoreBroken, ClusterLost, NoIsolation:
finished grades are stored, and the same command continues from there.
"""

from __future__ import annotations

import contextlib
import os
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from conformkit.conformance.apps.grade.assess import Finished, GradingTask, ungraded
from conformkit.conformance.apps.grade.course import Course, course_of
from conformkit.conformance.apps.grade.executor import ClusterLost, ExecutorUnusable, Pool, WrongKit, cluster, local
from conformkit.conformance.apps.grade.harness import GradingError, NoIsolation, NoRoom, told
from conformkit.conformance.apps.grade.logs import log
from conformkit.conformance.apps.grade.policy import Policy
from conformkit.conformance.apps.grade.record import Grade, SubmissionOutcome
from conformkit.conformance.apps.grade.scoring import rescored
from conformkit.conformance.apps.grade.scratch import held_folder
from conformkit.conformance.apps.grade.store import FILE, RunKey, Store, StoreBroken, StoreUnusable, opened
from conformkit.conformance.apps.grade.submissions import Package, SubmissionList, SubmissionSource, find, pack
from conformkit.conformance.report.files import write
from conformkit.conformance.text import count
from conformkit.conformance.versions import kit_version

__all__ = ["GradeRequest", "GradingPlan", "GradingProgress", "Summary", "grade", "look", "planned"]

LOGS = "logs"
_SCRATCH = ".scratch"
_TRIES = 2
"""A submission whose harness died is tried again once: another one may have used up the memory."""


@dataclass(frozen=True, slots=True)
class GradeRequest:
    """What to grade, the policy, and the folder for results. `executor` is local or a scheduler's address."""

    submissions: Path
    policy: Policy
    out: Path
    workers: int = 1
    executor: str = "local"
    single: bool = False
    """The folder is one submission, not a folder of them."""
    again: tuple[str, ...] = ()
    """Names of submissions to judge again although they have verdicts."""


@dataclass(frozen=True, slots=True)
class GradingProgress:
    """The progress of a run; `last` is the newest grade, `running` the names in progress."""

    done: int
    total: int
    running: tuple[str, ...]
    last: Grade | None = None


@dataclass(frozen=True, slots=True)
class Summary:
    """The result of a run."""

    grades: tuple[Grade, ...]
    """The grades without their reports, which stay on disk."""
    fresh: int
    """Number of grades that this run added."""
    aside: tuple[str, ...] = ()
    """Files in the folder that are not submissions."""
    gone: tuple[str, ...] = ()
    """Submissions that were graded earlier and are no longer in the folder."""
    strangers: tuple[str, ...] = ()
    """Submissions that belong to nobody on the roster, or to more than one student."""

    @property
    def outcomes(self) -> Counter[str]:
        """Number of submissions with each outcome."""
        return Counter(grade.outcome.value for grade in self.grades)


def look(request: GradeRequest) -> SubmissionList:
    """Return what would be graded. Raises NothingToGrade, StoreUnusable."""
    search = find(request.submissions, single=request.single)
    inside = request.out.resolve()
    if request.submissions.is_dir() and inside.is_relative_to(request.submissions.resolve()):
        raise StoreUnusable(
            f"{request.out} is inside the folder of submissions and would count as one; choose another folder"
        )
    return search


@dataclass(frozen=True, slots=True)
class GradingPlan:
    """What a run will do: which submissions it judges; stored verdicts of the others are only counted."""

    judged: tuple[SubmissionSource, ...]
    counted: int

    def __str__(self) -> str:
        stored = f"{count(self.counted, 'submission')} with stored verdicts, only counted by this policy"
        fresh = f"{count(len(self.judged), 'submission')} to judge"
        return "; ".join([*([stored] if self.counted else []), *([fresh] if self.judged else [])])


def planned(request: GradeRequest) -> GradingPlan:
    """Return what a run would do, without changing anything. Raises NothingToGrade, StoreUnusable, StoreBroken."""
    search = look(request)
    if not (request.out / FILE).is_file():
        return GradingPlan(tuple(search.found), 0)
    with opened(request.out) as store:
        return _plan(request, search, store, RunKey(request.policy.evidence(), _seed(request, store)))


def _seed(request: GradeRequest, store: Store) -> int:
    return store.seed() if request.policy.seed is None else request.policy.seed


def _plan(request: GradeRequest, search: SubmissionList, store: Store, key: RunKey) -> GradingPlan:
    archive = request.policy.archive
    todo = tuple(
        f for f in search.found if f.name in request.again or not store.knows(pack(f, archive).submission, key)
    )
    return GradingPlan(todo, len(search.found) - len(todo))


def grade(
    request: GradeRequest, tell: Callable[[GradingProgress], None] = lambda _: None,
    announce: Callable[[GradingPlan], None] = lambda _: None,
) -> Summary:  # fmt: skip
    """Grade submissions without verdicts, and count the points of all; `announce` gets the plan before it begins.

    KeyboardInterrupt passes through; stored results stay.
    """
    search = look(request)
    course = course_of(request.policy.course)
    with opened(request.out) as store, _writable(request.out):
        seed = _seed(request, store)
        key = RunKey(request.policy.evidence(), seed)
        plan = _plan(request, search, store, key)
        announce(plan)
        store.begin(key)
        again = [pack(f, request.policy.archive).submission for f in plan.judged if f.name in request.again]
        store.forget(again, key)
        todo = [found for found in search.found if not store.has(pack(found, request.policy.archive).submission, key)]
        if todo:
            with _pool(request) as pool:
                _Run(request, store, key, seed, pool, len(search.found), tell).grade(todo)
        ids = [found.id for found in search.found]
        grades = store.grades(ids)
        for each in grades:
            counted = rescored(each, request.policy)
            if counted != each:
                store.rewrite(counted)
        strangers = _write_outputs(request, grades, course)
        light = tuple(replace(grade, report=None) for grade in grades)
        return Summary(light, len(todo), search.aside, tuple(store.others(ids)), strangers)


class _Run:
    """Keeps an executor busy and stores its results."""

    def __init__(
        self, request: GradeRequest, store: Store, key: RunKey, seed: int, pool: Pool, total: int,
        tell: Callable[[GradingProgress], None],
    ) -> None:  # fmt: skip
        self._request, self._store, self._key, self._seed, self._pool = request, store, key, seed, pool
        self._total, self._tell = total, tell
        self._tries: Counter[str] = Counter()
        self._answers = store.answers(key)
        self._working: dict[Future[Finished], SubmissionSource] = {}

    def grade(self, todo: Sequence[SubmissionSource]) -> None:
        """Grade these, in this order except for retries."""
        waiting = deque(todo)
        self._done = self._total - len(waiting)
        self._report()
        while waiting or self._working:
            while waiting and len(self._working) < 2 * self._pool.workers:
                self._start(waiting.popleft())
            finished = wait(self._working, timeout=1.0, return_when=FIRST_COMPLETED).done
            for future in finished:
                found = self._working.pop(future)
                if not self._settle(found, future):
                    waiting.append(found)

    def _start(self, found: SubmissionSource) -> None:
        task = self._task(pack(found, self._request.policy.archive))
        problem = task.package.problem
        if problem is not None:
            grade = ungraded(task, problem.outcome, str(problem), task.package.notes)
            self._keep(Finished(grade, log(grade)))
            return
        self._working[self._pool.submit(task)] = found
        self._report()

    def _task(self, package: Package) -> GradingTask:
        return GradingTask(package, self._request.policy, self._seed, kit_version(), dict(self._answers))

    def _settle(self, found: SubmissionSource, future: Future[Finished]) -> bool:
        """Store the result of a submission; return False if it will be tried again."""
        try:
            finished = future.result()
        except NoIsolation:
            raise
        except NoRoom as error:
            raise StoreBroken(f"{error}; TMPDIR names another folder") from None
        except WrongKit as error:
            raise ExecutorUnusable(f"{error}; install one version everywhere") from None
        except self._pool.lost as error:
            raise ClusterLost(f"{self._pool.name} no longer answers ({type(error).__name__})") from None
        except Exception as error:  # noqa: BLE001 - a cluster may raise anything for a lost machine
            return self._failed(found, error)
        self._keep(finished)
        return True

    def _failed(self, found: SubmissionSource, error: Exception) -> bool:
        self._tries[found.id] += 1
        if self._tries[found.id] < _TRIES:
            return False
        task = self._task(replace(pack(found, self._request.policy.archive), data=b""))
        message = str(error) if isinstance(error, GradingError) else told(error, self._request.policy)
        grade = ungraded(task, SubmissionOutcome.KIT_FAILED, message)
        self._keep(Finished(grade, log(grade)))
        return True

    def _keep(self, finished: Finished) -> None:
        self._answers |= finished.learned
        folder = self._request.out / LOGS
        folder.mkdir(exist_ok=True)
        write(folder / f"{finished.grade.submission.id}.log", finished.log)
        self._store.add(finished.grade, self._key, finished.learned)
        self._done += 1
        self._report(finished.grade)

    def _report(self, last: Grade | None = None) -> None:
        running = tuple(found.name for found in list(self._working.values())[: self._pool.workers])
        self._tell(GradingProgress(self._done, self._total, running, last))


# --- around it --------------------------------------------------------------------------------------------------------


@contextmanager
def _pool(request: GradeRequest) -> Iterator[Pool]:
    if request.executor != "local":
        with cluster(request.executor) as pool:
            yield pool
        return
    with _scratch(request.out) as folder, local(request.workers, folder) as pool:
        yield pool


@contextmanager
def _scratch(out: Path) -> Iterator[Path]:
    """A folder for unpacked files, known to `out` while it is there. The next run removes what killed ones left."""
    note = out / _SCRATCH
    with held_folder() as folder:
        try:
            write(note, f"{folder}\n")
            yield folder
        finally:
            with contextlib.suppress(OSError):
                note.unlink()


@contextmanager
def _writable(out: Path) -> Iterator[None]:
    """Name the folder that can't be written to, if logs or outputs fail."""
    try:
        yield
    except OSError as error:
        if error.filename is None and error.errno is None:
            raise
        what = error.strerror or os.strerror(error.errno or 0)
        raise StoreBroken(f"{error.filename or out} cannot be written: {what}") from error


def _write_outputs(request: GradeRequest, grades: Sequence[Grade], course: Course | None) -> tuple[str, ...]:
    from conformkit.conformance.apps.grade.outputs import write_all  # noqa: PLC0415 - templates, read when they are used

    return write_all(request.out, grades, request.policy, course)
