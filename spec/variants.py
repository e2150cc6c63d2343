"""Legitimate choices that clauses depend on, and their canonical values.

A variant is declared in `conform.toml`; what is not declared is canonical. An implementation that differs from its
declared variant is wrong, however common its choice is elsewhere. Only `FREE` choices need no declaration: what is not
declared is what the implementation does.
"""

from __future__ import annotations

import functools
import operator
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal, get_args, get_type_hints

__all__ = [
    "BASES", "BERT", "CANONICAL", "FAMOUS", "FREE", "LATENTS", "VIT", "Variant", "alternatives", "choices", "described",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Variant:
    """One value for every choice.

    Expressions are over the constructor arguments of the contract (`d_model`, `num_heads`, …).
    """

    norm: Literal["layernorm", "rmsnorm"] = "layernorm"
    norm_eps: float = 1e-5
    norm_bias: bool = True
    """LayerNorm's β. RMSNorm never has one."""
    norm_deviation: Literal["biased", "sample"] = "biased"
    """biased: √(var + eps), divisor D. sample: std + eps, divisor D - 1."""
    norm_weight: Literal["scale", "offset", "none"] = "scale"
    """What a normalized row is multiplied by: γ; 1 + γ; nothing, and nothing is added either."""
    placement: Literal["pre", "post", "sandwich", "output", "parallel", "parallel_two_norms", "deepnorm"] = "pre"
    """pre: x + S(N x), post: N(x + S x), deepnorm: N(α x + S x), α = (2L)^¼ in a model of L blocks;
    sandwich: x + N'(S(N x)), output: x + N(S x), parallel: x + A(N x) + F(N x)
    """
    activation: Literal["gelu", "gelu_tanh", "relu", "silu", "relu2", "quick_gelu"] = "gelu"
    gated: bool = False
    """down(act(gate x) * (up x)), as in SwiGLU."""
    gate_limit: float = 0.0
    """Gated: what is activated is at most this number, and the other branch is within ± it; 0: neither is limited."""
    gate_offset: bool = False
    """Gated: the activated branch is multiplied by the other one plus 1."""
    experts: int = 0
    """A router sends each position to some of so many feed-forward networks; 0: there is one, for all."""
    experts_active: int = 2
    """The number of experts that each position goes through, where there are experts."""
    expert_weights: Literal["selected", "all"] = "selected"
    """What outputs are weighted by: the softmax of the selected experts' logits, or their entries in that of all."""
    router_bias: bool = False
    """The router's logits have a bias."""
    shared_expert: bool = False
    """One more network that every position goes through; its output is added as it is."""
    qkv_bias: bool = False
    key_bias: bool = True
    """Whether keys have a bias where queries and values have one: it changes no output."""
    output_projection: bool = True
    output_bias: bool = False
    ffn_bias: bool = True
    kv_heads: str = "num_heads"
    """Number of key/value heads, an expression; fewer than `num_heads` is grouped-query attention."""
    head_width: str = "d_model // num_heads"
    latent: str = "0"
    """Width of the latent from which all heads' keys and values come, an expression; 0: they come from the input."""
    query_latent: str = "0"
    """Width of the latent from which queries come, beside that of keys and values; 0: they come from the input."""
    rotary_width: str = "head_width // 2"
    """With a latent: number of features that rotate, besides a head's width; keys share them."""
    value_width: str = "head_width"
    """With a latent: the width of a head's values."""
    qk_norm: Literal["none", "heads", "all"] = "none"
    """A norm of their own on queries and keys, before any rotation: over each head's features, or over all at once."""
    score_scale: bool = True
    """Scores are divided by √d, d the width of a head; in T5 they are not."""
    score_cap: float = 0.0
    """Scores s become cap · tanh(s / cap) before they are masked; 0: they stay."""
    sinks: bool = False
    """Each head has a learned logit that takes part in the softmax and has no value."""
    output_gate: Literal["none", "features", "heads"] = "none"
    """What heads give is multiplied by σ(W x) before the output projection: a number for each feature, or each head."""
    window: int = 0
    """Causal attention sees so many keys, the last of them the query's own; 0: all."""
    window_layers: Literal["all", "even", "odd", "5 of 6"] = "all"
    """The model's layers, counted from 0, that have the window; `5 of 6`: all but each sixth."""
    positions: Literal["sinusoidal", "learned", "rotary", "none", "alibi", "relative"] = "sinusoidal"
    alibi_slopes: Literal["interleaved", "geometric"] = "interleaved"
    """Of head counts that are no power of 2. interleaved: as published; geometric: 2^(-8(h + 1) / H) for any H."""
    relative_buckets: int = 32
    """The rows of T5's table of relative positions: each head has a number for so many ranges of distance."""
    relative_distance: int = 128
    """From this distance on all keys are in the last bucket."""
    relative_shared: bool = True
    """All layers of a model share one table."""
    sinusoid_layout: Literal["interleaved", "halves"] = "interleaved"
    sinusoid_frequencies: Literal["vaswani", "tensor2tensor"] = "vaswani"
    """vaswani: 10000^(-2i/D). tensor2tensor: 10000^(-i/(⌊D/2⌋ - 1)), whose last one is 1/10000."""
    position_offset: Literal[0, 2, "pad_id + 1"] = 0
    """Number of the first position, which is also its row; fairseq's tables begin behind the padding id, usually 1."""
    positions_scale: bool = False
    """PositionalEncoding multiplies its input by √d_model; models say so with embedding_scale, wherever it is done."""
    rotary_layout: Literal["pairs", "halves"] = "pairs"
    rotary_base: float = 10000.0
    window_rotary_base: float = 0.0
    """The base of rotation in layers with the window, whose frequencies are not scaled; 0: as in the others."""
    rotary_fraction: float = 1.0
    """The share of each head's features that rotate, its first ones; their frequencies count these features only."""
    rotary_scaling: Literal["none", "linear", "ntk", "llama3", "yarn"] = "none"
    """How frequencies are made lower for texts longer than those of the training. See `rotary.frequencies`."""
    rotary_factor: float = 8.0
    """By how much, where `rotary_scaling` is not none."""
    rotary_length: int = 8192
    """The length of training texts over which llama3 and yarn count the turns of a pair."""
    rotary_low: float = 1.0
    """llama3, yarn: pairs with fewer turns are divided by the factor."""
    rotary_high: float = 0.0
    """llama3, yarn: pairs with more turns stay; 0: 4 with llama3, 32 with yarn."""
    rotary_whole_pairs: bool = True
    """yarn: pairs between which frequencies are mixed are rounded outwards to whole ones."""
    rotary_magnitude: float = 0.0
    """yarn: the factor of rotated queries and of rotated keys; 0: 0.1 ln s + 1, s the factor."""
    embedding_scale: bool = False
    """Multiply embeddings by √d_model before positions are added."""
    embedding_norm: bool = False
    """A norm on the embeddings, after positions are added."""
    final_norm: bool = True
    tied: bool = False
    """The head shares the embedding matrix; in an encoder-decoder, the target's."""
    shared_embeddings: bool = False
    """Source and target of an encoder-decoder share one embedding matrix."""
    shared_positions: bool = False
    """Source and target of an encoder-decoder share one learned table of positions; unused if none is learned."""
    tied_scale: bool = False
    """What a tied head reads is divided by √d_model, as in T5."""
    head_bias: bool = True
    logit_cap: float = 0.0
    """Logits z become cap · tanh(z / cap); 0: they stay."""
    log_probabilities: bool = False
    """A model returns the log-softmax of its logits: the same predictions, for a loss without a softmax of its own."""
    segments: bool = True
    """An encoder's embeddings add a learned row for the segment of each position, as BERT's do."""
    pooler: bool = True
    """A BERT has a pooler: a linear map of the first position, then tanh; no head need read it.

    Without one, a head for the next sentence reads the first position itself.
    """
    head_transform: bool = True
    """Before the masked-language head's matrix: a linear map, the activation, a norm."""
    next_sentence_head: bool = True
    """A BERT with its pretraining heads has a pooler and the head for the next sentence, not only the one for ids."""
    pooling: Literal["class", "mean"] = "class"
    """What a vision transformer classifies: the class token, or the mean of all patches, then without that token."""
    temperature_last: bool = False
    """Sampling filters by the probabilities at temperature 1, and applies the temperature to what is left."""
    repetition_counts: Literal["all", "new"] = "all"
    """The ids that a repetition penalty makes less probable: those of the whole text, or without the prompt."""
    penalty_counts: Literal["new", "all"] = "new"
    """The ids that penalties for presence and frequency count: those after the prompt, or all."""

    def but(self, **changes: Any) -> Variant:
        """Return a copy with some choices changed."""
        values = list(_values(self))
        for name, value in changes.items():
            values[_places()[name]] = value
        return Variant(*values)  # a third of what dataclasses.replace takes, and searches make thousands

    @property
    def plain_gamma(self) -> float:
        """The weight of a norm with which it multiplies by 1."""
        return 0.0 if self.norm_weight == "offset" else 1.0

    @property
    def shifts(self) -> bool:
        """Whether norms add β."""
        return self.norm == "layernorm" and self.norm_bias and self.norm_weight != "none"

    def of_layer(self, layer: int) -> Variant:
        """Return the variant of one of a model's blocks, counted from 0: some may have a window, others not."""
        sees_all = {"all": False, "even": layer % 2 == 1, "odd": layer % 2 == 0, "5 of 6": layer % 6 == 5}
        return self.but(window=0) if self.window and sees_all[self.window_layers] else self

    @property
    def shares_table(self) -> bool:
        """Whether a model's blocks have one table of relative positions together."""
        return self.positions == "relative" and self.relative_shared

    @property
    def has_latent(self) -> bool:
        """Whether keys and values come from a latent."""
        return self.latent != "0"

    @property
    def turning(self) -> Variant:
        """The variant whose rotary choices hold in this layer: layers with the window may have a base of their own."""
        if not (self.window and self.window_rotary_base):
            return self
        return self.but(rotary_base=self.window_rotary_base, rotary_scaling="none", window_rotary_base=0.0)

    def meets(self, choice: str, wanted: str) -> bool:
        """Whether a choice has one of the values `a | b`, or none of those of `not a | b`, as clauses write them."""
        value = getattr(self, choice)
        said = str(value).lower() if isinstance(value, bool) else str(value)
        listed = [one.strip() for one in wanted.removeprefix("not ").split("|")]
        return (said in listed) != wanted.startswith("not ")

    def differences(self, base: Variant | None = None) -> dict[str, Any]:
        """Return the choices that are not canonical, or not those of a base, by name."""
        canonical = {f.name: f.default if base is None else getattr(base, f.name) for f in fields(self)}
        return {name: getattr(self, name) for name, value in canonical.items() if getattr(self, name) != value}


@functools.cache
def _places() -> Mapping[str, int]:
    """Return the place of each choice in the order of the fields."""
    return {field.name: place for place, field in enumerate(fields(Variant))}


def _values(variant: Variant) -> tuple[Any, ...]:
    values: tuple[Any, ...] = _reader()(variant)
    return values


@functools.cache
def _reader() -> operator.attrgetter[tuple[Any, ...]]:
    return operator.attrgetter(*_places())


CANONICAL = Variant()
LATENTS = ("latent", "query_latent", "rotary_width", "value_width")
"""The widths that attention with a latent has besides those of others, expressions over sizes."""
FREE = ("head_bias", "pooler", "next_sentence_head")
"""Choices of which either is right where nothing is declared: GPT-2's and Llama's heads have no bias, others do."""


@functools.cache
def choices() -> Mapping[str, tuple[Any, ...] | type]:
    """Return, for each choice, the admissible values, or their type if they are open."""
    hints = get_type_hints(Variant)
    return {name: get_args(hint) or hint for name, hint in hints.items()}


_IN_USE: Mapping[str, tuple[Any, ...]] = {
    "norm_eps": (1e-6, 1e-12, 1e-8, 1e-3, 1e-4, 1e-7, 1e-9, 1e-10),
    "kv_heads": ("1", "num_heads // 2", "num_heads // 4", "num_heads // 3", "2", "4"),
    "head_width": ("d_model", "2 * d_model // num_heads", "d_model // 2", "2", "4", "6", "8", "16", "32", "64"),
    "latent": ("d_model // 2", "d_model // 4", "8", "16", "32", "64", "512"),
    "query_latent": ("d_model // 2", "d_model // 4", "8", "16", "32", "64", "1536"),
    "rotary_width": ("head_width", "2", "4", "8", "16", "32", "64"),
    "value_width": ("2 * head_width", "8", "4", "2", "16", "32", "64", "128"),
    "rotary_base": (500000.0, 1000000.0, 1000.0, 500.0, 100000.0),
    "score_cap": (50.0, 30.0, 20.0, 10.0, 15.0, 5.0, 25.0, 100.0),
    "logit_cap": (30.0, 15.0, 50.0, 20.0, 10.0, 5.0),
    "window": (2, 3, 4, 1, 8, 16, 32, 64),
    "gate_limit": (7.0, 10.0),
    "experts": (8, 4, 2, 3, 16, 6, 5, 32, 64),
    "experts_active": (1, 4, 3, 8, 6),
    "window_rotary_base": (10000.0, 1000.0, 100000.0),
    "relative_buckets": (16, 64, 8, 128),
    "relative_distance": (256, 64, 512, 32),
    "rotary_fraction": (0.5, 0.25, 0.75, 0.4),
    "rotary_factor": (2.0, 4.0, 32.0, 16.0, 40.0, 64.0),
    "rotary_length": (4096, 2048, 1024, 16, 32, 64, 128, 256, 512, 32768),
    "rotary_low": (2.0, 0.5),
    "rotary_high": (4.0, 8.0, 32.0),
    "rotary_magnitude": (1.0, 2.0),
}
"""Common values of open choices, the most frequent first."""


def alternatives(choice: str, value: Any) -> tuple[Any, ...]:
    """Return other values of a choice: all values of a closed choice, common values of an open one."""
    kind = choices()[choice]
    default = getattr(CANONICAL, choice)
    known = kind if isinstance(kind, tuple) else (True, False) if kind is bool else (default, *_IN_USE[choice])
    return tuple(other for other in known if other != value)


_LLAMA = Variant(
    norm="rmsnorm", activation="silu", gated=True, ffn_bias=False, kv_heads="num_heads // 4", positions="rotary",
    rotary_layout="halves", head_bias=False,
)  # fmt: skip

FAMOUS: Mapping[str, Variant] = {
    "gpt2": Variant(
        activation="gelu_tanh", qkv_bias=True, output_bias=True, positions="learned", tied=True, head_bias=False
    ),
    "nanogpt": Variant(norm_bias=False, ffn_bias=False, positions="learned", tied=True, head_bias=False),
    "llama": _LLAMA,
    "qwen": _LLAMA.but(norm_eps=1e-6, qkv_bias=True, rotary_base=1e6),
    "gemma": _LLAMA.but(
        norm_eps=1e-6, activation="gelu_tanh", kv_heads="1", head_width="2 * d_model // num_heads",
        embedding_scale=True, tied=True,
    ),
    "bert": Variant(
        norm_eps=1e-12, placement="post", qkv_bias=True, output_bias=True, positions="learned", embedding_norm=True,
        final_norm=False, tied=True,
    ),
    "vaswani": Variant(
        placement="post", activation="relu", qkv_bias=True, output_bias=True, embedding_scale=True, final_norm=False,
        tied=True,
    ),
    "annotated": Variant(
        norm_eps=1e-6, norm_deviation="sample", activation="relu", qkv_bias=True, output_bias=True,
        embedding_scale=True,
    ),
}  # fmt: skip
"""The choices of well-known models, by the usual names of their styles."""

BERT = FAMOUS["bert"]
"""What is canonical in profile encoder. Source: Devlin et al. 2019, and the code published with it."""
VIT = Variant(qkv_bias=True, output_bias=True, positions="learned")
"""What is canonical in profile vit. Source: Dosovitskiy et al. 2021, §3.1, which names no epsilon."""
BASES: Mapping[str, Variant] = {"encoder": BERT, "vit": VIT}
"""The canonical choices of profiles in which they are not CANONICAL."""


_WORDS: Mapping[tuple[str, Any], str] = {
    ("norm", "layernorm"): "LayerNorm", ("norm", "rmsnorm"): "RMSNorm",
    ("norm_bias", True): "norms with a shift β", ("norm_bias", False): "norms without a shift β",
    ("norm_deviation", "biased"): "the biased deviation in norms",
    ("norm_deviation", "sample"): "the sample deviation in norms",
    ("norm_weight", "scale"): "norms that multiply by γ", ("norm_weight", "offset"): "norms that multiply by 1 + γ",
    ("norm_weight", "none"): "norms without weights",
    ("placement", "pre"): "pre-norm", ("placement", "post"): "post-norm",
    ("placement", "sandwich"): "norms before and after each sublayer",
    ("placement", "output"): "norms on what the sublayers add",
    ("placement", "parallel"): "attention and feed-forward in parallel behind one norm",
    ("placement", "deepnorm"): "DeepNorm",
    ("placement", "parallel_two_norms"): "attention and feed-forward in parallel, each behind a norm",
    ("activation", "gelu"): "GELU", ("activation", "gelu_tanh"): "GELU's tanh approximation",
    ("activation", "relu"): "ReLU", ("activation", "silu"): "SiLU", ("activation", "relu2"): "the square of ReLU",
    ("activation", "quick_gelu"): "x σ(1.702 x)",
    ("gate_limit", 0.0): "a gate without limits", ("gate_offset", True): "a gate times the other branch plus 1",
    ("gate_offset", False): "a gate times the other branch",
    ("router_bias", True): "a router with a bias", ("router_bias", False): "a router without a bias",
    ("gated", True): "a gated feed-forward", ("gated", False): "a feed-forward without a gate",
    ("experts", 0): "one feed-forward network for all positions",
    ("expert_weights", "selected"): "experts weighted by the softmax over the selected ones",
    ("expert_weights", "all"): "experts weighted by the softmax over all of them",
    ("shared_expert", True): "an expert for every position", ("shared_expert", False): "no shared expert",
    ("qkv_bias", True): "queries, keys and values with biases",
    ("qkv_bias", False): "queries, keys and values without biases",
    ("key_bias", True): "keys with a bias as queries and values",
    ("key_bias", False): "keys without a bias beside queries and values with biases",
    ("output_projection", True): "attention with an output projection",
    ("output_projection", False): "attention without an output projection",
    ("output_bias", True): "an output projection with a bias",
    ("output_bias", False): "an output projection without a bias",
    ("ffn_bias", True): "a feed-forward with biases", ("ffn_bias", False): "a feed-forward without biases",
    ("positions", "sinusoidal"): "sinusoidal positions", ("positions", "learned"): "learned positions",
    ("positions", "rotary"): "rotary positions", ("positions", "none"): "no positions",
    ("positions", "alibi"): "ALiBi", ("positions", "relative"): "T5's relative positions",
    ("relative_shared", True): "one table of relative positions for all layers",
    ("relative_shared", False): "a table of relative positions in each layer",
    ("alibi_slopes", "interleaved"): "ALiBi's published slopes",
    ("alibi_slopes", "geometric"): "ALiBi's slopes as one geometric series",
    ("qk_norm", "none"): "queries and keys without a norm",
    ("qk_norm", "heads"): "a norm on each head's queries and keys",
    ("qk_norm", "all"): "a norm on all queries and all keys", ("score_cap", 0.0): "scores without a cap",
    ("score_scale", True): "scores divided by √d", ("score_scale", False): "scores that are not divided by √d",
    ("tied_scale", True): "a tied head behind a division by √d_model",
    ("tied_scale", False): "a tied head that reads the stream as it is",
    ("sinks", True): "a learned sink in each head's softmax", ("sinks", False): "attention without sinks",
    ("output_gate", "none"): "attention whose output has no gate",
    ("output_gate", "features"): "a gate on each feature of what heads give",
    ("output_gate", "heads"): "a gate on each head",
    ("latent", "0"): "keys and values straight from the input",
    ("query_latent", "0"): "queries straight from the input",
    ("value_width", "head_width"): "values as wide as heads",
    ("logit_cap", 0.0): "logits without a cap", ("window", 0): "attention to all earlier keys",
    ("window_layers", "all"): "the window in all layers", ("window_layers", "even"): "the window in layers 0, 2, …",
    ("window_layers", "odd"): "the window in layers 1, 3, …",
    ("window_layers", "5 of 6"): "the window in 5 layers of 6",
    ("sinusoid_layout", "interleaved"): "interleaved sines and cosines",
    ("sinusoid_layout", "halves"): "all sines, then all cosines",
    ("sinusoid_frequencies", "vaswani"): "frequencies 10000^(-2i/D)",
    ("sinusoid_frequencies", "tensor2tensor"): "tensor2tensor's frequencies",
    ("position_offset", 0): "positions counted from 0", ("position_offset", 2): "positions counted from 2",
    ("position_offset", "pad_id + 1"): "positions counted from behind the padding id",
    ("positions_scale", True): "a positional encoding that multiplies its input by √d_model",
    ("positions_scale", False): "a positional encoding that adds to its input as it is",
    ("rotary_layout", "pairs"): "rotation of neighboring features",
    ("rotary_layout", "halves"): "rotation of features half a head apart",
    ("window_rotary_base", 0.0): "one base of rotation in all layers",
    ("rotary_fraction", 1.0): "rotation of all features",
    ("rotary_scaling", "none"): "unscaled rotary frequencies",
    ("rotary_scaling", "linear"): "rotary positions divided by a factor",
    ("rotary_scaling", "ntk"): "rotary frequencies scaled by a larger base (NTK)",
    ("rotary_scaling", "llama3"): "Llama 3's scaled rotary frequencies",
    ("rotary_scaling", "yarn"): "YaRN's scaled rotary frequencies",
    ("rotary_whole_pairs", True): "YaRN's bounds at whole pairs",
    ("rotary_whole_pairs", False): "YaRN's bounds as they are, between pairs",
    ("rotary_magnitude", 0.0): "YaRN's own factor of queries and keys",
    ("embedding_scale", True): "embeddings times √d_model",
    ("embedding_scale", False): "unscaled embeddings",
    ("embedding_norm", True): "a norm on the embeddings", ("embedding_norm", False): "no norm on the embeddings",
    ("final_norm", True): "a norm after the last block", ("final_norm", False): "no norm after the last block",
    ("tied", True): "a head that is the embedding matrix", ("tied", False): "a separate head",
    ("shared_embeddings", True): "one embedding matrix for source and target",
    ("shared_embeddings", False): "separate embedding matrices for source and target",
    ("shared_positions", True): "one table of positions for source and target",
    ("shared_positions", False): "separate tables of positions for source and target",
    ("head_bias", True): "a head with a bias", ("head_bias", False): "a head without a bias",
    ("log_probabilities", True): "log-probabilities", ("log_probabilities", False): "logits",
    ("segments", True): "embeddings of segments", ("segments", False): "no embeddings of segments",
    ("pooler", True): "a pooler", ("pooler", False): "no pooler",
    ("head_transform", True): "a masked-language head that transforms first",
    ("head_transform", False): "a masked-language head of one matrix",
    ("next_sentence_head", True): "a head for the next sentence",
    ("next_sentence_head", False): "no head for the next sentence",
    ("pooling", "class"): "a class token that is classified", ("pooling", "mean"): "the mean of all patches",
    ("temperature_last", True): "filters before the temperature",
    ("temperature_last", False): "the temperature before filters",
    ("repetition_counts", "all"): "a repetition penalty on the whole text",
    ("repetition_counts", "new"): "a repetition penalty on new ids only",
    ("penalty_counts", "new"): "penalties that count new ids only",
    ("penalty_counts", "all"): "penalties that count the prompt too",
}  # fmt: skip


def described(choice: str, value: Any) -> str:
    """Return the name of a choice in a sentence: `ReLU`, `post-norm`, `norm_eps = 1e-6`."""
    return _WORDS.get((choice, value)) or f"{choice} = {_number(value) if isinstance(value, float) else value}"


def _number(value: float) -> str:
    """Write 1e-06 as 1e-6."""
    return re.sub(r"e([-+])0*", lambda e: "e" + e[1].strip("+"), f"{value:g}")
