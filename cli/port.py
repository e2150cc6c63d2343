"""`conform port`: a checkpoint for one's own code, proved."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from conformkit.cli.exits import Exit, fail, one_of, wrong
from conformkit.cli.options import Isolation, Shade
from conformkit.cli.reports import STDOUT, print_utf8, report_targets, write_files

if TYPE_CHECKING:
    from conformkit.conformance.apps.port.request import PortReport, PortRequest
    from conformkit.conformance.report.terminal import Color

__all__ = ["port"]

_SIZES = ("vocab_size", "d_model", "num_heads", "num_layers", "d_ff", "block_size", "kv_heads", "head_width")
_LARGEST_SIZE = 10_000_000


def port(
    sides: Annotated[
        list[str] | None,
        typer.Argument(metavar="[THEIRS] OURS", help="As for --impl, or a class: transformers:GPT2LMHeadModel."),
    ] = None,
    weights: Annotated[
        Path | None, typer.Option(metavar="FILE|DIR", help="Their checkpoint: safetensors, its index, or a .pt file.")
    ] = None,
    check: Annotated[
        Path | None, typer.Option(metavar="FILE|DIR", help="As --weights, where only OURS is code; needs --like.")
    ] = None,
    like: Annotated[
        str, typer.Option(metavar="FAMILY", help="The definition as gpt2, llama, … stands in for THEIRS.")
    ] = "",
    config: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Their config.json; by default the one next to the weights.")
    ] = None,
    converted: Annotated[
        Path | None, typer.Option(metavar="FILE", help="What your own conversion made of the weights: it is checked.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the converted weights here, if they are proved.")
    ] = None,
    show_map: Annotated[
        bool, typer.Option("--map", help="Print the conversion as a Python function that needs einops only.")
    ] = False,
    size: Annotated[
        list[str] | None, typer.Option(metavar="NAME=N", help="A size that the shapes do not tell: num_heads=12.")
    ] = None,
    seed: Annotated[int, typer.Option(metavar="N", min=0, help="Seed of random weights and ids.")] = 0,
    json_path: Annotated[
        str, typer.Option("--json", metavar="PATH", help="Write the result as JSON; - is stdout.")
    ] = "",
    isolation: Isolation = "process",
    color: Shade = "auto",
) -> None:
    """Convert a checkpoint for your own model, and prove it; or name the first mistake of the conversion.

    Both are bound to the same names, the weights are moved, and both are asked the same: logits of the whole and after
    each part must agree up to rounding. Without weights, random ones test the conversion.

    Examples:
      conform port mypkg --like gpt2 --weights gpt2 --out mine.safetensors
      conform port mypkg --like gpt2

    Exit code 0 if it is proved, 1 if not, 3 if a file or the code cannot be used; conform --help lists the others.
    """
    how = one_of("--isolation", isolation, ("process", "sandbox", "none"))
    shade = cast("Color", one_of("--color", color, ("auto", "always", "never")))
    theirs, ours = _sides(sides or [], like, check, weights)
    targets = report_targets({"--json": json_path})
    if show_map and STDOUT in targets.values():
        wrong("--map", "and --json - would both print to stdout; name a file for one.")
    if out is not None and converted is not None:
        wrong("--out", "writes the kit's own conversion; leave --converted away, or --out.")
    if out is not None and weights is None and check is None:
        wrong("--out", "needs weights to convert: add --weights.")
    _check_out(out, [given for given in (weights, check, converted, config) if given is not None])
    from conformkit.conformance.apps.port.request import PortRequest

    request = PortRequest(ours, theirs, like, weights or check, config, converted, out, _numbers(size or []), seed, how)
    found = _ported(request)
    write_files(targets, lambda _: _json(found))
    if show_map:
        print_utf8(found.map)
    if STDOUT not in targets.values():
        _show(found, shade, sys.stderr if show_map else sys.stdout)
    raise typer.Exit(Exit.CONFORMS if found.proved else Exit.DIFFERS)


def _sides(names: list[str], like: str, check: Path | None, weights: Path | None) -> tuple[str, str]:
    """Return what stands for theirs, which may be nothing, and for ours."""
    if any(not name.strip() for name in names):
        wrong("THEIRS OURS", "one of them is empty; give a module's name, a .py file or a folder.")
    if check is not None and weights is not None:
        wrong("--check", "and --weights name the same thing; give one of them.")
    if check is not None and not like:
        wrong("--check", "needs the family of the file: --like gpt2.")
    wanted = 1 if like else 2
    if len(names) != wanted:
        needed = (
            "OURS alone, since --like stands in for THEIRS" if like else "THEIRS and OURS, or OURS and --like FAMILY"
        )
        wrong("THEIRS OURS", f"{len(names)} given; give {needed}.")
    return ("", names[0]) if like else (names[0], names[1])


def _check_out(out: Path | None, given: list[Path]) -> None:
    """Exit with the code for wrong usage, before anything runs, if the converted file cannot be written."""
    if out is None:
        return
    from conformkit.conformance.report.files import obstacle

    if any(path.exists() and out.exists() and path.samefile(out) for path in given):
        wrong("--out", f"{out} is one of the files that are read; name another one.")
    if out.suffix != ".safetensors":
        wrong("--out", f"{out} does not end in .safetensors, which is what is written.")
    if problem := obstacle(out):
        wrong("--out", f"{problem}.")


def _numbers(words: list[str]) -> dict[str, int]:
    found: dict[str, int] = {}
    for word in words:
        name, _, text = word.partition("=")
        if name.strip() not in _SIZES:
            wrong("--size", f"{name.strip()!r} is not a size. Sizes: {', '.join(_SIZES)}.")
        if not text.strip().isdecimal() or not 1 <= int(text) <= _LARGEST_SIZE:
            wrong("--size", f"{word!r} has no whole number from 1 on; write for example {name.strip()}=12.")
        found[name.strip()] = int(text)
    return found


def _ported(request: PortRequest) -> PortReport:
    from conformkit.cli.failures import explained
    from conformkit.conformance.apps.port.port import port as convert
    from conformkit.conformance.apps.port.problems import Unportable

    try:
        with explained(request.ours), _progress() as told:
            return convert(request, told)
    except Unportable as problem:
        fail(Exit.USAGE if problem.usage else Exit.NOT_LOADED, problem.problem, *problem.advice)


@contextmanager
def _progress() -> Iterator[Callable[[str, int], None]]:
    """Yield what tells of the progress: a bar on stderr if that is a terminal."""
    if not sys.stderr.isatty():
        yield lambda _what, _total: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(file=sys.stderr, markup=False), transient=True) as bar:
        task = bar.add_task("starting", total=1)

        def told(what: str, total: int) -> None:
            if what:
                bar.reset(task, description=what, total=total)
            else:
                bar.advance(task)

        yield told


def _json(found: PortReport) -> str:
    from conformkit.conformance.apps.port.json_form import as_json

    return as_json(found)


def _show(found: PortReport, color: Color, stream: object) -> None:
    from conformkit.conformance.apps.port import terminal
    from conformkit.conformance.report.terminal import console

    with contextlib.suppress(BrokenPipeError):
        terminal.write(found, console(cast("Mapping[str, object]", stream), color))  # type: ignore[arg-type]
