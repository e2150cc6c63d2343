"""The report of a run: one page for a browser, which fetches nothing, and its pictures as files."""

from __future__ import annotations

import base64
import unicodedata
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Any

from jinja2 import Environment, StrictUndefined

from conformkit.reference.attention_maps import attention_maps
from conformkit.reference.checkpoints import replace_file
from conformkit.reference.loss import bits_per_character, perplexity
from conformkit.reference.training import figures, history, metrics
from conformkit.reference.training.diagnosis import curves, diagnose
from conformkit.reference.training.folder import RunFolder
from conformkit.reference.training.session import Trained, TrainingSession, load_trained
from conformkit.reference.training.toml_text import as_toml

__all__ = ["page", "visible", "write_report"]


def write_report(session: TrainingSession, *, pictures: bool = True) -> str:
    """Write the page, and the pictures if they are wanted; return a sentence if they can't be drawn.

    Raises: OSError where a file can't be written.
    """
    folder = session.folder
    best = load_trained(folder.path)
    records = metrics.read_lines(folder.metrics)
    drawn = _pictures(session, best, records) if pictures and figures.available() else {}
    for name, content in drawn.items():
        replace_file(folder.path / f"{name}.png", content)
    lacking = figures.LACKING if pictures and not figures.available() else ""
    config = session.run.config
    text = page(
        "report.html", title=config.title or "a training run", source=config.source, facts=_facts(session, best),
        pictures={name: base64.b64encode(content).decode() for name, content in drawn.items()}, lacking=lacking,
        evaluations=[record for record in records if record["kind"] == "evaluation"], floor=session.floor,
        findings=diagnose(curves(records, session.floor)), groups=_groups(folder), config=as_toml(config.as_document()),
    )  # fmt: skip
    replace_file(folder.report, text.encode())
    return lacking


def page(template: str, **given: Any) -> str:
    """Return a page from a template next to this module; inserted text is escaped."""
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters["visible"] = visible
    folder = files("conformkit.reference.training")
    style = folder.joinpath("report.css").read_text(encoding="utf-8")
    return environment.from_string(folder.joinpath(template).read_text(encoding="utf-8")).render(style=style, **given)


def visible(text: str) -> str:
    """Return text as a page can show it: control characters, which a corpus may hold, as U+FFFD."""
    return "".join(c if c in "\n\t" or unicodedata.category(c)[0] != "C" else "\ufffd" for c in text)


def _pictures(session: TrainingSession, best: Trained, records: Sequence[Mapping[str, Any]]) -> dict[str, bytes]:
    ids = session.shown.cpu()
    tokens = [best.tokenizer.decode([number]) for number in ids.tolist()]
    training = figures.training_figure(records, session.floor, session.run.config.title)
    attention = figures.attention_figure(attention_maps(best.model, ids[None]), tokens)
    curve = figures.perplexity_figure(records, session.tokens.tokens_per_character)
    past = [(_when(session, step), weights) for step, weights in history.spread(session.folder)]
    drawn = {"training": training, "perplexity": curve, "attention": attention}
    if past:
        drawn["history"] = figures.history_figure(past, tokens)
    return {name: figures.as_png(figure) for name, figure in drawn.items()}


def _when(session: TrainingSession, step: int) -> str:
    """Name a step, and the number of passes over the text that it stands for."""
    return f"step {step}, epoch {step * session.run.tokens_a_step / len(session.tokens.train):.2g}"


def _facts(session: TrainingSession, best: Trained) -> dict[str, str]:
    """Return the facts at the top, by name."""
    run, tokens = session.run, session.tokens
    step, loss = run.best or (run.step, float("nan"))
    bits = bits_per_character(loss, tokens.tokens_per_character).item()
    facts = {
        "best validation loss": f"{loss:.4f} nats a token, at step {step} of {run.step}",
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
