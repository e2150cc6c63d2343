"""`conform sample`: text from a model that `conform train` trained."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from conformkit.cli.exits import Exit, fail
from conformkit.cli.train import explained

if TYPE_CHECKING:
    from conformkit.reference.tokenizers import Tokenizer

__all__ = ["sample"]


def sample(
    run: Annotated[
        Path, typer.Argument(metavar="RUN", help="The folder of a run, for its best model, or a checkpoint.")
    ],
    prompt: Annotated[
        list[str] | None, typer.Option(metavar="TEXT", help="Text to continue; repeat the option for several.")
    ] = None,
    tokens: Annotated[int, typer.Option(metavar="N", min=0, help="Number of tokens to add.")] = 200,
    temperature: Annotated[
        list[float] | None,
        typer.Option(metavar="T", min=0.0, help="0 takes the most probable token; repeat the option for several."),
    ] = None,
    top_k: Annotated[
        int | None, typer.Option(metavar="K", min=1, help="Draw only from the K most probable tokens.")
    ] = None,
    top_p: Annotated[
        float | None, typer.Option(metavar="P", help="Draw from the fewest tokens with total probability P.")
    ] = None,
    seed: Annotated[int, typer.Option(metavar="N", min=0, help="The same seed draws the same text.")] = 0,
    device: Annotated[str, typer.Option(metavar="cpu|cuda|mps", help="Device to compute on.")] = "cpu",
) -> None:
    """Continue a prompt with a trained model.

    Example: conform sample runs/tiny
    """
    temperatures = temperature or [0.8]
    if not run.exists():
        advice = "conform train writes one to runs/tiny: conform train && conform sample runs/tiny"
        fail(Exit.USAGE, f"there is no {run}; name the folder of a run of conform train, or a checkpoint in it", advice)
    with explained():
        import torch

        from conformkit.reference.training.sampling import continuation
        from conformkit.reference.training.session import load_trained
        from conformkit.reference.training.speed import check_device

        check_device(device)
        trained = load_trained(run, device)
        torch.manual_seed(seed)
        prompts = prompt or [_beginning(trained.tokenizer)]
        alone = len(prompts) == len(temperatures) == 1
        for text in prompts:
            for warmth in temperatures:
                new = continuation(trained.model, trained.tokenizer, text, tokens, warmth, top_k, top_p)
                _show(text + new, "" if alone else f"--- {text!r}, temperature {warmth:g}")


def _beginning(tokenizer: Tokenizer) -> str:
    """Return a newline if the vocabulary has one, since most texts begin after one; else its first token."""
    return "\n" if "\n" in tokenizer.decode(range(tokenizer.vocab_size)) else tokenizer.decode([0])


def _show(text: str, title: str) -> None:
    """Print a text as it is; on a terminal, without control sequences."""
    from conformkit.conformance.text import plain

    if title:
        print(plain(title))
    print(plain(text, len(text) + 1) if sys.stdout.isatty() else text)
