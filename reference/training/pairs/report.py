"""The report of a run on pairs: one page for a browser, and its pictures as files."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from typing import Any

from conformkit.reference.checkpoints import read_checkpoint, replace_file
from conformkit.reference.training import figures, history, metrics
from conformkit.reference.training.diagnosis import curves, diagnose
from conformkit.reference.training.pairs.batches import as_batch, padding_share
from conformkit.reference.training.pairs.maps import seq2seq_attention_maps
from conformkit.reference.training.pairs.session import PairsSession, Translator, translator_from
from conformkit.reference.training.report import page
from conformkit.reference.training.toml_text import as_toml

__all__ = ["write_pairs_report"]

SHOWN = 60
"""Held-out pairs on the page; all are in samples.jsonl."""
TOLD = {
    "training": "Training loss raw and smoothed, validation loss with the best marked, learning rate, and norm of the "
    "gradients, over the steps.",
    "perplexity": "Perplexity of training and validation over the steps.",
    "history": "Weights of cross-attention, the mean of the heads, at several steps of the run.",
    "attention": "Weights of cross-attention by layer and head for one held-out pair: rows are target tokens, columns "
    "source tokens.",
}  # fmt: skip


def write_pairs_report(session: PairsSession, *, pictures: bool = True) -> str:
    """Write the page, and the pictures if they are wanted; return a sentence if they can't be drawn.

    Raises: OSError where a file can't be written.
    """
    folder, config = session.folder, session.run.config
    best = translator_from(read_checkpoint(folder.best))
    records = metrics.read_lines(folder.metrics)
    drawn = _pictures(session, best, records) if pictures and figures.available() else {}
    for name, content in drawn.items():
        replace_file(folder.path / f"{name}.png", content)
    lacking = figures.LACKING if pictures and not figures.available() else ""
    scores = json.loads(folder.scores.read_text(encoding="utf-8"))
    rows = [row for row in metrics.read_lines(folder.samples) if "beam" in row][:SHOWN]
    text = page(
        "pairs/report.html", title=config.title or "a training run", source=config.source,
        facts=_facts(session, best), told=TOLD, lacking=lacking, rows=rows,
        pictures={name: base64.b64encode(content).decode() for name, content in drawn.items()},
        evaluations=[record for record in records if record["kind"] == "evaluation"],
        findings=diagnose(curves(records, text=False)), scores={name: scores[name] for name in ("greedy", "beam")},
        bleu=scores["greedy"]["bleu"] is not None, config=as_toml(config.as_document()),
    )  # fmt: skip
    replace_file(folder.report, text.encode())
    return lacking


def _pictures(session: PairsSession, best: Translator, records: Sequence[Mapping[str, Any]]) -> dict[str, bytes]:
    source, target = session.shown
    ids = best.sides[0].encode(source), best.sides[1].encode(target)
    (src, tgt), _ = as_batch([ids], best.model.head.weight.device)
    maps = seq2seq_attention_maps(best.model, src, tgt).cross
    rows, columns = best.sides[1].named(tgt[0].tolist()), best.sides[0].named(src[0].tolist())
    training = figures.training_figure(records, None, session.run.config.title)
    past = [(f"step {step}", weights) for step, weights in history.spread(session.folder)]
    drawn = {"history": figures.as_png(figures.history_figure(past, columns, rows))} if past else {}
    return drawn | {
        "training": figures.as_png(training),
        "perplexity": figures.as_png(figures.perplexity_figure(records)),
        "attention": figures.as_png(figures.attention_figure(maps, columns, rows)),
    }


def _facts(session: PairsSession, best: Translator) -> dict[str, str]:
    """Return the facts at the top, by name."""
    run, corpus, data = session.run, session.corpus, session.run.config.data
    step, loss = run.best or (run.step, float("nan"))
    share = padding_share(run.buckets, run.config.training.batch_size)
    return {
        "task": data.task,
        "best validation loss": f"{loss:.4f} nats a token, at step {step} of {run.step}",
        "parameters": f"{sum(parameter.numel() for parameter in best.model.parameters()):,}",
        "pairs": f"{len(corpus.train):,} to learn from, {len(corpus.val):,} to validate on; "
        f"{'made by rule' if corpus.name == 'synthetic' else corpus.name}",
        "vocabularies": f"{run.sides[0].vocab_size} and {run.sides[1].vocab_size} {data.tokenizer}s",
        "padding": f"{share:.1%} of the ids in a batch, in {len(run.buckets.groups)} buckets",
        "device": f"{run.config.speed.device}, {run.config.speed.precision}",
    }
