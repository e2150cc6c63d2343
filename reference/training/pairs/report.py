"""The report of a run on pairs: one page for a browser, and its pictures as files."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

from conformkit.reference.checkpoints import read_checkpoint
from conformkit.reference.training import figures, history, metrics
from conformkit.reference.training.metrics import MetricRecord
from conformkit.reference.training.pages import TRAINING, number, publish_run, step
from conformkit.reference.training.pairs.batches import as_batch, padding_share
from conformkit.reference.training.pairs.maps import seq2seq_attention_maps
from conformkit.reference.training.pairs.session import PairsSession, Translator, translator_from

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["write_pairs_report"]

SHOWN = 60
"""Held-out pairs on the page; all are in samples.jsonl."""
TOLD = {
    "training": TRAINING,
    "perplexity": "Perplexity of training and validation over the steps.",
    "history": "Weights of cross-attention, the mean of the heads, at several steps of the run.",
    "attention": "Weights of cross-attention by layer and head for one held-out pair: rows are target tokens, columns "
    "source tokens.",
}  # fmt: skip


def write_pairs_report(session: PairsSession, *, pictures: bool = True) -> str:
    """Write the page, and the pictures if they are wanted; return a sentence if they can't be drawn.

    Raises: OSError where a file can't be written.
    """
    folder = session.folder
    best = translator_from(read_checkpoint(folder.best))
    scores = json.loads(folder.scores.read_text(encoding="utf-8"))
    return publish_run(
        folder, session.run.config, "pairs/report.html", lambda records: _pictures(session, best, records),
        columns={"step": step, "loss": number("loss"), "accuracy, given the right tokens before": number("accuracy")},
        pictures=pictures, told=TOLD, facts=_facts(session, best),
        rows=[row for row in metrics.read_lines(folder.samples) if "beam" in row][:SHOWN],
        scores={name: scores[name] for name in ("greedy", "beam")}, bleu=scores["greedy"]["bleu"] is not None,
    )  # fmt: skip


def _pictures(session: PairsSession, best: Translator, records: Sequence[MetricRecord]) -> dict[str, Figure]:
    source, target = session.shown
    ids = best.sides[0].encode(source), best.sides[1].encode(target)
    (src, tgt), _ = as_batch([ids], best.model.head.weight.device)
    maps = seq2seq_attention_maps(best.model, src, tgt).cross
    rows, columns = best.sides[1].named(tgt[0].tolist()), best.sides[0].named(src[0].tolist())
    past = [(f"step {at}", weights) for at, weights in history.spread(session.folder)]
    return {
        **({"history": figures.history_figure(past, columns, rows)} if past else {}),
        "training": figures.training_figure(records, None, session.run.config.title),
        "perplexity": figures.perplexity_figure(records),
        "attention": figures.attention_figure(maps, columns, rows),
    }


def _facts(session: PairsSession, best: Translator) -> dict[str, str]:
    """Return the facts at the top, by name."""
    run, corpus, data = session.run, session.corpus, session.run.config.data
    at, loss = run.best or (run.step, float("nan"))
    share = padding_share(run.buckets, run.config.training.batch_size)
    return {
        "task": data.task,
        "best validation loss": f"{loss:.4f} nats a token, at step {at} of {run.step}",
        "parameters": f"{sum(parameter.numel() for parameter in best.model.parameters()):,}",
        "pairs": f"{len(corpus.train):,} to learn from, {len(corpus.val):,} to validate on; "
        f"{'made by rule' if corpus.name == 'synthetic' else corpus.name}",
        "vocabularies": f"{run.sides[0].vocab_size} and {run.sides[1].vocab_size} {data.tokenizer}s",
        "padding": f"{share:.1%} of the ids in a batch, in {len(run.buckets.groups)} buckets",
        "device": f"{run.config.speed.device}, {run.config.speed.precision}",
    }
