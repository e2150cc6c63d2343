"""`conform inspect`: what happens inside an implementation."""

from __future__ import annotations

import contextlib
import difflib
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, cast

import typer

from conformkit.cli.exits import Exit, fail, one_of, wrong
from conformkit.cli.options import ConfigPath, Impl, Isolation, check_named
from conformkit.cli.reports import STDOUT, report_targets, write_files

if TYPE_CHECKING:
    from conformkit.conformance.apps.inspect.inspection import Inspection
    from conformkit.conformance.report.terminal import Color

__all__ = ["inspect"]

_MOST = 4096
_SIZES = ("d_model", "num_heads", "d_ff", "vocab_size", "num_layers", "block_size", "max_len", "d_k", "d_v")


def inspect(
    impl: Impl,
    component: Annotated[
        str, typer.Option(metavar="NAME", help="A component of the contract; by default the model, if there is one.")
    ] = "",
    size: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=N", help="An argument of the constructor, e.g. num_layers=12; repeat it."),
    ] = None,
    batch: Annotated[int, typer.Option(metavar="N", min=1, max=64, help="Number of rows.")] = 5,
    tokens: Annotated[int, typer.Option(metavar="N", min=2, max=512, help="Number of positions in each row.")] = 20,
    seed: Annotated[int, typer.Option(metavar="N", min=0, help="Seed of weights and inputs.")] = 0,
    json_path: Annotated[
        str, typer.Option("--json", metavar="PATH", help="Write the result as JSON; - is stdout.")
    ] = "",
    isolation: Isolation = "process",
    config: ConfigPath = None,
    color: Annotated[
        str, typer.Option(metavar="auto|always|never", help="auto respects NO_COLOR, FORCE_COLOR.")
    ] = "auto",
) -> None:
    """Look inside: shapes in every part, parameters, gradients, entropy of attention, dead or exploding values.

    The component is constructed, called and differentiated once, with its own initial weights.

    Example: conform inspect --impl mypkg --component TransformerBlock --size d_model=96

    Exit code 0 if nothing stands out; 1 if something does, or if it fails; conform --help lists the others.
    """
    check_named(impl)
    from conformkit.spec.components import COMPONENTS, SEQ2SEQ_NAMES

    if component in SEQ2SEQ_NAMES:
        problem = f"{component} is a part of an encoder-decoder, which inspect does not support"
        wrong("--component", f"{problem}; conform run --profile seq2seq judges it.")
    chosen = one_of("--component", component, list(COMPONENTS)) if component else ""
    how = one_of("--isolation", isolation, ("process", "sandbox", "none"))
    shade = cast("Color", one_of("--color", color, ("auto", "always", "never")))
    sizes = _sizes(size or [])
    targets = report_targets({"--json": json_path})
    from conformkit.conformance.driver.client.head_start import head_start

    early = head_start(impl, how)
    from conformkit.cli.failures import explained
    from conformkit.conformance.apps.inspect.inspect import InspectionFailed, InspectRequest
    from conformkit.conformance.apps.inspect.inspect import inspect as look

    request = InspectRequest(
        impl, component=chosen, sizes=sizes, batch=batch, tokens=tokens, seed=seed, isolation=how, config=config
    )
    try:
        with explained(impl):
            found = look(request, early)
    except InspectionFailed as error:
        fail(Exit.DIFFERS, str(error), f"where: {error.where}" if error.where else "")
    finally:
        early.close()
    _show(found, targets, shade)
    raise typer.Exit(Exit.DIFFERS if found.conspicuous else Exit.CONFORMS)


def _sizes(words: Sequence[str]) -> dict[str, int]:
    found: dict[str, int] = {}
    for word in words:
        name, _, text = word.partition("=")
        name = name.strip()
        if name not in _SIZES:
            near = difflib.get_close_matches(name, _SIZES, n=1)
            wrong(
                "--size",
                f"{name!r} is not a size{f'; nearest: {near[0]}' if near else ''}. Sizes: {', '.join(_SIZES)}.",
            )
        if not text.strip().isdecimal() or not 1 <= int(text) <= _MOST:
            wrong("--size", f"{word!r} has no whole number from 1 to {_MOST}; write for example {name}=64.")
        found[name] = int(text)
    return found


def _show(found: Inspection, targets: Mapping[str, str], color: Color) -> None:
    from conformkit.conformance.apps.inspect import terminal
    from conformkit.conformance.apps.inspect.json_form import as_json
    from conformkit.conformance.report.terminal import console

    write_files(targets, lambda _: as_json(found))
    if STDOUT not in targets.values():
        with contextlib.suppress(BrokenPipeError):
            terminal.write(found, console(sys.stdout, color))
