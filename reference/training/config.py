"""What a training run is: one TOML document, checked before anything starts.

Every table is a dataclass here, and every key is one of its fields; an unknown key, or a value of another type or out
of range, is refused by its name. `recipe` reads the included documents: the models that the sources train.
"""

from __future__ import annotations

import difflib
import math
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

from conformkit.reference.errors import RefusalError
from conformkit.reference.training.ranges import CHECKS
from conformkit.spec.variants import Variant, choices

__all__ = [
    "PAIRS", "TrainingConfig", "TrainingConfigError", "config_from", "parse", "read_config", "recipe", "recipes",
    "shortened", "with_changes",
]  # fmt: skip


class TrainingConfigError(RefusalError):
    """A key of the document is unknown, or has a value that it can't have."""


PAIRS = ("copy", "reverse", "sort", "translation")
"""Tasks of an encoder-decoder."""

FALLING = ("cosine", "linear", "one_cycle")
"""Schedules that fall from the end of the warm-up to the last step."""


@dataclass(frozen=True)
class Data:
    """Where the text comes from, and what its tokens are."""

    task: str = ""
    """Nothing for a language model; copy, reverse, sort or translation for an encoder-decoder; masked for BERT, which
    guesses hidden ids of a text and whether one part follows another; digits for a vision transformer."""
    corpus: str = "synthetic"
    """A file, `synthetic` or `shakespeare`. With a task `synthetic` means pairs that a rule makes."""
    pairs: int = 20_000
    """Of a task: how many pairs the rule makes."""
    symbols: int = 10
    """Of copy, reverse and sort: how many letters there are."""
    shortest: int = 4
    longest: int = 8
    """Letters in a row of copy, reverse and sort."""
    mask_probability: float = 0.15
    """Of masked: the share of ids to be guessed."""
    whole_words: bool = False
    """Of masked: whether all pieces of a word are hidden together."""
    tokenizer: str = "char"
    vocab_size: int = 500
    """Of the byte-pair encoding; characters have as many ids as there are characters."""
    min_frequency: int = 2
    fraction: float = 0.9
    """The part of the text that is learned from, its beginning; the rest is for validation."""


@dataclass(frozen=True)
class ModelConfig:
    """The sizes of the model; the vocabulary comes from the tokenizer. `block_size` is an encoder-decoder's max_len."""

    d_model: int
    num_heads: int
    num_layers: int
    d_ff: int
    block_size: int
    dropout: float = 0.0
    """On the output of attention and on the hidden features."""
    attention_dropout: float = 0.0
    """On attention weights."""
    embedding_dropout: float = 0.0
    layer_dropout: float = 0.0
    """How often the last layer of a stack is left out while learning (stochastic depth); earlier ones less often."""
    attention: str = "softmax"
    """softmax, or of a language model linear: positive features whose sums over keys serve all queries."""
    num_decoder_layers: int = 0
    """Of an encoder-decoder; 0 for as many as the encoder has, which is `num_layers`."""
    patch_size: int = 2
    """Of a vision transformer, whose `block_size` is the number of patches and one more."""


@dataclass(frozen=True)
class OptimizerConfig:
    """The optimizer and its rate over time.

    `peak` is the constant or the greatest rate; `inverse_sqrt` computes its own. AdamW and LAMB use `eps`, these and
    Lion the betas.
    """

    kind: str = "adamw"
    """adamw, lamb, lion or adafactor; a good `peak` is another for each."""
    peak: float = 3e-4
    schedule: str = "constant"
    """constant, cosine, linear, wsd, one_cycle or inverse_sqrt."""
    warmup: int = 0
    decay: int = 0
    """Of wsd: the steps at the end in which the rate falls; 0 for a tenth of all."""
    floor: float = 0.0
    beta1: float = 0.9
    beta2: float = 0.999
    eps: float = 1e-8
    weight_decay: float = 0.0
    max_norm: float = math.inf
    """Where gradients are clipped."""


@dataclass(frozen=True)
class Training:
    """How long, on how much at a time, and how often to look."""

    steps: int
    batch_size: int
    accumulate: int = 1
    """Batches whose gradients make one update."""
    seed: int = 0
    eval_interval: int = 250
    eval_batches: int = 20
    patience: int = 0
    """Evaluations without a better loss after which training stops; 0 for never."""
    label_smoothing: float = 0.0
    """The share of each target that is spread over all ids; validation is never smoothed."""
    buckets: int = 1
    """Of a task: groups of pairs of similar length, of which each batch takes one, so that less of it is padding."""
    own_ids: float = 0.0
    """Of a task: the share of the decoder's input that is its own best guess at the end of training; it grows from 0
    (scheduled sampling)."""


@dataclass(frozen=True)
class Speed:
    """What makes it faster without changing what is computed, except for rounding."""

    device: str = "cpu"
    precision: str = "float32"
    fused: bool = True
    """PyTorch's own kernels for attention, norms, activations and the loss, in place of the written-out formulas."""
    chunk: int = 0
    """Queries whose scores are computed at a time, again in the backward pass, to save memory; 0: all."""
    recompute: bool = False
    """Gradient checkpointing: compute each block again in the backward pass, and keep only what enters it."""
    fused_optimizer: bool = False
    """PyTorch's AdamW in one kernel; it pays on a GPU."""
    compile: str = "none"
    """The backend of `torch.compile`: inductor, which needs a compiler, or aot_eager, which only traces."""
    threads: int = 0
    """Of a CPU; 0 for as many as PyTorch takes. Very small models are faster with one, above all on a busy machine."""


@dataclass(frozen=True)
class Samples:
    """What the model is asked to continue when it has been trained."""

    prompts: tuple[str, ...] = ("",)
    """An empty prompt begins where the validation text begins."""
    temperatures: tuple[float, ...] = (0.3, 0.7, 1.0, 1.5)
    tokens: int = 150
    interval: int = 0
    """Steps between samples; 0 for the end only."""
    held_out: int = 256
    """Of a task: held-out pairs that the trained model writes, for accuracy and BLEU."""
    beam_width: int = 4
    length_penalty: float = 0.6
    """Of a task: the exponent of the length by which a beam's score is divided."""


@dataclass(frozen=True)
class TrainingConfig:
    """A whole run."""

    model: ModelConfig
    training: Training
    title: str = ""
    source: str = ""
    data: Data = field(default_factory=Data)
    optimizer: OptimizerConfig = field(default_factory=OptimizerConfig)
    speed: Speed = field(default_factory=Speed)
    samples: Samples = field(default_factory=Samples)
    variant: Variant = field(default_factory=Variant)

    def as_document(self) -> dict[str, Any]:
        """Return tables and values, as TOML and JSON have them; only those choices that are not canonical."""
        document = asdict(self)
        document["variant"] = self.variant.differences()
        document["samples"] = {k: list(v) if isinstance(v, tuple) else v for k, v in document["samples"].items()}
        if math.isinf(self.optimizer.max_norm):
            del document["optimizer"]["max_norm"]
        return document


_WORDS: Mapping[Any, str] = {int: "an integer", float: "a number", str: "a text", bool: "true or false"}


def recipes() -> dict[str, TrainingConfig]:
    """Return the included recipes, by name."""
    folder = files("conformkit.reference.training") / "recipes"
    names = sorted(file.name.removesuffix(".toml") for file in folder.iterdir() if file.name.endswith(".toml"))
    return {name: parse((folder / f"{name}.toml").read_text(encoding="utf-8")) for name in names}


def recipe(name: str) -> TrainingConfig:
    """Return a recipe by its name. Raises ConfigError, with the nearest name, where there is none."""
    known = recipes()
    if name not in known:
        raise TrainingConfigError("the recipe", repr(name), _nearest(name, known))
    return known[name]


def read_config(path: Path) -> TrainingConfig:
    """Read a document from a file. Raises OSError, or ConfigError for what is no configuration."""
    try:
        return parse(path.read_text(encoding="utf-8"))
    except UnicodeDecodeError as error:
        raise TrainingConfigError(str(path), "no text in UTF-8", "a TOML document") from error


def parse(text: str) -> TrainingConfig:
    """Return the configuration that a TOML text describes. Raises ConfigError."""
    try:
        return config_from(tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        raise TrainingConfigError("the configuration", f"no TOML: {error}", "a TOML document") from error


def with_changes(config: TrainingConfig, changes: Mapping[str, Any]) -> TrainingConfig:
    """Return a copy with other values: `{"model.d_model": 128, "variant.norm": "rmsnorm"}`. Raises ConfigError."""
    document = config.as_document()
    for name, value in changes.items():
        table, _, key = name.partition(".")
        if not key or not isinstance(document.get(table), dict):
            tables = [name for name, content in document.items() if isinstance(content, dict)]
            raise TrainingConfigError("a setting", repr(name), "TABLE.KEY, where TABLE is " + _nearest(table, tables))
        document[table][key] = value
    return config_from(document)


def shortened(config: TrainingConfig, changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the changes, and if they make the run shorter, a warm-up and a decay that are as much shorter.

    One that the changes name themselves stays as it is named.
    """
    steps, whole, rate = changes.get("training.steps"), config.training.steps, config.optimizer
    if not isinstance(steps, int) or not 0 < steps < whole:
        return dict(changes)
    least = {"warmup": 0 if steps == 1 and rate.schedule in FALLING else 1, "decay": 1}
    own = {
        name: max(round(getattr(rate, name) * steps / whole), low) for name, low in least.items() if getattr(rate, name)
    }
    return {**{f"optimizer.{name}": value for name, value in own.items()}, **changes}


def config_from(document: Mapping[str, Any]) -> TrainingConfig:
    """Return the configuration of a document, as `as_document` gives it. Raises TrainingConfigError."""
    hints = get_type_hints(TrainingConfig)
    _refuse_unknown("", document, hints)
    tables = {"title": str(document.get("title", "")), "source": str(document.get("source", ""))}
    read = {name: partial(_table, name, kind) for name, kind in hints.items() if name not in {*tables, "variant"}}
    config = TrainingConfig(
        **tables,  # type: ignore[arg-type]
        **{name: make(document.get(name, {})) for name, make in read.items()},
        variant=_variant(document.get("variant", {})),
    )
    _check_together(config)
    return config


def _table(name: str, kind: type, content: Any) -> Any:
    """Return one table as its dataclass, every value checked."""
    if not isinstance(content, dict):
        raise TrainingConfigError(name, repr(content), "a table")
    hints = get_type_hints(kind)
    _refuse_unknown(f"{name}.", content, hints)
    values = {key: _value(f"{name}.{key}", value, hints[key]) for key, value in content.items()}
    missing = [f.name for f in fields(kind) if f.name not in values and _required(f)]
    if missing:
        raise TrainingConfigError(f"{name}.{missing[0]}", "missing", _WORDS[hints[missing[0]]])
    return kind(**values)


def _required(found: Any) -> bool:
    from dataclasses import MISSING  # noqa: PLC0415

    return found.default is MISSING and found.default_factory is MISSING


def _value(name: str, value: Any, kind: Any) -> Any:
    """Return a value as the type its field has, where it is one of that type and in its range."""
    if get_origin(kind) is tuple:
        item = get_args(kind)[0]
        if not isinstance(value, list | tuple):
            raise TrainingConfigError(name, repr(value), "a list")
        found: Any = tuple(_typed(name, one, item) for one in value)
    else:
        found = _typed(name, value, kind)
    holds, wanted = CHECKS.get(name, (lambda _: True, ""))
    if not holds(found):
        raise TrainingConfigError(name, repr(value), wanted)
    return found


def _typed(name: str, value: Any, kind: Any) -> Any:
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if type(value) is not kind:
        raise TrainingConfigError(name, repr(value), _WORDS[kind])
    return value


def _variant(content: Any) -> Variant:
    if not isinstance(content, dict):
        raise TrainingConfigError("variant", repr(content), "a table")
    known = choices()
    _refuse_unknown("variant.", content, known)
    for key, value in content.items():
        kind = known[key]
        if isinstance(kind, tuple) and value not in kind:
            raise TrainingConfigError(f"variant.{key}", repr(value), "one of " + ", ".join(map(str, kind)))
        if isinstance(kind, type):
            _typed(f"variant.{key}", value, kind)
    return Variant(**content)


def _check_together(config: TrainingConfig) -> None:
    """Refuse values that are each allowed but don't fit together."""
    model, training, rate, data = config.model, config.training, config.optimizer, config.data
    wanted = ("char", "word") if data.task in PAIRS else ("char", "bpe")
    if data.tokenizer not in wanted:
        learner = f"data.task = {data.task!r}" if data.task else "a language model"
        raise TrainingConfigError("data.tokenizer", repr(data.tokenizer), f"{' or '.join(wanted)} for {learner}")
    if data.shortest > data.longest:
        raise TrainingConfigError("data.shortest", data.shortest, f"at most data.longest = {data.longest}")
    if model.d_model % model.num_heads and config.variant.head_width == Variant().head_width:
        raise TrainingConfigError("model.d_model", model.d_model, f"a multiple of model.num_heads = {model.num_heads}")
    _check_attention(config)
    if rate.floor > rate.peak:
        raise TrainingConfigError("optimizer.floor", rate.floor, f"at most optimizer.peak = {rate.peak}")
    if rate.schedule == "inverse_sqrt" and rate.warmup < 1:
        raise TrainingConfigError("optimizer.warmup", rate.warmup, "at least 1 for inverse_sqrt")
    if rate.schedule in FALLING and rate.warmup >= training.steps:
        raise TrainingConfigError("optimizer.warmup", rate.warmup, f"fewer than training.steps = {training.steps}")
    if rate.schedule == "wsd" and rate.warmup + rate.decay > training.steps:
        most = f"at most training.steps - optimizer.warmup = {training.steps - rate.warmup}"
        raise TrainingConfigError("optimizer.decay", rate.decay, most)
    if config.speed.fused_optimizer and rate.kind != "adamw":
        raise TrainingConfigError("optimizer.kind", repr(rate.kind), "adamw where speed.fused_optimizer is on")


def _check_attention(config: TrainingConfig) -> None:
    """Refuse kinds of attention that don't go together."""
    variant = config.variant
    for name in ("score_cap", "sinks"):
        if config.speed.chunk and getattr(variant, name):
            raise TrainingConfigError("speed.chunk", config.speed.chunk, f"0 with variant.{name}")
    if config.data.task in PAIRS and variant.has_latent:
        raise TrainingConfigError("variant.latent", repr(variant.latent), "'0' in an encoder-decoder")
    if config.model.attention == "softmax":
        return
    others = {
        "data.task": config.data.task, "speed.chunk": config.speed.chunk, "variant.window": variant.window,
        "variant.score_cap": variant.score_cap, "model.attention_dropout": config.model.attention_dropout,
        "variant.sinks": variant.sinks,
        "variant.positions": variant.positions if variant.positions in {"alibi", "relative"} else "",
    }  # fmt: skip
    for name, value in others.items():
        if value:
            raise TrainingConfigError("model.attention", "'linear'", f"softmax with {name} = {value!r}")


def _refuse_unknown(prefix: str, content: Mapping[str, Any], known: Mapping[str, Any]) -> None:
    for key in content:
        if key not in known:
            raise TrainingConfigError("a key", repr(f"{prefix}{key}"), _nearest(key, known, prefix))


def _nearest(word: str, known: Any, prefix: str = "") -> str:
    near = difflib.get_close_matches(word, list(known), n=1, cutoff=0.5)
    listed = ", ".join(f"{prefix}{name}" for name in known)
    return f"one of {listed}" + (f"; nearest: {prefix}{near[0]}" if near else "")
