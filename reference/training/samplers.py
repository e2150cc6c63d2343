"""Ways of sampling compared on one model: how varied the texts are, and how probable the model finds them.

    distinct-n = different n-grams / n-grams, over all texts      self-BLEU = mean BLEU of each text against the others
    perplexity = exp(-mean ln p(y_t | y_<t)), under the model itself, without temperature and filters

Distinct-n: Li et al. 2016. Self-BLEU: Zhu et al. 2018; 0 for texts that share nothing, 1 for equal ones. Greedy search
gives the most probable and least varied texts, a high temperature the opposite (Holtzman et al. 2020).
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from conformkit.reference.checkpoints import replace_file
from conformkit.reference.generation import _evaluating
from conformkit.reference.kv_cache import continue_ids
from conformkit.reference.model import TinyTransformerLM
from conformkit.reference.tokenizers import Tokenizer
from conformkit.reference.training import figures
from conformkit.reference.training.folder import FolderError

__all__ = ["WAYS", "SamplerScore", "compared", "distinct", "self_bleu", "table", "write_comparison"]

TEXTS = 8
"""Texts that each way writes for each prompt."""

WAYS: Mapping[str, Mapping[str, Any]] = {
    "greedy": {"temperature": 0.0},
    "temperature 0.5": {"temperature": 0.5},
    "temperature 1": {"temperature": 1.0},
    "temperature 1.5": {"temperature": 1.5},
    "top-k 10": {"top_k": 10},
    "top-p 0.9": {"top_p": 0.9},
    "penalty 1.2": {"repetition_penalty": 1.2},
}


@dataclass(frozen=True)
class SamplerScore:
    """One way of sampling, measured on all its texts."""

    way: str
    distinct_1: float
    distinct_2: float
    distinct_4: float
    self_bleu: float
    perplexity: float
    texts: tuple[str, ...] = field(repr=False)


def compared(
    model: TinyTransformerLM, tokenizer: Tokenizer, prompts: Sequence[str], tokens: int, seed: int = 0
) -> list[SamplerScore]:
    """Let each way write several texts for each prompt, and measure them. Raises as `continuation`."""
    found = []
    for way, options in WAYS.items():
        torch.manual_seed(seed)
        written, surprise = [], []
        for prompt in prompts:
            start = torch.tensor([tokenizer.encode(prompt)], device=model.head.weight.device).expand(TEXTS, -1)
            ids = continue_ids(model, start, tokens, **options)  # (N, T + n)
            written += ids[:, start.shape[1] :].tolist()
            surprise.append(_surprise(model, ids, start.shape[1]))
        mean = torch.cat(surprise).mean().item() if tokens else 0.0
        found.append(
            SamplerScore(
                way=way,
                distinct_1=distinct(written, 1),
                distinct_2=distinct(written, 2),
                distinct_4=distinct(written, 4),
                self_bleu=self_bleu(written),
                perplexity=math.exp(min(mean, 700.0)),
                texts=tuple(tokenizer.decode(row) for row in written),
            )
        )
    return found


def distinct(rows: Sequence[Sequence[int]], n: int) -> float:
    """Return the share of n-grams that are different; 0 where rows are too short to have any."""
    grams = [tuple(row[i : i + n]) for row in rows for i in range(len(row) - n + 1)]
    return len(set(grams)) / len(grams) if grams else 0.0


def self_bleu(rows: Sequence[Sequence[int]], most: int = 4) -> float:
    """Return the mean BLEU, 0 to 1, of each row against all others, of n-grams up to `most`; 0 for a single row."""
    if len(rows) < 2:
        return 0.0
    return sum(_bleu(row, [*rows[:i], *rows[i + 1 :]], most) for i, row in enumerate(rows)) / len(rows)


def _bleu(row: Sequence[int], others: Sequence[Sequence[int]], most: int) -> float:
    """Return the geometric mean of clipped precisions; all rows have one length, so none is too short."""
    logs = []
    for n in range(1, most + 1):
        own = _grams(row, n)
        if not own:
            return 0.0
        limits: Counter[tuple[int, ...]] = Counter()
        for other in others:
            limits |= _grams(other, n)
        shared = (own & limits).total()
        if not shared:
            return 0.0
        logs.append(math.log(shared / own.total()))
    return math.exp(sum(logs) / len(logs))


def _grams(row: Sequence[int], n: int) -> Counter[tuple[int, ...]]:
    return Counter(tuple(row[i : i + n]) for i in range(len(row) - n + 1))


@torch.no_grad()
def _surprise(model: TinyTransformerLM, ids: Tensor, start: int) -> Tensor:
    """Return -ln p of each id from `start` on, each given at most block_size ids before it: (N, T) → (N · n,)."""
    found = []
    with _evaluating(model):
        for end in range(start, ids.shape[1], max(model.block_size // 2, 1)):
            stop = min(end + max(model.block_size // 2, 1), ids.shape[1])
            first = max(stop - 1 - model.block_size, 0)
            log_p = model(ids[:, first : stop - 1]).log_softmax(dim=-1)  # (N, stop - 1 - first, V)
            own = log_p.gather(-1, ids[:, first + 1 : stop, None])[..., 0]  # (N, stop - 1 - first)
            found.append(-own[:, end - first - 1 :].flatten())
    return torch.cat(found) if found else torch.zeros(0)


def table(rows: Sequence[SamplerScore]) -> list[str]:
    """Return the comparison as lines for a terminal."""
    head = ("way", "distinct-1", "distinct-2", "distinct-4", "self-BLEU", "perplexity")
    cells = [head, *((r.way, *(f"{x:.3f}" for x in _numbers(r)), f"{r.perplexity:.3f}") for r in rows)]
    room = [max(len(row[column]) for row in cells) for column in range(len(head))]
    return [
        "  ".join(cell.ljust(room[i]) if i == 0 else cell.rjust(room[i]) for i, cell in enumerate(row)) for row in cells
    ]


def _numbers(row: SamplerScore) -> tuple[float, ...]:
    return row.distinct_1, row.distinct_2, row.distinct_4, row.self_bleu


def write_comparison(rows: Sequence[SamplerScore], folder: Path, title: str) -> str:
    """Write samplers.json and samplers.png; return a sentence if the picture can't be drawn. Raises FolderError."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        content = json.dumps([asdict(row) for row in rows], indent=2, ensure_ascii=False) + "\n"
        replace_file(folder / "samplers.json", content.encode())
        if not figures.available():
            return figures.LACKING
        points = [(row.way, row.perplexity, row.distinct_4, row.self_bleu) for row in rows]
        replace_file(folder / "samplers.png", figures.as_png(figures.samplers_figure(points, title)))
    except (FileExistsError, NotADirectoryError) as error:
        raise FolderError(str(folder), f"not writable ({error.strerror})", "another place") from error
    return ""
