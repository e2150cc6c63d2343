"""`conform sample`: text from a model that `conform train` trained."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from conformkit.cli.exits import Exit, complain, fail, wrong
from conformkit.cli.train import explained

if TYPE_CHECKING:
    from conformkit.reference.tokenizers import Tokenizer
    from conformkit.reference.training.encoders.trained import Classifier, MaskedModel
    from conformkit.reference.training.pairs.session import Translator
    from conformkit.reference.training.session import Trained

__all__ = ["sample"]


def sample(
    run: Annotated[
        Path, typer.Argument(metavar="RUN", help="The folder of a run, for its best model, or a checkpoint.")
    ],
    prompt: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TEXT",
            help="Text to continue or to translate, for a BERT with [MASK] in it; repeat the option for several.",
        ),
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
    repetition_penalty: Annotated[
        float, typer.Option(metavar="R", help="Make tokens that stand in the text already less probable; 1 is off.")
    ] = 1.0,
    beam: Annotated[int, typer.Option(metavar="W", min=0, help="Beam search with this width, instead of drawing.")] = 0,
    length_penalty: Annotated[
        float | None, typer.Option(metavar="A", help="With --beam: divide scores by the length to this power.")
    ] = None,
    compare: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Compare ways of sampling: a table and a picture in this folder."),
    ] = None,
    seed: Annotated[int, typer.Option(metavar="N", min=0, help="The same seed draws the same text.")] = 0,
    device: Annotated[str, typer.Option(metavar="cpu|cuda|mps", help="Device to compute on.")] = "cpu",
) -> None:
    """Continue a prompt with a trained model; an encoder-decoder writes what belongs to it.

    Examples:
      conform sample runs/tiny
      conform sample runs/tiny --compare runs/ways
    """
    if not run.exists():
        advice = "conform train writes one to runs/tiny: conform train && conform sample runs/tiny"
        fail(Exit.USAGE, f"there is no {run}; name the folder of a run of conform train, or a checkpoint in it", advice)
    if length_penalty is not None and not beam:
        wrong("--length-penalty", "needs --beam; what is drawn has no score to divide.")
    with explained():
        import torch

        from conformkit.reference.training.encoders.trained import Classifier, MaskedModel
        from conformkit.reference.training.pairs.session import Translator
        from conformkit.reference.training.session import Trained
        from conformkit.reference.training.sessions import load_model
        from conformkit.reference.training.speed import check_device

        check_device(device)
        trained = load_model(run, device)
        torch.manual_seed(seed)
        if not isinstance(trained, Trained):
            _refuse(compare=compare, top_k=top_k, top_p=top_p, repetition_penalty=repetition_penalty != 1.0)
        if isinstance(trained, Classifier):
            _classify(trained)
        elif isinstance(trained, MaskedModel):
            _fill(trained, prompt or [])
        elif isinstance(trained, Translator):
            _write(trained, prompt or [], temperature or [0.0], beam, length_penalty)
        elif compare is not None:
            _compare(trained, run, prompt or [], tokens, seed, compare)
        else:
            prompts = prompt or [_beginning(trained.tokenizer)]
            penalty = 0.0 if length_penalty is None else length_penalty
            _continue(trained, prompts, tokens, temperature or [0.8], top_k, top_p, repetition_penalty, (beam, penalty))


def _refuse(**options: object) -> None:
    """Refuse what only a language model does."""
    for name, value in options.items():
        if value:
            wrong(f"--{name.replace('_', '-')}", "is for language models that continue a text; this run is none.")


def _continue(
    trained: Trained, prompts: Sequence[str], tokens: int, temperatures: Sequence[float], top_k: int | None,
    top_p: float | None, repetition_penalty: float, beam: tuple[int, float],
) -> None:  # fmt: skip
    from conformkit.reference.training.sampling import best_continuations, continuation

    if beam[0]:
        for text in prompts:
            for new, value in best_continuations(trained.model, trained.tokenizer, text, tokens, *beam):
                _show(text + new, f"--- {text!r}, score {value:.3f}")
        return
    alone = len(prompts) == len(temperatures) == 1
    for text in prompts:
        for warmth in temperatures:
            new = continuation(trained.model, trained.tokenizer, text, tokens, warmth, top_k, top_p, repetition_penalty)
            _show(text + new, "" if alone else f"--- {text!r}, temperature {warmth:g}")


def _write(
    trained: Translator, prompts: Sequence[str], temperatures: Sequence[float], beam: int, penalty: float | None
) -> None:
    """Write the target of each source; without one, those of a few held-out sources."""
    from conformkit.reference.training.pairs.corpus import load_pairs
    from conformkit.reference.training.pairs.writing import write, write_beams

    sources = list(prompts) or [source for source, _ in load_pairs(trained.config.data).val[:5]]
    for source in sources:
        if not source.strip():
            wrong("--prompt", "is empty; name a text that is to be read.")
        if unknown := trained.sides[0].unknown(source):
            complain(f"{unknown[0].strip()!r} of {source!r} is not in the vocabulary, and read as an unknown token")
    power = trained.config.samples.length_penalty if penalty is None else penalty
    for source in sources:
        if beam:
            for text, value in write_beams(trained.model, trained.sides, [source], beam, power)[0]:
                _show(f"{source} → {text}", f"--- score {value:.3f}")
            continue
        for warmth in temperatures:
            (text,) = write(trained.model, trained.sides, [source], warmth)
            _show(f"{source} → {text}", "" if len(temperatures) == 1 else f"--- temperature {warmth:g}")


def _fill(trained: MaskedModel, prompts: Sequence[str]) -> None:
    """Write what may stand at each [MASK] of a text; without one, of a few held-out texts, with what stood there."""
    from conformkit.reference.training.encoders.masked import blanks, fill

    if not all("[MASK]" in text for text in prompts):
        wrong("--prompt", "needs a text with [MASK] where something is to be guessed; this run is a BERT.")
    for text, hidden in [(text, "") for text in prompts] or blanks(trained):
        for number, found in enumerate(fill(trained.model, trained.tokenizer, text), 1):
            guesses = ", ".join(f"{piece!r} {share:.2f}" for piece, share in found)
            _show(f"{text}: [MASK] {number}: {guesses}" + (f"; there was {hidden!r}" if hidden else ""), "")


def _classify(trained: Classifier) -> None:
    """Write the classes of the first held-out images."""
    from conformkit.reference.training.encoders.digits import load_digits

    images, classes = load_digits(trained.config.data.fraction).val
    shares = trained.model(images[:10].to(trained.model.head.weight.device)).softmax(dim=-1)
    for wanted, row in zip(classes.tolist(), shares.tolist(), strict=False):
        guess = max(range(len(row)), key=row.__getitem__)
        _show(f"digit {wanted}: {guess}, probability {row[guess]:.2f}", "")


def _compare(trained: Trained, run: Path, prompts: Sequence[str], tokens: int, seed: int, out: Path) -> None:
    from conformkit.reference.training.samplers import compared, table, write_comparison

    starts = list(prompts) or [_beginning(trained.tokenizer)]
    rows = compared(trained.model, trained.tokenizer, starts, tokens, seed)
    missing = write_comparison(rows, out, title=f"ways of sampling from {run}")
    for line in [*table(rows), f"files: {out}", *([missing] if missing else [])]:
        _show(line, "")


def _beginning(tokenizer: Tokenizer) -> str:
    """Return a newline if the vocabulary has one, since most texts begin after one; else its first token."""
    return "\n" if "\n" in tokenizer.decode(range(tokenizer.vocab_size)) else tokenizer.decode([0])


def _show(text: str, title: str) -> None:
    """Print a text as it is; on a terminal, without control sequences."""
    from conformkit.conformance.text import plain

    if title:
        print(plain(title))
    print(plain(text, len(text) + 1) if sys.stdout.isatty() else text)
