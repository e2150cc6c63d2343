"""`conform repro`: the failure of one clause as a script that does not need the kit."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from conformkit.cli.completion import clause_ids
from conformkit.cli.exits import Exit, fail, one_of, wrong
from conformkit.cli.options import FORMATS, ConfigPath, Dtype, Impl, Isolation, check_named
from conformkit.cli.progress import spinner
from conformkit.spec.clauses import UnknownClauseError, clause
from conformkit.spec.profiles import named_profile

if TYPE_CHECKING:
    from conformkit.conformance.apps.repro.reproduce import Reproduction

__all__ = ["repro"]


def repro(
    clause_id: Annotated[
        str, typer.Argument(metavar="CLAUSE", autocompletion=clause_ids, help="The id of a clause that fails.")
    ],
    impl: Impl,
    out: Annotated[
        Path | None,
        typer.Option(metavar="PATH", help="The script to write; by default repro_sdpa_scale.py for SDPA-SCALE."),
    ] = None,
    seed: Annotated[int, typer.Option(metavar="N", min=0, help="The seed of the run in which it failed.")] = 0,
    dtype: Dtype = "",
    isolation: Isolation = "process",
    config: ConfigPath = None,
    shrink: Annotated[
        bool, typer.Option("--shrink/--no-shrink", help="Look for smaller inputs that show the failure.")
    ] = True,
    force: Annotated[bool, typer.Option("--force", help="Overwrite existing files.")] = False,
) -> None:
    """Write a script that shows why a clause fails: your code, one call, its output, what is wanted.

    Exit code 0 if the clause holds or does not apply to this code; 1 if it fails, or is about something that is not
    implemented. Nothing is written unless it fails.


    Examples:
      conform repro SDPA-SCALE --impl mypkg
      conform repro MHA-ORACLE --impl mypkg --seed 7
    """
    check_named(impl)
    name = _known(clause_id)
    path = out or Path(f"repro_{name.lower().replace('-', '_')}.py")
    how = one_of("--isolation", isolation, ("process", "sandbox", "none"))
    form = one_of("--dtype", dtype, FORMATS) if dtype else ""
    _check_free(path, force=force)
    words = ["conform", "repro", name, "--impl", impl, *(["--seed", str(seed)] if seed else [])]
    words += ["--dtype", form] if form else []
    words += [*(["--config", str(config)] if config else []), *([] if shrink else ["--no-shrink"])]
    from conformkit.cli.failures import explained
    from conformkit.conformance.apps.repro.reproduce import reproduce
    from conformkit.conformance.engine.request import RunRequest

    profile = named_profile(clause(name).profile).parts_from
    request = RunRequest(impl, profile=profile, seed=seed, isolation=how, config=config, dtype=form, discover=True)
    with explained(impl), spinner(f"judging {name}, and looking for smaller inputs"):
        found = reproduce(request, name, path.parent.resolve(), f"Written by: {shlex.join(words)}", shrink=shrink)
    _tell(found, path)


def _known(clause_id: str) -> str:
    try:
        return clause(clause_id).id
    except UnknownClauseError as error:
        wrong("CLAUSE", f"{error}.")


def _beside(path: Path) -> Path:
    return path.with_suffix(".npz")


def _check_free(path: Path, *, force: bool) -> None:
    """Exit with the code for wrong usage, before anything is judged, if the script cannot be written."""
    from conformkit.conformance.report.files import obstacle

    option = "--out"
    if path.suffix != ".py":
        wrong(option, f"{path} is not the name of a Python script; it must end in .py.")
    for place in (path, _beside(path)):
        problem = obstacle(place)
        if problem:
            wrong(option, f"{problem}.")
        if place.exists() and not force:
            wrong(option, f"{place} exists; name another file, or add --force.")


def _tell(found: Reproduction, path: Path) -> None:
    """Write the script and print what it shows, or print why there is none."""
    from conformkit.conformance.engine.results import Verdict
    from conformkit.conformance.text import plain

    result = found.result
    name = result.clause.id
    if result.verdict is Verdict.NOT_IMPLEMENTED:
        fail(Exit.DIFFERS, f"{name} has no script: {plain(found.reason)}", "there is nothing to call yet")
    if found.script is None and not result.verdict.red and not result.blocked_by:
        print(f"{name}: {result.verdict.value}; {plain(found.reason)}. Nothing was written.")
        raise typer.Exit(Exit.CONFORMS)
    if found.script is None:
        fail(Exit.DIFFERS, f"{name} has no script: {found.reason}", plain(result.message))
    from conformkit.conformance.report.files import write

    written = [path]
    try:
        if found.script.arrays:
            write(_beside(path), found.script.npz())
            written.append(_beside(path))
        write(path, found.script.text)
    except OSError as error:
        fail(Exit.KIT_FAILED, f"the script could not be written to {path}: {error.strerror or error}")
    print(f"{name}: {plain(result.message)}")
    print(f"wrote {' and '.join(map(str, written))}; run it: python {shlex.quote(str(path))}")
    raise typer.Exit(Exit.DIFFERS)
