"""The report of a run of an encoder: one page for a browser, and its pictures as files."""

from __future__ import annotations

import base64
from typing import Any

from conformkit.reference.checkpoints import read_checkpoint, replace_file
from conformkit.reference.training import figures, metrics
from conformkit.reference.training.diagnosis import curves, diagnose
from conformkit.reference.training.encoders.digits import DigitsSession
from conformkit.reference.training.encoders.masked import MaskedSession
from conformkit.reference.training.encoders.trained import SPECIAL, classifier_from, masked_model_from
from conformkit.reference.training.pairs.maps import encoder_attention_maps
from conformkit.reference.training.report import page
from conformkit.reference.training.toml_text import as_toml

__all__ = ["write_encoder_report"]

ROWS = 40
TOKENS = 32
TOLD = {
    "training": "Training loss raw and smoothed, validation loss with the best marked, learning rate, and norm of the "
    "gradients, over the steps.",
    "attention": "Attention weights by layer and head for one held-out input.",
}  # fmt: skip


def write_encoder_report(session: MaskedSession | DigitsSession, *, pictures: bool = True) -> str:
    """Write the page, and the pictures if they are wanted; return a sentence if they can't be drawn.

    Raises: OSError where a file can't be written.
    """
    folder, config = session.folder, session.run.config
    records = metrics.read_lines(folder.metrics)
    evaluations = [record for record in records if record["kind"] == "evaluation"]
    guessed, maps, names = _seen(session)
    drawn: dict[str, bytes] = {}
    if pictures and figures.available():
        drawn["training"] = figures.as_png(figures.training_figure(records, None, config.title))
        drawn["attention"] = figures.as_png(figures.attention_figure(maps, names))
    for name, content in drawn.items():
        replace_file(folder.path / f"{name}.png", content)
    lacking = figures.LACKING if pictures and not figures.available() else ""
    text = page(
        "encoders/report.html", title=config.title or "a training run", source=config.source, facts=_facts(session),
        told=TOLD, lacking=lacking, rows=guessed[:ROWS], evaluations=evaluations,
        columns=[name for name in evaluations[0] if name not in {"kind", "best"}],
        pictures={name: base64.b64encode(content).decode() for name, content in drawn.items()},
        findings=diagnose(curves(records, text=False)), config=as_toml(config.as_document()),
    )  # fmt: skip
    replace_file(folder.report, text.encode())
    return lacking


def _seen(session: MaskedSession | DigitsSession) -> tuple[list[dict[str, Any]], list[Any], list[str]]:
    """Return what the best model guesses, its attention for one input, and the names of the positions."""
    saved = read_checkpoint(session.folder.best)
    if isinstance(session, DigitsSession):
        classifier = classifier_from(saved)
        image = session.digits.val[0][:1]
        maps = [weights for _, weights in encoder_attention_maps(classifier.model, image)]
        names = [str(number) for number in range(maps[0].shape[-1])]
        return session.guesses(classifier.model, saved.step), maps, names
    trained = masked_model_from(saved)
    (ids, segments), _ = session.run.validation[0]
    shown = ids[:1, :TOKENS].cpu()
    maps = [weights for _, weights in encoder_attention_maps(trained.model, shown, segments[:1, :TOKENS].cpu())]
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
