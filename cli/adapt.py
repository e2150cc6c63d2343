"""`conform adapt`: a first draft of conform.toml for code that does not follow the contract, checked by a run."""

from __future__ import annotations

import difflib
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from conformkit.cli.exits import Exit, fail, one_of, wrong
from conformkit.cli.options import Isolation
from conformkit.cli.progress import spinner
from conformkit.spec.profiles import SEARCHED_PROFILES, named_profile

if TYPE_CHECKING:
    from conformkit.conformance.apps.adapt.adapt import Adapted
    from conformkit.conformance.engine.results import Report

__all__ = ["adapt"]

_STDOUT = "-"
_SHOWN = 8


def adapt(
    impl: Annotated[str, typer.Argument(metavar="IMPL", help="A package, a module, a .py file or a folder.")],
    out: Annotated[str, typer.Option(metavar="PATH", help="Write the draft there; - is stdout.")] = _STDOUT,
    component: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=PATH", help="Where a component is, package.module:Name; repeat it."),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite an existing file.")] = False,
    profile: Annotated[
        str,
        typer.Option(
            metavar="core|lm|seq2seq|encoder|vit|paths",
            help="lm looks for a model and what trains it, seq2seq for the parts of an encoder-decoder, encoder for "
            "those of BERT, vit for those of ViT, paths for a model whose call takes more than ids.",
        ),
    ] = "core",
    isolation: Isolation = "process",
) -> None:
    """Draft a conform.toml: which class is which component, how it is built and called, which choices it has made.

    A run checks the draft; doubts are listed in it and on stderr. An existing conform.toml is not read.

    Examples:
      conform adapt mypkg --out conform.toml
      conform adapt mypkg

    Exit code 0 when the code conforms as drafted, 1 when it does not, 3 when the draft leaves something out that it
    could not confirm; conform --help lists the others.
    """
    if not impl.strip():
        wrong("IMPL", "is empty; give a module's name, a .py file or a folder.")
    how = one_of("--isolation", isolation, ("process", "sandbox", "none"))
    what = one_of("--profile", profile, SEARCHED_PROFILES)
    named = _named(component or [], what)
    _check_free(out, force=force)
    found = _adapted(impl, how, what, named)
    text = found.draft.text()
    if out == _STDOUT:
        sys.stdout.buffer.write(text.encode())
        sys.stdout.flush()
    else:
        _write(out, text)
    _tell(found, impl, out, what)
    raise typer.Exit(_code(found))


def _code(found: Adapted) -> Exit:
    """Return what a run with the draft ends with."""
    from conformkit.conformance.report.wording import is_little

    if found.report is not None and (found.report.unusable or is_little(found.report)):
        return Exit.NOT_LOADED
    return Exit.CONFORMS if found.conforms else Exit.DIFFERS


def _named(words: Sequence[str], profile: str) -> dict[str, str]:
    """Read the --component options; end with the code for wrong usage if one is invalid."""
    from conformkit.spec.components import component, components_of, is_component

    known = components_of(profile)
    found: dict[str, str] = {}
    for word in words:
        name, _, path = (part.strip() for part in word.partition("="))
        if name not in known:
            if is_component(name):
                other = component(name).profile
                wrong("--component", f"{name} is a component of profile {other}; add --profile {other}.")
            near = difflib.get_close_matches(name, known, n=1)
            hint = f"; nearest: {near[0]}" if near else ""
            wrong("--component", f"{name!r} is not a component{hint}. Components: {', '.join(known)}.")
        module, _, attribute = path.partition(":")
        if not all(part.isidentifier() for part in [*module.split("."), *attribute.split(".")]):
            wrong("--component", f"{word!r} names no location; write for example {name}=mypkg.attn:Attention.")
        found[name] = path
    return found


def _check_free(out: str, *, force: bool) -> None:
    from conformkit.conformance.report.files import obstacle

    if out == _STDOUT:
        return
    path = Path(out)
    problem = obstacle(path) if out else "is empty; name a file, or - for stdout"
    if not problem and path.exists() and not force:
        problem = f"{path} exists and is not overwritten; add --force, or name another file"
    if problem:
        wrong("--out", f"{problem}.")


def _adapted(impl: str, isolation: str, profile: str, named: dict[str, str]) -> Adapted:
    from conformkit.conformance.driver.client.head_start import head_start

    early = head_start(impl, isolation)
    try:
        from conformkit.cli.failures import explained
        from conformkit.conformance.apps.adapt.adapt import adapt as adapt_to
        from conformkit.conformance.engine.request import RunRequest

        with explained(impl), spinner(f"trying how {impl} is built and called"):
            return adapt_to(RunRequest(impl, isolation=isolation, profile=profile), named, early)
    finally:
        early.close()


def _write(out: str, text: str) -> None:
    from conformkit.conformance.report.files import write

    try:
        write(Path(out), text)
    except OSError as error:
        fail(Exit.KIT_FAILED, f"the draft could not be written to {out}: {error.strerror or error}")


def _tell(found: Adapted, impl: str, out: str, profile: str) -> None:
    """Say on stderr what was found, what is unsure, and how the run with the draft ended."""
    from conformkit.conformance.text import one_line

    lines = [f"{p.component} is {p.table['path']}" for p in found.draft.proposals]
    lines += [f"{name} is {table['path']}" for name, table in found.draft.tools.tables.items()]
    lines += [f"unsure: {doubt}" for doubt in found.draft.doubts()]
    lines += [f"left for you to decide: [components.{p.component}] {line}   # {why}"
              for p in found.draft.proposals for line, why in p.offered]  # fmt: skip
    lines += _verdict(found)
    if out != _STDOUT:
        words = ["conform", "run", "--impl", impl, "--config", out]
        again = shlex.join([*words, *named_profile(profile).option])
        lines.append(f"written to {out}; judge with it: {again}")
    shown = ("  " * line.startswith(" ") + one_line(line) for line in lines)
    print(*shown, sep="\n", file=sys.stderr, flush=True)


def _judged(report: Report) -> int:
    """Count the clauses that were judged: parts that are not there, or are left out, have others."""
    from conformkit.conformance.engine.results import Verdict

    return sum(result.verdict is Verdict.PASS or result.verdict.red for result in report.results)


def _verdict(found: Adapted) -> list[str]:
    from conformkit.conformance.report.wording import is_little, obstacles

    if found.report is None:
        return [f"the draft does not work: {found.problem}", *(f"  {line}" for line in found.advice)]
    red = [result for result in found.report.results if found.report.breaks(result) and result.verdict.red]
    judged = f"{_judged(found.report)} of {len(found.report.results)} clauses judged with this draft"
    if found.conforms and is_little(found.report):
        return [f"checked: {judged}, none fails; most of what the profile asks for is not there"]
    if found.conforms:
        return [f"checked: {judged}, and it conforms"]
    if found.report.conforms:
        failing = ", ".join(sorted(found.draft.failing))
        cause = "it is wrong, or something that conform.toml cannot say; delete `unconfirmed = true` to see why"
        return [f"not confirmed: {judged}; the rest conforms without {failing}: {cause}"]
    if found.report.missing and not red and not found.report.stubs:
        lacking = ", ".join(found.report.missing)
        return [f"checked as far as possible: {judged}, none fails; it does not conform without {lacking}"]
    lines = [f"  {r.clause.id}: {r.clause.title}" for r in red[:_SHOWN]]
    more = [f"  and {len(red) - _SHOWN} more"] if len(red) > _SHOWN else []
    cause = "; each failure is a mistake in the code, or in the draft:" if red else ""
    return [f"not confirmed: {judged}; {'; '.join(obstacles(found.report))}{cause}", *lines, *more]
