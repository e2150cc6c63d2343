"""What each key of a training configuration may be, and how to say so."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

__all__ = ["CHECKS"]

Check = tuple[Callable[[Any], bool], str]


def _at_least(least: float) -> Check:
    return lambda value: least <= value < math.inf, f"at least {least}"


def _one_of(*allowed: str) -> Check:
    return lambda value: value in allowed, "one of " + ", ".join(allowed)


_POSITIVE: Check = (lambda value: value > 0, "above 0")
_SHARE: Check = (lambda value: 0.0 <= value <= 1.0, "between 0 and 1")
_BELOW_ONE: Check = (lambda value: 0.0 <= value < 1.0, "at least 0 and below 1")

CHECKS: Mapping[str, Check] = {
    "data.corpus": (lambda value: bool(value.strip()), "a file, synthetic or shakespeare"),
    "data.task": _one_of("", "copy", "reverse", "sort", "translation", "masked", "digits"),
    "data.pairs": (lambda value: 20 <= value <= 1_000_000, "from 20 to 1000000"),
    "data.symbols": (lambda value: 2 <= value <= 26, "from 2 to 26"),
    "data.shortest": _at_least(1),
    "data.longest": _at_least(1),
    "data.mask_probability": (lambda value: 0.0 < value < 1.0, "above 0 and below 1"),
    "data.tokenizer": _one_of("char", "bpe", "word"),
    "data.vocab_size": _at_least(256),
    "data.min_frequency": _at_least(1),
    "data.fraction": (lambda value: 0.0 < value < 1.0, "above 0 and below 1"),
    **{f"model.{name}": _at_least(1) for name in ("d_model", "num_heads", "num_layers", "d_ff", "block_size")},
    **{f"model.{name}": _BELOW_ONE for name in ("dropout", "attention_dropout", "embedding_dropout", "layer_dropout")},
    "model.attention": _one_of("softmax", "linear"),
    "model.num_decoder_layers": _at_least(0),
    "model.patch_size": _at_least(1),
    "optimizer.peak": (lambda value: 0.0 < value <= 1000.0, "above 0 and at most 1000"),
    "optimizer.kind": _one_of("adamw", "lamb", "lion", "adafactor"),
    "optimizer.schedule": _one_of("constant", "cosine", "linear", "wsd", "one_cycle", "inverse_sqrt"),
    "optimizer.warmup": _at_least(0),
    "optimizer.decay": _at_least(0),
    "optimizer.floor": _at_least(0),
    "optimizer.beta1": _BELOW_ONE,
    "optimizer.beta2": _BELOW_ONE,
    "optimizer.eps": _POSITIVE,
    "optimizer.weight_decay": _at_least(0),
    "optimizer.max_norm": _POSITIVE,
    **{f"training.{name}": _at_least(1) for name in ("steps", "batch_size", "accumulate", "eval_interval")},
    "training.seed": _at_least(0),
    "training.eval_batches": _at_least(1),
    "training.patience": _at_least(0),
    "training.label_smoothing": _BELOW_ONE,
    "training.buckets": _at_least(1),
    "training.own_ids": _SHARE,
    "speed.precision": _one_of("float32", "bfloat16", "float16"),
    "speed.compile": _one_of("none", "inductor", "aot_eager"),
    "speed.chunk": _at_least(0),
    "speed.threads": _at_least(0),
    "samples.temperatures": (lambda value: all(0.0 <= t < math.inf for t in value), "numbers of at least 0"),
    "samples.tokens": _at_least(0),
    "samples.interval": _at_least(0),
    "samples.held_out": _at_least(1),
    "samples.beam_width": _at_least(1),
    "samples.length_penalty": _at_least(0),
}
