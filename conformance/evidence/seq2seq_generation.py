"""What an encoder-decoder writes for its sources, and what its own logits say that it should have written.

What is expected comes from the model's own logits, called on a source and the target so far. Ids of the pad never come
in a text that is judged: whether one that was written is read again differs among right models.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from conformkit.conformance.assertions.checks import (
    ClauseFailure,
    NotApplicable,
    check,
    check_equal,
    check_finite,
    check_shape,
)  # fmt: skip
from conformkit.conformance.assertions.draws import Draw
from conformkit.conformance.evidence.beams import Beams
from conformkit.conformance.evidence.logits import parts, rows
from conformkit.conformance.subject.component import Instance, Outcome, Subject
from conformkit.conformance.subject.example_inputs import real_ids
from conformkit.spec.arrays import Array
from conformkit.spec.decoding import Model
from conformkit.spec.padding import padding_mask, target_mask

__all__ = [
    "EVERY", "Pairs", "authored", "begin", "by_either", "drawn", "greedy", "logits_after", "new_ids", "padded", "plain",
    "readers", "sampled", "searched", "sources", "speaker", "unwatched", "write",
]  # fmt: skip


_BEGIN = 1
MARGIN = 3e-3
"""How far the best logit is ahead, relative to all logits' spread: hundreds of times float32's rounding."""
EVERY = 9
"""The length of the longest target that is asked for."""
_SIZES = {
    "src_vocab_size": 13, "tgt_vocab_size": 19, "d_model": 12, "num_heads": 3, "num_encoder_layers": 1,
    "num_decoder_layers": 2, "d_ff": 20, "max_len": 12,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Pairs:
    """Sources (B, S), and the ids (B, n) that the model's own logits make of them, greedily."""

    instance: Instance
    src: Array
    text: Array

    @property
    def count(self) -> int:
        """The number of new ids."""
        return int(self.text.shape[1])


# --- models and sources -----------------------------------------------------------------------------------------------


def speaker(model: Subject, **wanted: Any) -> Instance:
    """Build a model to write with; both vocabularies have one size where they share a table."""
    sizes = {**_SIZES, **wanted}
    if model.variant.shared_embeddings:
        sizes["src_vocab_size"] = sizes["tgt_vocab_size"]
    return model.build(**sizes)


def sources(instance: Instance, draw: Draw, batch: int, length: int) -> Array:
    """Draw sources (B, S) without padding."""
    sizes = instance.sizes
    length = min(instance.subject.tokens(length), sizes["max_len"])
    return real_ids(draw, sizes["src_vocab_size"], sizes["pad_id"], rows(instance.subject, batch), length)


def padded(instance: Instance, src: Array, length: int) -> Array:
    """Append padding to sources (B, S) up to a length."""
    out = np.full((len(src), length), instance.sizes["pad_id"])
    out[:, : src.shape[1]] = src
    return out


def begin(instance: Instance) -> int:
    """Return the begin id: 1, or another one where that is the pad's."""
    return _BEGIN if instance.sizes["pad_id"] != _BEGIN else _BEGIN + 1


def authored(
    instance: Instance, draw: Draw, *, steps: int, keep: int = 4, length: int = 5, avoid: Sequence[int] = ()
) -> Pairs:
    """Draw weights and sources until greedy text varies; keep the rows that vary most and have no narrow choice.

    Rows that hold the pad's id, or one to `avoid`, are left out.
    """
    keep = rows(instance.subject, keep)
    unwanted = [instance.sizes["pad_id"], *avoid]
    chosen: Array = np.empty(0, np.int64)
    for gain in (2.5, 1.7, 3.5, 2.0):
        instance.scatter(draw, gain=gain)
        src = sources(instance, draw, 32, length)
        text, narrowest = _told(instance, src, steps)
        clear = (narrowest > MARGIN) & ~np.isin(text, unwanted).any(axis=1)
        variety = np.array([len(set(row)) for row in text.tolist()])
        chosen = np.lexsort((-variety, ~clear))[:keep]
        chosen = chosen[clear[chosen]]
        if len(chosen) == keep and (keep < 3 or len(np.unique(text[chosen], axis=0)) >= 3):
            break
    if not len(chosen):
        raise NotApplicable("no greedy text of it is certain, and without the pad's id")
    return Pairs(instance, src[chosen], text[chosen])


def _told(instance: Instance, src: Array, steps: int) -> tuple[Array, Array]:
    """Write greedily by the model's own logits; return ids (B, n) and each row's narrowest choice (B,)."""
    tgt = np.full((len(src), 1), begin(instance))
    narrowest = np.full(len(src), np.inf)
    for _ in range(steps):
        out = logits_after(instance, src, tgt)  # (B, V)
        ranked = np.sort(out, axis=-1)
        margin = (ranked[:, -1] - ranked[:, -2]) / np.maximum(ranked[:, -1] - ranked[:, 0], 1e-30)
        np.minimum(narrowest, margin, out=narrowest)
        tgt = np.concatenate([tgt, out.argmax(axis=-1)[:, None]], axis=1)
    return tgt[:, 1:], narrowest


# --- the model's own logits -------------------------------------------------------------------------------------------


def logits_after(instance: Instance, src: Array, tgt: Array, *, read_pads: bool = False) -> Array:
    """Return the logits (B, V) after each target so far, in as many calls as its limits want.

    Padding of the target is hidden unless it is to be read.
    """
    found, pad = [], instance.sizes["pad_id"]
    tgt_mask = target_mask(np.where(tgt == pad, pad + 1, tgt) if read_pads else tgt, pad)
    for piece in np.array_split(np.arange(len(src)), parts(instance.subject, len(src))):
        out = instance(src[piece], tgt[piece], padding_mask(src[piece], pad), tgt_mask[piece])
        found.append(np.asarray(out[:, -1], np.float64))
    logits = np.concatenate(found)
    check_finite("the model's logits", logits)
    return logits


# --- what it writes ---------------------------------------------------------------------------------------------------


def write(
    instance: Instance, src: Array, count: int, *, method: str = "generate", masked: bool = True, mode: str = "eval",
    seed: int | None = 1, watch: bool = False, echo: bool = False, **options: Any,
) -> Outcome:  # fmt: skip
    """Let the implementation write; `masked` says whether it is told which places of the source are padding."""
    mask = padding_mask(src, instance.sizes["pad_id"]) if masked else None
    bound = instance.subject.bound.methods[method]
    given = {"max_new_tokens": count, "bos_id": begin(instance), **options}
    if "use_cache" in bound.call.names():
        given.setdefault("use_cache", False)  # whatever its default is: caches have clauses of their own
    if given.get("eos_id") is None and bound.insists("eos_id"):
        given["eos_id"] = -1  # who insists on one gets one that never comes
    return instance.call(
        src, mask, method=method, options=given, mode=mode, seed=seed, watch=watch, echo=echo, record=True
    )


_IN_FRONT: WeakKeyDictionary[Subject, dict[str, bool]] = WeakKeyDictionary()
"""Whether a method returns the begin id in front."""


def new_ids(instance: Instance, out: Array, count: int, batch: int) -> Array:
    """Return the ids (B, n) that are new; the begin id may come in front."""
    front = int(_begins(instance))
    fits = out.ndim == 2 and len(out) == batch and front <= out.shape[1] <= front + count
    check(f"at most {count} ids for {batch} sources come in an array {out.shape}", fits)
    if front:
        check_equal("the begin id in front", out[:, 0], np.full(batch, begin(instance)))
    return np.asarray(out[:, front:], np.int64)


def _begins(instance: Instance, method: str = "generate") -> bool:
    """Ask for one id, and look whether two come of which the first is the begin id."""
    known = _IN_FRONT.setdefault(instance.subject, {})
    if method not in known:
        src = sources(instance, Draw(0, "a source"), 1, 3)
        options = {"beam_width": 1} if method == "beam_search" else plain(instance.subject)
        out = write(instance, src, 1, method=method, **options).out
        known[method] = out.size == 2 and bool(out.flat[0] == begin(instance))
    return known[method]


def plain(model: Subject) -> Mapping[str, Any]:
    """Return the options of the simplest text: sampled where temperature is offered, greedy where it is not."""
    return {"temperature": 1.0} if model.offers("temperature") else {}


def greedy(instance: Instance, src: Array, count: int, **options: Any) -> Array:
    """Let the implementation write greedily; return the new ids, all that were asked for."""
    got = unwatched(instance, src, count, **options)
    check_shape(f"{count} ids for {len(src)} sources", got, (len(src), count))
    return got


def unwatched(instance: Instance, src: Array, count: int, **options: Any) -> Array:
    """Let the implementation write greedily; return the new ids, however many there are."""
    asked = {"temperature": 0.0, **options} if instance.subject.offers("temperature") else options
    return new_ids(instance, write(instance, src, count, **asked).out, count, len(src))


def sampled(instance: Instance, src: Array, count: int, **options: Any) -> Array:
    """Let the implementation draw; return the new ids (B, n)."""
    out = write(instance, src, count, **{"temperature": 1.0, **options}).out
    got = new_ids(instance, out, count, len(src))
    check_shape(f"{count} ids for {len(src)} sources", got, (len(src), count))
    return got


def drawn(instance: Instance, src: Array, draws: int, draw: Draw, **options: Any) -> Array:
    """Return (R, draws) first ids for each of the sources (R, S), which take turns in the batch."""
    batch, seed = np.tile(src, (draws, 1)), draw.integer(0, 1 << 30)
    pieces = np.array_split(batch, parts(instance.subject, len(batch)))
    outs = [sampled(instance, piece, 1, seed=seed + i, **options)[:, 0] for i, piece in enumerate(pieces)]
    return np.concatenate(outs).reshape(draws, len(src)).T


# --- beams ------------------------------------------------------------------------------------------------------------


def searched(instance: Instance, src: Array, steps: int, width: int, **options: Any) -> Beams:
    """Search, check the shapes, and take the begin id away where it comes in front."""
    found = write(instance, src, steps, method="beam_search", beam_width=width, **options)
    out, front = found.out, int(_begins(instance, "beam_search"))
    fits = out.ndim == 3 and len(out) == len(src) and front <= out.shape[2] <= front + steps
    least = min(width, _texts(instance.sizes["tgt_vocab_size"], steps, ends=options.get("eos_id") is not None))
    fits = fits and least <= out.shape[1] <= width
    check(f"{width} beams of at most {steps} ids for {len(src)} sources come in an array {out.shape}", fits)
    check("no scores come beside the beams", found.extra is not None)
    assert found.extra is not None
    check_shape("the scores", found.extra, out.shape[:2])
    return Beams(np.asarray(out[..., front:], np.int64), np.asarray(found.extra, np.float64))


def _texts(size: int, steps: int, *, ends: bool) -> int:
    """Return how many texts there are: a search for more beams than that has nothing to fill the others with."""
    if not ends:
        return int(size**steps)
    return int((size - 1) ** steps + sum((size - 1) ** before for before in range(steps)))


def readers(instance: Instance, src: Array) -> list[Model]:
    """Return the model's logits after targets of one source (S,), a written pad hidden and read: both are right."""
    return [_reader(instance, src, read_pads=read_pads) for read_pads in (False, True)]


def _reader(instance: Instance, src: Array, *, read_pads: bool) -> Model:
    known: dict[bytes, Array] = {}
    models: list[Instance] = []

    def logits(targets: Array) -> Array:
        new = [row for row in targets if row.tobytes() not in known]
        if not models:
            models.append(_with_another_pad(instance) if read_pads else instance)
        if new:
            found = logits_after(models[0], np.tile(src, (len(new), 1)), np.stack(new), read_pads=read_pads)
            found = found[:, : instance.sizes["tgt_vocab_size"]]
            known.update((row.tobytes(), out) for row, out in zip(new, found, strict=True))
        return np.stack([known[row.tobytes()] for row in targets])

    return logits


def _with_another_pad(instance: Instance) -> Instance:
    """Return a model with its weights whose pad is one id more, which never comes; itself where a mask hides pads."""
    bound = instance.subject.bound
    if {"tgt_mask", "tgt_padding"} & bound.call.names() or "pad_id" not in bound.construct.names() or not bound.rules:
        return instance
    size = max(instance.sizes["src_vocab_size"], instance.sizes["tgt_vocab_size"])
    other = {"src_vocab_size": size + 1, "tgt_vocab_size": size + 1, "pad_id": size}
    twin = instance.subject.construct({**instance.sizes, **other})
    own = instance.read()
    return twin.write({name: _grown(own[name], wanted.shape) for name, wanted in twin.canonical.items()})


def _grown(weight: Array, shape: Sequence[int]) -> Array:
    """Append zeros up to a shape: rows of ids that are more."""
    return np.pad(weight, [(0, wanted - have) for wanted, have in zip(shape, weight.shape, strict=True)])


def by_either(readers: Sequence[Model], judge: Callable[..., None], *facts: Any) -> None:
    """Judge by one way of reading what was written, and where that does not hold by the other."""
    *first, last = readers
    for reader in first:
        with suppress(ClauseFailure):
            judge(reader, *facts)
            return
    judge(last, *facts)
