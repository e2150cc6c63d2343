"""The report of a run of an encoder: one page for a browser, and its pictures as files."""

from __future__ import annotations

from typing import Any

from conformkit.reference.checkpoints import read_checkpoint
from conformkit.reference.training import figures, history
from conformkit.reference.training.encoders.digits import DigitsSession
from conformkit.reference.training.encoders.masked import MaskedSession
from conformkit.reference.training.encoders.trained import SPECIAL, classifier_from, masked_model_from
from conformkit.reference.training.pages import TRAINING, publish_run
from conformkit.reference.training.pairs.maps import encoder_attention_maps

__all__ = ["write_encoder_report"]

ROWS = 40
TOLD = {
    "training": TRAINING,
    "attention": "Attention weights by layer and head for one held-out input.",
    "history": "The same weights, the mean of the heads, at several steps of the run.",
}


def write_encoder_report(session: MaskedSession | DigitsSession, *, pictures: bool = True) -> str:
    """Write the page, and the pictures if they are wanted; return a sentence if they can't be drawn.

    Raises: OSError where a file can't be written.
    """
    config = session.run.config
    guessed, maps, names = _seen(session)
    past = [(f"step {at}", weights) for at, weights in history.spread(session.folder)]
    return publish_run(
        session.folder, config, "encoders/report.html",
        lambda records: {
            "training": figures.training_figure(records, None, config.title),
            "attention": figures.attention_figure(maps, names),
            **({"history": figures.history_figure(past, names)} if past else {}),
        },
        pictures=pictures, told=TOLD, facts=_facts(session), rows=guessed[:ROWS],
    )  # fmt: skip


def _seen(session: MaskedSession | DigitsSession) -> tuple[list[dict[str, Any]], list[Any], list[str]]:
    """Return what the best model guesses, its attention for one input, and the names of the positions."""
    saved = read_checkpoint(session.folder.best)
    if isinstance(session, DigitsSession):
        classifier = classifier_from(saved)
        image = session.shown[0].cpu()
        maps = [weights for _, weights in encoder_attention_maps(classifier.model, image)]
        names = [str(number) for number in range(maps[0].shape[-1])]
        return session.guesses(classifier.model, saved.step), maps, names
    trained = masked_model_from(saved)
    shown, segments = (part.cpu() for part in session.shown)
    maps = [weights for _, weights in encoder_attention_maps(trained.model, shown, segments)]
    special = ("[PAD]", "[CLS]", "[SEP]", "[MASK]")
    named = [
        special[number] if number < SPECIAL else trained.tokenizer.decode([number - SPECIAL])
        for number in shown[0].tolist()
    ]
    return session.guesses(trained.model.to(session.run.device), saved.step), maps, named


def _facts(session: MaskedSession | DigitsSession) -> dict[str, str]:
    run = session.run
    step, loss = run.best or (run.step, float("nan"))
    return {
        "task": run.config.data.task,
        "best validation loss": f"{loss:.4f} nats, at step {step} of {run.step}",
        "outcome": session.scores()[0],
        "data": session.description,
        "device": f"{run.config.speed.device}, {run.config.speed.precision}",
    }
