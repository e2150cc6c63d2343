"""`conform grade`: a folder of submissions, one policy, a folder of results."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from conformkit.cli.exits import Exit, fail, one_of, wrong

if TYPE_CHECKING:
    from conformkit.conformance.apps.grade.grade import GradeRequest, GradingPlan, Summary
    from conformkit.conformance.apps.grade.policy import Policy
    from conformkit.conformance.apps.grade.submissions import SubmissionList
    from conformkit.conformance.report.terminal import Color

__all__ = ["grade"]

_LOCAL = "local"
_CLUSTER = ("dask://", "tcp://", "tls://")
_LISTED = 10


def _print_example(wanted: bool) -> None:
    if wanted:
        from conformkit.conformance.apps.grade.policy_file import example

        print(example(), end="")
        raise typer.Exit


def grade(
    submissions: Annotated[
        Path, typer.Argument(metavar="SUBMISSIONS", help="A folder of folders, archives, .py files, git checkouts.")
    ],
    policy: Annotated[Path, typer.Option(metavar="PATH", help="The policy, a file, or strict, course or encouraging.")],
    out: Annotated[Path, typer.Option(metavar="DIR", help="Folder for the results; the same command resumes from it.")],
    workers: Annotated[
        int | None, typer.Option("-n", metavar="N", min=1, help="Grade N at once; by default one per core.")
    ] = None,
    executor: Annotated[
        str, typer.Option(metavar="local|dask://HOST:PORT", help="This machine, or the scheduler of a Dask cluster.")
    ] = _LOCAL,
    isolation: Annotated[
        str,
        typer.Option(metavar="sandbox|process", help="Instead of the policy's; process is for trusted code."),
    ] = "",
    single: Annotated[
        bool, typer.Option("--single", help="SUBMISSIONS is one submission, not a folder of them.")
    ] = False,
    again: Annotated[
        list[str] | None,
        typer.Option("--again", metavar="NAME", help="Judge this submission again; repeat the option for others."),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print what would be graded and how, then exit.")] = False,
    verbose: Annotated[bool, typer.Option("-v", "--verbose", help="List every submission with its points.")] = False,
    quiet: Annotated[bool, typer.Option("-q", "--quiet", help="Print the last line only.")] = False,
    color: Annotated[
        str, typer.Option(metavar="auto|always|never", help="auto respects NO_COLOR, FORCE_COLOR.")
    ] = "auto",
    example_policy: Annotated[
        bool,
        typer.Option("--example-policy", callback=_print_example, is_eager=True, help="Print a policy, then exit."),
    ] = False,
) -> None:
    """Grade a class: judge every submission in a sandbox, and give points according to a policy.

    Exit code 0 if all are graded, whatever their points; 5 if the kit failed on one; conform --help lists the others.


    Examples:
      conform grade submissions --policy course --out grades
      conform grade submissions --policy policy.toml --out grades --dry-run
    """
    del example_policy
    if verbose and quiet:
        wrong("--quiet", "contradicts --verbose; choose one.")
    shade = cast("Color", one_of("--color", color, ("auto", "always", "never")))
    if isolation:
        isolation = one_of("--isolation", isolation, ("sandbox", "process"))
    from conformkit.conformance.apps.grade.grade import GradeRequest

    request = GradeRequest(
        submissions, _policy(policy, isolation, alone=single), out, workers or _cores(), _executor(executor),
        single=single, again=tuple(again or ()),
    )  # fmt: skip
    _check_names(request)
    with _explained():
        if dry_run:
            _show_plan(request)
            raise typer.Exit
        summary = _grade(request, shade, quiet=quiet)
    _show(summary, request, shade, verbose=verbose, quiet=quiet)
    raise typer.Exit(Exit.KIT_FAILED if summary.outcomes["kit failed"] else Exit.CONFORMS)


def _check_names(request: GradeRequest) -> None:
    """Exit with code 2 if a submission to judge again is not there."""
    if not request.again:
        return
    from difflib import get_close_matches

    from conformkit.conformance.apps.grade.grade import look

    with _explained():
        names = [found.name for found in look(request).found]
    for name in request.again:
        if name not in names:
            near = get_close_matches(name, names, n=1)
            wrong("--again", f"there is no submission {name!r}{f'; nearest: {near[0]}' if near else ''}.")


def _cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _policy(path: Path, isolation: str, *, alone: bool) -> Policy:
    """Read the policy; exit with code 2 if it can't be used."""
    from dataclasses import replace

    from conformkit.conformance.apps.grade.policy_file import READY, read_policy, ready
    from conformkit.conformance.binding.toml_nodes import ConfigError

    if not path.exists():
        if str(path) in READY:
            found = ready(str(path))
            return replace(found, isolation=isolation) if isolation else found
        wrong("--policy", f"there is no file {path}; name it, or one of {', '.join(READY)}, which need no file.")
    try:
        found = read_policy(path, alone=alone)
    except ConfigError as error:
        fail(Exit.USAGE, f"the policy cannot be used: {error}")
    return replace(found, isolation=isolation) if isolation else found


def _executor(text: str) -> str:
    """Return `local`, or the address that a Dask client takes."""
    if text.lower() == _LOCAL:
        return _LOCAL
    if not text.startswith(_CLUSTER) or ":" not in text.partition("://")[2]:
        wrong("--executor", f"{text!r} is neither local nor dask://HOST:PORT.")
    return text.replace("dask://", "tcp://", 1)


@contextlib.contextmanager
def _explained() -> Iterator[None]:
    """Turn an exception that ends a run into a sentence and an exit code."""
    from conformkit.conformance.apps.grade.course import CourseError
    from conformkit.conformance.apps.grade.executor import ClusterLost, ExecutorUnusable
    from conformkit.conformance.apps.grade.harness import NoIsolation
    from conformkit.conformance.apps.grade.store import StoreBroken, StoreDamaged, StoreUnusable
    from conformkit.conformance.apps.grade.submissions import NothingToGrade
    from conformkit.conformance.report.stored import NotAReport

    again = "finished grades are stored; run the same command to continue"
    try:
        yield
    except CourseError as error:
        wrong("--policy", f"{error}.")
    except NothingToGrade as error:
        wrong("SUBMISSIONS", f"{error}.")
    except StoreUnusable as error:
        wrong("--out", f"{error}.")
    except ExecutorUnusable as error:
        wrong("--executor", f"{error}.")
    except NoIsolation as error:
        fail(Exit.NO_ISOLATION, error.problem, *error.advice)
    except (StoreDamaged, NotAReport) as error:
        fail(Exit.KIT_FAILED, f"the run ended early: {error}")
    except (StoreBroken, ClusterLost) as error:
        fail(Exit.KIT_FAILED, f"the run ended early: {error}", again)
    except KeyboardInterrupt:
        fail(Exit.INTERRUPTED, f"stopped; {again}")


def _grade(request: GradeRequest, color: Color, *, quiet: bool) -> Summary:
    from conformkit.conformance.apps.grade.grade import grade as grade_all
    from conformkit.conformance.apps.grade.progress import watched
    from conformkit.conformance.report import terminal

    page = terminal.console(sys.stderr, color)

    def announce(plan: GradingPlan) -> None:
        if not quiet and plan.counted:
            terminal.say(page, str(plan))

    with watched(page, bar=sys.stderr.isatty(), quiet=quiet) as tell:
        return grade_all(request, tell, announce)


def _show_plan(request: GradeRequest) -> None:
    from conformkit.conformance.apps.grade.course import course_of, owner_of
    from conformkit.conformance.apps.grade.grade import look, planned
    from conformkit.conformance.text import count, number, one_line

    search: SubmissionList = look(request)
    course = course_of(request.policy.course)
    for found in search.found:
        print(f"{found.kind:8} {one_line(found.source)}" + ("" if found.id == found.name else f" as {found.id}"))
    if search.aside:
        print(f"ignored: {', '.join(map(one_line, search.aside))}")
    policy = request.policy
    for group in policy.groups:
        what = f"{count(len(group.clauses), 'clause')}: {one_line(group.title)} ({group.credit})"
        print(f"{number(group.points):>8} points for {what}")
    if course is not None:
        owners = {found.name: owner_of(found.name, course.students) for found in search.found}
        without = len({student.id for student in course.students} - {owner.id for owner in owners.values() if owner})
        print(f"{count(len(course.students), 'student')} on the roster, {without} without a submission")
        if strangers := [name for name, owner in owners.items() if owner is None]:
            print(f"not on the roster: {', '.join(one_line(name, 60) for name in strangers)}")
    seed = "hidden" if policy.seed is None else policy.seed
    print(planned(request))
    print(f"{len(search.found)} submissions, isolation {policy.isolation}, seed {seed}, hints {policy.hints}")


def _show(summary: Summary, request: GradeRequest, color: Color, *, verbose: bool, quiet: bool) -> None:
    from conformkit.conformance.apps.grade.summary import write_summary
    from conformkit.conformance.report import terminal

    page = terminal.console(sys.stdout, color)
    with contextlib.suppress(BrokenPipeError):
        write_summary(summary, request, page, verbose=verbose, quiet=quiet)
