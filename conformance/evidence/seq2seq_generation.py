"""The text that an encoder-decoder generates, and the text that its own logits call for.

What is expected comes from the model's own logits, called on a source and the target so far. The pad id never occurs
in a judged text: right models differ in whether they read a generated pad.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from conformkit.conformance.assertions.checks import (
    ClauseFailure,
    NotApplicable,
    check,
    check_equal,
    check_finite,
    check_shape,
    supposing,
)  # fmt: skip
from conformkit.conformance.assertions.draws import Draw
from conformkit.conformance.assertions.sizes import Case
from conformkit.conformance.binding.sizes import NoSizeError, nearest_allowed
from conformkit.conformance.evidence.beams import Beams, number_of_texts
from conformkit.conformance.evidence.logits import parts, rows
from conformkit.conformance.evidence.text_slips import of_text
from conformkit.conformance.evidence.writers_at_sizes import constructed_writer, found_writer
from conformkit.conformance.subject.component import Instance, Subject
from conformkit.conformance.subject.example_inputs import real_ids
from conformkit.conformance.subject.outcomes import Outcome
from conformkit.spec.arrays import Array
from conformkit.spec.decoding import Model
from conformkit.spec.padding import padding_mask, target_mask

__all__ = [
    "EVERY",
    "Pairs",
    "authored",
    "begin",
    "build_generator",
    "by_either",
    "drawn",
    "greedy",
    "logits_after",
    "nearest_vocabulary",
    "nearest_writer",
    "new_ids",
    "padded",
    "plain",
    "ragged",
    "readers",
    "sampled",
    "searched",
    "sources",
    "unwatched",
    "write",
]  # fmt: skip


_BEGIN = 1
MARGIN = 3e-3
"""Lead of the best logit, relative to the spread of all logits: hundreds of times float32's rounding."""
EVERY = 9
"""The length of the longest requested target."""
_SIZES = {
    "src_vocab_size": 13, "tgt_vocab_size": 19, "d_model": 12, "num_heads": 3, "num_encoder_layers": 1,
    "num_decoder_layers": 2, "d_ff": 20, "max_len": 12,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Pairs:
    """Sources (B, S), and the greedy ids (B, n) by the model's own logits."""

    instance: Instance
    src: Array
    text: Array

    @property
    def count(self) -> int:
        """The number of new ids."""
        return int(self.text.shape[1])


# --- models and sources -----------------------------------------------------------------------------------------------


def build_generator(model: Subject, **wanted: Any) -> Instance:
    """Build a model that generates; both vocabularies have the same size if they share a table."""
    return model.build(**_asked(model, **wanted))


def _asked(model: Subject, **wanted: Any) -> dict[str, Any]:
    sizes = {**_SIZES, **wanted}
    if model.variant.shared_embeddings:
        sizes["src_vocab_size"] = sizes["tgt_vocab_size"]
    return sizes


def nearest_writer(model: Subject, sizes: Case) -> dict[str, int]:
    """Return the sizes within a model's limits that are nearest to these: with the begin id, a target has one more."""
    limits = model.bound.limits
    wanted = {name: sizes[name] for name in ("tgt_vocab_size",) if name in sizes}
    built = model.sizes(**_asked(model, max_len=max(sizes["keys"], sizes["tokens"] + 1), **wanted,
                                 **constructed_writer(sizes)))  # fmt: skip
    most = built["max_len"]
    found = {**{name: built[name] for name in wanted}, **found_writer(sizes, built),
             "batch": nearest_allowed("batch", sizes["batch"], limits),
             "keys": min(nearest_allowed("tokens", sizes["keys"], limits), most),
             "tokens": min(nearest_allowed("tokens", sizes["tokens"] + 1, limits), most) - 1}  # fmt: skip
    if found["tokens"] < 1:
        raise NoSizeError("its limits leave no room for a begin id and a new one")
    return {name: found.get(name, size) for name, size in sizes.items()}


def nearest_vocabulary(model: Subject, sizes: Case) -> dict[str, int]:
    """Return the target's vocabulary within a model's limits that is nearest to this one, of top_k ids at least."""
    wanted = max(sizes["tgt_vocab_size"], sizes.get("top_k", 0) + 2)  # one is the pad, one is cut off
    return {**sizes, "tgt_vocab_size": model.sizes(**_asked(model, tgt_vocab_size=wanted))["tgt_vocab_size"]}


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


def ragged(instance: Instance, src: Array, draw: Draw) -> Array:
    """Replace the ends of sources (B, S) by padding, a drawn number of ids in each but the last."""
    batch, length = src.shape
    lengths = 1 + draw.ids(length, batch, 1)
    lengths[-1] = length
    return np.where(np.arange(length) < lengths, src, instance.sizes["pad_id"])


def begin(instance: Instance) -> int:
    """Return the begin id: 1, or another one if 1 is the pad."""
    return _BEGIN if instance.sizes["pad_id"] != _BEGIN else _BEGIN + 1


def authored(
    instance: Instance, draw: Draw, *, steps: int, keep: int = 4, length: int = 5, avoid: Sequence[int] = ()
) -> Pairs:
    """Draw weights and sources until greedy text varies; keep the rows that vary most and have no close choice.

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
        raise NotApplicable("it has no certain greedy text without the pad id")
    told = Pairs(instance, src[chosen], text[chosen])
    first = np.full((len(told.src), 1), begin(instance))
    supposing(of_text(partial(logits_after, instance, told.src), first, told.text, instance.sizes["max_len"]))
    return told


def _told(instance: Instance, src: Array, steps: int) -> tuple[Array, Array]:
    """Write greedily by the model's own logits; return ids (B, n) and the smallest lead in each row (B,)."""
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
    """Return the logits (B, V) after each target so far, in as many calls as its limits need.

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
    """Let the implementation generate; `masked` says whether it gets a mask of the source's padding."""
    mask = padding_mask(src, instance.sizes["pad_id"]) if masked else None
    bound = instance.subject.bound.methods[method]
    given = {"max_new_tokens": count, "bos_id": begin(instance), **options}
    if "use_cache" in bound.call.names():
        given.setdefault("use_cache", False)  # whatever its default: caches have separate clauses
    if given.get("eos_id") is None and bound.insists("eos_id"):
        given["eos_id"] = -1  # where one is required, an id that never occurs
    return instance.call(
        src, mask, method=method, options=given, mode=mode, seed=seed, watch=watch, echo=echo, record=True
    )


def new_ids(instance: Instance, out: Array, count: int, batch: int) -> Array:
    """Return the new ids (B, n); the begin id may come first."""
    front = int(_begins(instance))
    fits = out.ndim == 2 and len(out) == batch and front <= out.shape[1] <= front + count
    check(f"at most {count} ids for {batch} sources are returned in an array {out.shape}", fits)
    if front:
        check_equal("the begin id at the start", out[:, 0], np.full(batch, begin(instance)))
    return np.asarray(out[:, front:], np.int64)


def _begins(instance: Instance, method: str = "generate") -> bool:
    """Return whether a method returns the begin id first."""
    return instance.subject.once(("begins", method), lambda: _begins_now(instance, method))


def _begins_now(instance: Instance, method: str) -> bool:
    """Ask for one id, and see whether two are returned, the begin id first."""
    src = sources(instance, Draw(0, "a source"), 1, 3)
    options = {"beam_width": 1} if method == "beam_search" else plain(instance.subject)
    out = write(instance, src, 1, method=method, **options).out
    return out.size == 2 and bool(out.flat[0] == begin(instance))


def plain(model: Subject) -> Mapping[str, Any]:
    """Return the options of the simplest text: sampled where temperature is offered, greedy where it is not."""
    return {"temperature": 1.0} if model.offers("temperature") else {}


def greedy(instance: Instance, src: Array, count: int, **options: Any) -> Array:
    """Let the implementation generate greedily; return exactly the requested number of new ids."""
    got = unwatched(instance, src, count, **options)
    check_shape(f"{count} ids for {len(src)} sources", got, (len(src), count))
    return got


def unwatched(instance: Instance, src: Array, count: int, **options: Any) -> Array:
    """Let the implementation generate greedily; return the new ids, however many."""
    asked = {"temperature": 0.0, **options} if instance.subject.offers("temperature") else options
    return new_ids(instance, write(instance, src, count, **asked).out, count, len(src))


def sampled(instance: Instance, src: Array, count: int, **options: Any) -> Array:
    """Let the implementation sample; return the new ids (B, n)."""
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
    """Search, check the shapes, and remove a leading begin id."""
    found = write(instance, src, steps, method="beam_search", beam_width=width, **options)
    out, front = found.out, int(_begins(instance, "beam_search"))
    fits = out.ndim == 3 and len(out) == len(src) and front <= out.shape[2] <= front + steps
    least = min(width, number_of_texts(instance.sizes["tgt_vocab_size"], steps, ends=options.get("eos_id") is not None))
    fits = fits and least <= out.shape[1] <= width
    check(f"{width} beams of at most {steps} ids for {len(src)} sources are returned in an array {out.shape}", fits)
    check("no scores are returned with the beams", found.extra is not None)
    assert found.extra is not None
    check_shape("the scores", found.extra, out.shape[:2])
    return Beams(np.asarray(out[..., front:], np.int64), np.asarray(found.extra, np.float64))


def readers(instance: Instance, src: Array) -> list[Model]:
    """Return the logits after targets of one source (S,), a generated pad hidden and read: both are right."""
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
    """Return a model with the same weights and a new pad id that never occurs; itself if a mask hides pads."""
    bound = instance.subject.bound
    if {"tgt_mask", "tgt_padding"} & bound.call.names() or "pad_id" not in bound.construct.names() or not bound.rules:
        return instance
    size = max(instance.sizes["src_vocab_size"], instance.sizes["tgt_vocab_size"])
    other = {"src_vocab_size": size + 1, "tgt_vocab_size": size + 1, "pad_id": size}
    twin = instance.subject.construct({**instance.sizes, **other})
    own = instance.read()
    return twin.write({name: _grown(own[name], wanted.shape) for name, wanted in twin.canonical.items()})


def _grown(weight: Array, shape: Sequence[int]) -> Array:
    """Append zeros up to a shape, for additional ids."""
    return np.pad(weight, [(0, wanted - have) for wanted, have in zip(shape, weight.shape, strict=True)])


def by_either(readers: Sequence[Model], judge: Callable[..., None], *facts: Any) -> None:
    """Judge by one reading of the generated text, and if that fails by the other."""
    *first, last = readers
    for reader in first:
        with suppress(ClauseFailure):
            judge(reader, *facts)
            return
    judge(last, *facts)
