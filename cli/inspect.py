"""`conform inspect`: what happens inside an implementation."""

from __future__ import annotations

import contextlib
import difflib
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from conformkit.cli.exits import Exit, fail, one_of, wrong
from conformkit.cli.options import ConfigPath, Impl, Isolation
from conformkit.cli.progress import spinner
from conformkit.cli.reports import STDOUT, report_targets, write_files

if TYPE_CHECKING:
    from conformkit.conformance.apps.inspect.inspection import Inspection
    from conformkit.conformance.report.terminal import Color

__all__ = ["inspect"]

_LARGEST_SIZE = 4096
_SIZES = (
    "d_model", "num_heads", "d_ff", "vocab_size", "num_layers", "block_size", "max_len", "d_k", "d_v", "src_vocab_size",
    "tgt_vocab_size", "num_encoder_layers", "num_decoder_layers", "image_size", "patch_size", "channels", "num_classes",
)  # fmt: skip


def inspect(
    context: typer.Context,
    run: Annotated[
        Path | None,
        typer.Argument(
            metavar="RUN|IMPL", help="The folder of a run of conform train, a checkpoint, or what --impl names."
        ),
    ] = None,
    impl: Impl = "",
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
    device: Annotated[str, typer.Option(metavar="cpu|cuda|mps", help="Device to compute on.")] = "cpu",
    config: ConfigPath = None,
    color: Annotated[
        str, typer.Option(metavar="auto|always|never", help="auto respects NO_COLOR, FORCE_COLOR.")
    ] = "auto",
) -> None:
    """Look inside: shapes in every part, parameters, gradients, entropy of attention, dead or exploding values.

    The component is constructed, called and differentiated once, with its own initial weights. Of a training run it
    reads the loss curve (diverged, flat, overfit, a rate that is too high or too low) and looks into the best model:
    how far heads look, how unlike they are, what is dead, what a mask lets through.

    Examples:
      conform inspect --impl mypkg --component TransformerBlock --size d_model=96
      conform inspect runs/tiny

    Exit code 0 if nothing stands out; 1 if something does, or if it fails; conform --help lists the others.
    """
    shade = cast("Color", one_of("--color", color, ("auto", "always", "never")))
    targets = report_targets({"--json": json_path})
    if run is not None:
        source = context.get_parameter_source("impl")
        if impl and source is not None and source.name == "COMMANDLINE":  # pyproject.toml may name a default
            wrong("--impl", "contradicts RUN; name one of them.")
        if not _is_code(run):
            from conformkit.cli.inspect_run import inspect_run

            inspect_run(run, targets, device, shade)
        impl = str(run)
    if not impl.strip():
        names = "a module, a .py file or a folder, or as RUN the folder of a run of conform train"
        wrong("--impl", f"is empty; name {names}.")
    from conformkit.spec.components import COMPONENTS, SEVERAL_NAMES

    chosen = one_of("--component", component, [*COMPONENTS, *SEVERAL_NAMES]) if component else ""
    how = one_of("--isolation", isolation, ("process", "sandbox", "none"))
    sizes = _sizes(size or [])
    from conformkit.conformance.driver.client.head_start import head_start

    early = head_start(impl, how)
    from conformkit.cli.failures import explained
    from conformkit.conformance.apps.inspect.inspect import InspectionFailed, InspectRequest
    from conformkit.conformance.apps.inspect.inspect import inspect as look

    request = InspectRequest(
        impl,
        component=chosen,
        sizes=sizes,
        batch=batch,
        tokens=tokens,
        seed=seed,
        isolation=how,
        config=config,
        device=device,
    )
    try:
        with explained(impl), spinner(f"looking into {impl}"):
            found = look(request, early)
    except InspectionFailed as error:
        fail(Exit.DIFFERS, str(error), f"where: {error.where}" if error.where else "")
    finally:
        early.close()
    _show(found, targets, shade)
    raise typer.Exit(Exit.DIFFERS if found.conspicuous else Exit.CONFORMS)


def _is_code(path: Path) -> bool:
    """Return whether a path is one of code: what conform train writes has no Python in it."""
    return path.suffix in {".py", ".ipynb"} or (path.is_dir() and next(path.glob("*.py"), None) is not None)


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
        if not text.strip().isdecimal() or not 1 <= int(text) <= _LARGEST_SIZE:
            wrong("--size", f"{word!r} has no whole number from 1 to {_LARGEST_SIZE}; write for example {name}=64.")
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
