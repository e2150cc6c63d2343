"""`conform init`: a package of typed stubs to fill in."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import Annotated

import typer

from conformkit.cli.completion import profiles
from conformkit.cli.exits import Exit, fail, one_of, wrong
from conformkit.cli.options import known_profiles

__all__ = ["init"]


def init(
    package: Annotated[Path, typer.Argument(metavar="PATH", help="The package's name, or where to put it.")],
    framework: Annotated[str, typer.Option(metavar="torch|numpy", help="The framework of the stubs.")] = "torch",
    profile: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            autocompletion=profiles,
            help="core; lm adds tokenizers, data, loss, optimizer, training; seq2seq is an encoder-decoder, "
            "milestone1 to milestone5 are its steps; encoder is BERT, vit a vision transformer.",
        ),
    ] = "core",
) -> None:
    """Write a package of stubs to fill in.

    Every part of the contract is there, with its shapes and the clauses it will meet. Nothing is overwritten.

    Examples:
      conform init mypkg
      conform init mypkg --profile seq2seq
    """
    how = one_of("--framework", framework, ("torch", "numpy"))
    what = one_of("--profile", profile, known_profiles())
    from conformkit.conformance.apps.scaffold.scaffold import obstacle, write_package
    from conformkit.conformance.apps.scaffold.scaffold import package as stubs

    problem = obstacle(package)
    if problem:
        wrong("PATH", f"{problem}.")
    files = stubs(package.resolve().name, how, what)
    try:
        write_package(package, files)
    except OSError as error:
        problem = f"{package} could not be written and was removed: {error.strerror or error}"
        fail(Exit.KIT_FAILED, problem, "name a folder that can be written: conform init PATH")
    words = ["conform", "run", "--impl", os.fspath(package), *(["--profile", what] if what != "core" else [])]
    print(f"Wrote {len(files)} stub files to {package}. To see what to write first, and what is wrong, run:")
    print(f"    {shlex.join(words)}")
