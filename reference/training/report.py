"""The report of a run on a text: one page for a browser, and its pictures as files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from conformkit.reference.attention_maps import attention_maps
from conformkit.reference.loss import bits_per_character, perplexity
from conformkit.reference.training import figures, history, metrics
from conformkit.reference.training.folder import RunFolder
from conformkit.reference.training.metrics import MetricRecord
from conformkit.reference.training.pages import TRAINING, TableColumn, number, publish_run, step
from conformkit.reference.training.session import Trained, TrainingSession, load_trained

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["write_report"]

TOLD = {
    "training": TRAINING,
    "perplexity": "Perplexity and bits a character, training and validation, over the steps.",
}


def write_report(session: TrainingSession, *, pictures: bool = True) -> str:
    """Write the page, and the pictures if they are wanted; return a sentence if they can't be drawn.

    Raises: OSError where a file can't be written.
    """
    best = load_trained(session.folder.path)
    return publish_run(
        session.folder, session.run.config, "report.html", lambda records: _pictures(session, best, records),
        columns=_columns(session.floor), floor=session.floor, pictures=pictures, told=TOLD,
        facts=_facts(session, best), groups=_groups(session.folder),
    )  # fmt: skip


def _columns(floor: float | None) -> dict[str, TableColumn]:
    columns = {"step": step, "loss": number("loss")}
    if floor is not None:
        columns["above the least possible"] = lambda one: f"{one['loss'] - floor:+.4f}"
    return columns


def _pictures(session: TrainingSession, best: Trained, records: Sequence[MetricRecord]) -> dict[str, Figure]:
    ids = session.shown.cpu()
    tokens = [best.tokenizer.decode([number]) for number in ids.tolist()]
    past = [(_when(session, step), weights) for step, weights in history.spread(session.folder)]
    return {
        "training": figures.training_figure(records, session.floor, session.run.config.title),
        "perplexity": figures.perplexity_figure(records, session.tokens.tokens_per_character),
        "attention": figures.attention_figure(attention_maps(best.model, ids[None]), tokens),
        **({"history": figures.history_figure(past, tokens)} if past else {}),
    }


def _when(session: TrainingSession, step: int) -> str:
    """Name a step, and the number of passes over the text that it stands for."""
    return f"step {step}, epoch {step * session.run.tokens_a_step / len(session.tokens.train):.2g}"


def _facts(session: TrainingSession, best: Trained) -> dict[str, str]:
    """Return the facts at the top, by name."""
    run, tokens = session.run, session.tokens
    at, loss = run.best or (run.step, float("nan"))
    bits = bits_per_character(loss, tokens.tokens_per_character).item()
    facts = {
        "best validation loss": f"{loss:.4f} nats a token, at step {at} of {run.step}",
        "perplexity": f"{perplexity(loss).item():.3f}",
        "bits a character": f"{bits:.4f}",
        "the least possible": f"{session.floor:.4f} nats a token, in windows this long" if session.floor else "",
        "parameters": f"{sum(parameter.numel() for parameter in best.model.parameters()):,}",
        "text": f"{session.corpus.name}, {len(session.corpus.text):,} characters",
        "tokens": f"{len(tokens.train):,} to learn from, {len(tokens.val):,} to validate on, "
        f"vocabulary {run.tokenizer.vocab_size}",
        "seen": f"{run.step * run.tokens_a_step:,} tokens",
        "device": f"{run.config.speed.device}, {run.config.speed.precision}",
    }
    return {name: text for name, text in facts.items() if text}


def _groups(folder: RunFolder) -> list[dict[str, Any]]:
    """Return the samples by step, the last first: temperatures, and for each prompt its texts by temperature."""
    found: dict[int, dict[str, dict[float, str]]] = {}
    for one in metrics.read_lines(folder.samples):
        found.setdefault(one["step"], {}).setdefault(one["prompt"], {})[one["temperature"]] = one["text"]
    return [
        {"step": step, "temperatures": sorted({t for texts in prompts.values() for t in texts}), "prompts": prompts}
        for step, prompts in sorted(found.items(), reverse=True)
    ]
