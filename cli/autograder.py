"""`conform autograder`: a zip to upload to Gradescope."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from conformkit.cli.exits import Exit, fail, one_of, wrong

__all__ = ["autograder"]


def autograder(
    policy: Annotated[
        Path,
        typer.Option(metavar="PATH", exists=True, dir_okay=False, help="The policy that gives points."),
    ],
    out: Annotated[Path, typer.Option(metavar="PATH", help="The zip to write.")] = Path("autograder.zip"),
    kit: Annotated[
        str,
        typer.Option(metavar="REQUIREMENT|WHEEL", help="What to install; by default a wheel of this kit, in the zip."),
    ] = "",
    isolation: Annotated[
        str,
        typer.Option(metavar="sandbox|process", help="Instead of the policy's; process is for trusted code."),
    ] = "",
) -> None:
    """Write an autograder for Gradescope: the policy, the versions to grade with, and the required scripts.

    Examples:
      conform autograder --policy policy.toml --out autograder.zip
      conform autograder --policy policy.toml --isolation process
    """
    if isolation:
        isolation = one_of("--isolation", isolation, ("sandbox", "process"))
    from conformkit.conformance.apps.grade.outputs.autograder import KitUnusable
    from conformkit.conformance.apps.grade.outputs.autograder import autograder as made
    from conformkit.conformance.binding.toml_nodes import ConfigError
    from conformkit.conformance.report.files import obstacle, write

    problem = obstacle(out)
    if problem:
        wrong("--out", f"{problem}.")
    try:
        data = made(policy, kit, isolation)
        write(out, data)
    except ConfigError as error:
        fail(Exit.USAGE, f"the policy cannot be used: {error}")
    except KitUnusable as error:
        fail(Exit.USAGE, str(error))
    except OSError as error:
        fail(Exit.KIT_FAILED, f"{error.filename or out} could not be read or written: {error.strerror or error}")
    print(f"wrote {out}; on Gradescope: Configure Autograder, Zip file upload. See docs/gradescope.md.")
