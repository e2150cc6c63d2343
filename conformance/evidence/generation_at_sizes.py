"""Generated text at every size: greedy text by the model's own logits, sampled ids by their own probabilities."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from conformkit.conformance.assertions.checks import check
from conformkit.conformance.assertions.draws import Draw
from conformkit.conformance.assertions.sizes import Case
from conformkit.conformance.binding.sizes import within
from conformkit.conformance.evidence.at_sizes import check_at_sizes
from conformkit.conformance.evidence.greedy_text import GREEDY, read_logits, written
from conformkit.conformance.evidence.logits import rows
from conformkit.conformance.subject.component import Instance, Subject
from conformkit.spec.arrays import Array
from conformkit.spec.generation import next_token_probabilities

__all__ = ["check_greedy_at_sizes", "check_sampled_at_sizes"]

_MODEL: Mapping[str, int] = {"d_model": 12, "num_heads": 2, "num_layers": 1, "d_ff": 16}
_ROWS = 8
"""Prompts at least: another context does not change every choice."""
_SHORT = 6
"""A block that is shorter than prompts are: what is wrong then at small sizes is the finding of GEN-CROP."""
_LOOKED_AT = 4
"""Windows of a long text after which the next id is looked at."""
_FEWEST, _MOST = 400, 2000
"""Ids that are drawn: more of them from a small vocabulary, which costs less."""
_NUMBERS = 200_000
_NEVER = 1e-9
_SIGMAS = 7.0
_RANKS = (8, 16, 32, 40, 50, 64, 100, 128, 200, 256, 400, 512, 1000)
_EVEN = 0.05
"""A gain that makes all ids about equally probable."""
_P = 0.9


def check_greedy_at_sizes(model: Subject, draw: Draw, *, after: str) -> None:
    """Check that each new id has the highest logit after the ids before it, for long prompts and texts."""

    def check_text(sizes: Case) -> None:
        own = draw.at(sizes)
        instance = _built(model, sizes).scatter(own, gain=1.5)
        prompts = own.ids(sizes["vocab_size"], rows(model, max(sizes["batch"], _ROWS)), sizes["tokens"])
        text = written(instance, prompts, sizes["new_ids"], **GREEDY)
        for end in _ends(sizes):
            _check_highest(instance, text, end)

    def cost(sizes: Case) -> float:
        window = min(sizes["tokens"] + sizes["new_ids"], sizes["block_size"])
        batch = max(sizes["batch"], _ROWS)
        return float(batch * sizes["new_ids"] * window * (window * 100 + 16 * sizes["vocab_size"] + 10_000))

    def within_the_block(sizes: Case) -> dict[str, int]:
        return _fitting(model, {**sizes, "block_size": max(sizes["block_size"], sizes["tokens"] + sizes["new_ids"])})

    check_at_sizes(draw, check_text, cost, within_the_block, after=after, coarse=True)
    short = {
        **draw.domain,
        "block_size": (_SHORT, _SHORT),
        "vocab_size": (7, 40),
        "batch": (1, 2),
        "new_ids": (1, 4),
    }
    check_at_sizes(
        draw, check_text, cost, lambda sizes: _fitting(model, sizes), after="GEN-CROP", coarse=True, domain=short
    )


def check_sampled_at_sizes(model: Subject, draw: Draw, *, after: str) -> None:
    """Check that ids of every rank are sampled as often as they should be, for large vocabularies and a large top-k."""

    def check_ids(sizes: Case) -> None:
        instance = _built(model, sizes).scatter(draw.at(sizes), gain=_EVEN)
        for options in _options(model, sizes):
            _check_ranks(instance, draw.at(sizes), options)

    def nearest(sizes: Case) -> dict[str, int]:
        return _fitting(model, {**sizes, "vocab_size": max(sizes["vocab_size"], sizes.get("top_k", 1))})

    def cost(sizes: Case) -> float:
        return float(_draws(sizes["vocab_size"]) * sizes["vocab_size"] * 300)

    domain = {name: ends for name, ends in draw.domain.items() if name != "top_k" or model.offers("top-k")}
    check_at_sizes(
        draw, check_ids, cost, nearest, after=after, domain=domain, following=("vocab_size", "block_size"), coarse=True
    )


def _built(model: Subject, sizes: Case) -> Instance:
    taken = {name: size for name, size in sizes.items() if name in {"vocab_size", "block_size"}}
    return model.build(**{**_MODEL, "block_size": 8, **taken})  # type: ignore[arg-type]


def _fitting(model: Subject, sizes: Case) -> dict[str, int]:
    found = model.sizes(**{**_MODEL, **{name: sizes[name] for name in ("vocab_size", "block_size") if name in sizes}})
    others = {name: size for name, size in sizes.items() if name not in found}
    return {**{name: int(found[name]) for name in sizes if name in found}, **within(others, model.bound.limits)}


def _ends(sizes: Case) -> list[int]:
    """Return where the text ends before the new ids that are looked at: the first, the last, and some between."""
    first, last = sizes["tokens"], sizes["tokens"] + sizes["new_ids"] - 1
    return sorted({round(first + (last - first) * part / (_LOOKED_AT - 1)) for part in range(_LOOKED_AT)})


def _check_highest(instance: Instance, text: Array, end: int) -> None:
    logits = read_logits(instance, text[:, :end])
    chosen = np.take_along_axis(logits, text[:, end : end + 1], axis=-1)[:, 0]
    spread = logits.max(axis=-1) - logits.min(axis=-1)
    behind = (logits.max(axis=-1) - chosen) / np.maximum(spread, 1e-30)
    row = int(np.argmax(behind))
    check(
        f"id {text[row, end]} at position {end} is not the most probable after the ids before it, "
        f"which is {int(logits[row].argmax())}",
        bool(behind[row] <= 10 * instance.subject.tolerance()),
    )


def _options(model: Subject, sizes: Case) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = [{}]
    if "top_k" in sizes:
        found.append({"top_k": sizes["top_k"]})
    if model.offers("top-p"):
        found.append({"top_p": _P})
    return found


def _check_ranks(instance: Instance, draw: Draw, options: dict[str, Any]) -> None:
    """Compare how often the most probable ids are sampled, for several numbers of them."""
    vocab_size = instance.sizes["vocab_size"]
    prompt = draw.ids(vocab_size, 1, instance.subject.as_asked.tokens(2))
    logits = read_logits(instance, prompt)[0]
    probabilities = -np.sort(-next_token_probabilities(logits, **options))
    rank = np.empty(vocab_size, np.int64)
    rank[np.argsort(-logits, kind="stable")] = np.arange(vocab_size)
    draws = _draws(vocab_size)
    text = written(instance, np.repeat(prompt, draws, axis=0), 1, temperature=1.0, **options)
    ranks = rank[text[:, -1]]
    kept = int((probabilities > 0.0).sum())
    told = ", ".join(f"{name} = {value}" for name, value in options.items()) or "no filter"
    check(
        f"with {told}, an id of rank {int(ranks.max()) + 1} was sampled, want the {kept} most probable at most",
        bool(ranks.max() <= kept),  # rounding may decide on the last one
    )
    for most in (most for most in (*_RANKS, kept // 2, 3 * kept // 4, kept - 1) if 0 < most < kept):
        share, want = float((ranks < most).mean()), float(probabilities[:most].sum())
        allowed = _SIGMAS * float(np.sqrt(want * (1.0 - want) / draws)) + 1.0 / draws
        check(
            f"with {told}, {share:.3f} of the sampled ids are among the {most} most probable, want {want:.3f}",
            abs(share - want) <= allowed and (share < 1.0 or want**draws > _NEVER),
        )


def _draws(vocab_size: int) -> int:
    return max(_FEWEST, min(_MOST, _NUMBERS // vocab_size))
