"""Which further arguments a language model's call takes: found by their names, or declared in conform.toml."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from conformkit.conformance.binding.kernels import OtherKernel, kernels_of
from conformkit.conformance.binding.masks import MaskForm
from conformkit.conformance.binding.path_config import PathsConfig
from conformkit.conformance.binding.signatures import Signature

__all__ = [
    "ArgumentNames",
    "call_arguments_of",
    "flags_of",
    "losses_of",
    "means_nothing",
    "optional_for",
    "takes_cache",
]

_NAMES: Mapping[str, tuple[str, ...]] = {
    "mask": ("attention_mask", "padding_mask", "pad_mask", "key_padding_mask", "attn_mask", "mask"),
    "positions": ("position_ids", "positions", "position_id", "pos_ids", "token_positions", "pos", "input_pos"),
    "segments": ("segment_ids", "document_ids", "doc_ids", "seq_ids", "sequence_ids", "text_ids"),
    "cache": (
        "past_key_values", "kv_cache", "kv_caches", "cache", "caches", "layer_past", "past", "past_kv", "past_kvs",
        "past_key_value", "past_keys_values", "layer_caches", "kvs",
    ),
    "use_cache": ("use_cache", "return_cache", "use_kv_cache", "return_kv", "return_kv_cache", "return_past"),
    "targets": ("targets", "labels", "target", "target_ids", "y", "tgt"),
    "weights": (
        "output_attentions", "return_attention", "return_attentions", "return_attn", "need_weights", "return_weights",
        "return_attention_weights", "return_attn_weights", "output_attention",
    ),
}  # fmt: skip
"""Names of arguments by what they are for, the most telling first."""
_LABELS = (
    "labels", "targets", "mlm_labels", "masked_lm_labels", "lm_labels", "masked_labels", "tgt_labels",
    "target_labels", "mlm_targets", "tgt_out", "tgt_y", "trg_y", "label_ids",
)  # fmt: skip
"""Names under which an encoder, or an encoder-decoder, takes the ids that its logits are compared with."""
_NEXT = (
    "next_sentence_label", "next_sentence_labels", "nsp_label", "nsp_labels", "is_next", "is_next_label",
    "is_next_labels", "nsp_targets", "next_labels", "next_label", "sentence_order_label",
)  # fmt: skip
"""Names under which an encoder takes whether the second segment follows."""
_LENGTHS = ("lengths", "prompt_lengths", "prompt_lens", "input_lengths", "seq_lengths", "seq_lens", "lens")
"""Names under which `generate` takes the number of real ids in each row."""
_FLAGS: Mapping[str, tuple[str, frozenset[str]]] = {
    "causal": ("is_causal", frozenset({"False", "True"})),
    "scale": ("scale", frozenset({"None"})),
    "dropout": ("dropout_p", frozenset({"0.0", "0", "None"})),
    "grouped": ("enable_gqa", frozenset({"False", "True"})),
}
"""What torch calls these arguments of its attention function, and the defaults with which they mean the same."""
_TORCH = 2
"""With so many of these names, a function has torch's signature."""
_METHODS: Mapping[str, tuple[str, ...]] = {
    "crop": ("crop", "truncate", "trim", "rollback", "rewind"),
    "reset": ("reset", "clear"),
    "reorder": ("reorder", "reorder_cache", "select", "index_select", "batch_select_indices", "gather"),
}  # fmt: skip
_MAKERS = (
    "new_cache", "make_cache", "init_cache", "empty_cache", "create_cache", "get_cache", "new_kv_cache",
    "make_kv_cache", "init_kv_cache", "create_kv_cache", "make_caches", "init_caches",
)  # fmt: skip
_SWITCHES = {"use_cache", "weights"}
"""What is true or false."""
_HIDING = {"key_padding_mask"}
"""Names under which torch passes masks whose True hides."""
_EITHER = {"padding_mask", "pad_mask"}
"""Names of masks whose True has either meaning."""


@dataclass(frozen=True, slots=True)
class ArgumentNames:
    """The names of arguments by what they are for; None where there is none. `declared` are those in conform.toml."""

    mask: str | None = None
    positions: str | None = None
    segments: str | None = None
    cache: str | None = None
    use_cache: str | None = None
    targets: str | None = None
    next_sentence: str | None = None
    weights: str | None = None
    causal: str | None = None
    scale: str | None = None
    dropout: str | None = None
    grouped: str | None = None
    """Arguments of an attention function."""
    maker: str | None = None
    """The method that makes an empty cache."""
    kernels: tuple[OtherKernel, ...] = ()
    """What its constructor can be given besides, to compute attention in other ways."""
    config: PathsConfig = field(default_factory=PathsConfig)
    declared: frozenset[str] = frozenset()
    aside: Mapping[str, str] = field(default_factory=dict)
    """What stands under a usual name and is not judged, since the file names something else: by key, in words."""

    @property
    def mask_forms(self) -> tuple[MaskForm, ...]:
        """The forms of its mask to try, the most usual first."""
        declared = self.config.mask_form
        kinds = (declared.kind,) if declared.kind else ("int", "bool", "float")
        usual = (
            ("hide", "attend") if self.mask in _HIDING else ("attend", "hide") if self.mask in _EITHER else ("attend",)
        )
        meanings = (declared.true,) if declared.true else usual
        return tuple(MaskForm(kind, true) for true in meanings for kind in kinds)

    @property
    def mask_is_padding(self) -> bool:
        """Whether the name of the mask, or a declaration, says that it is about padding (B, T)."""
        return self.mask in _HIDING | _EITHER | {"attention_mask"} or "mask" in self.declared

    def methods(self, what: str) -> tuple[str, ...]:
        """The names to try for what a cache can do: `crop`, `reset`, `reorder`."""
        own = getattr(self.config, what)
        return (own,) if own is not None else _METHODS[what]


def takes_cache(described: Signature | None, config: PathsConfig | None) -> bool:
    """Whether a call takes keys and values of earlier calls, by a usual name or the declared one."""
    names = {*_NAMES["cache"], config.cache if config is not None else None}
    return any(parameter["name"] in names for parameter in described or ())


def call_arguments_of(
    signature: Signature | None, constructor: Signature | None, methods: Mapping[str, Any], config: PathsConfig | None
) -> ArgumentNames:
    """Return what a call takes, and what the constructor offers for attention."""
    own = config or PathsConfig()
    taken = list(signature or ())
    found: dict[str, Any] = {what: getattr(own, what) or optional_for(what, taken) for what in _NAMES}
    maker = next((name for name in _MAKERS if _needs_nothing(methods.get(name))), None)
    kernels = kernels_of(constructor, own.kernels)
    named = frozenset(what for what in _NAMES if getattr(own, what))
    aside = dict(_aside({what: optional_for(what, taken) for what in _NAMES}, own))
    passed = {(kernel.argument, kernel.value) for kernel in kernels}
    left = [str(one) for one in kernels_of(constructor, {}) if (one.argument, one.value) not in passed]
    aside |= {"kernels": ", ".join(left)} if left else {}
    return ArgumentNames(**found, maker=maker, kernels=kernels, config=own, declared=named, aside=aside)


def flags_of(signature: Signature | None, config: PathsConfig | None) -> ArgumentNames:
    """Return what the call of an attention function takes besides arrays: as torch's does, or declared."""
    own = config or PathsConfig()
    taken = {p["name"]: p["default"] for p in signature or () if not p["required"]}
    usual = {what: name for what, (name, defaults) in _FLAGS.items() if taken.get(name) in defaults}
    found = usual if len(usual) >= _TORCH else {}
    named: dict[str, Any] = {what: getattr(own, what) or found.get(what) for what in _FLAGS}
    declared = frozenset(what for what in _FLAGS if getattr(own, what))
    return ArgumentNames(**named, config=own, declared=declared, aside=dict(_aside(usual, own)))


def losses_of(signature: Signature | None, used: Collection[str]) -> ArgumentNames:
    """Return what a call of a model of texts takes for its own loss, besides the arguments that it uses anyway."""
    free = [parameter for parameter in signature or () if parameter["name"] not in used]
    return ArgumentNames(targets=_one_of(_LABELS, free, switch=False), next_sentence=_one_of(_NEXT, free, switch=False))


def _aside(usual: Mapping[str, str | None], own: PathsConfig) -> Iterator[tuple[str, str]]:
    """Yield what would be found by its name, where the file names another argument in its place."""
    for what, name in usual.items():
        if name is not None and getattr(own, what) not in {None, name}:
            yield what, f"{name} (it names {getattr(own, what)})"


def optional_for(what: str, signature: Signature) -> str | None:
    """Return the argument that is for this: optional, and a switch only where one is meant."""
    return _one_of(_LENGTHS if what == "lengths" else _NAMES[what], signature, switch=what in _SWITCHES)


def means_nothing(name: str) -> bool:
    """Whether no usual further argument, but a mask, has this name."""
    known = (*_LABELS, *_NEXT, *(other for what, names in _NAMES.items() if what != "mask" for other in names))
    return name not in known


def _one_of(names: Sequence[str], signature: Signature, *, switch: bool) -> str | None:
    """Return the first of these names under which something may be passed."""
    optional = {p["name"]: p for p in signature if not p["required"]}
    return next(_fitting((optional[name] for name in names if name in optional), switch=switch), None)


def _fitting(parameters: Iterator[Mapping[str, Any]], *, switch: bool) -> Iterator[str]:
    for parameter in parameters:
        if not switch and parameter["default"] == "None":
            yield parameter["name"]
        if switch and parameter["default"] in {"True", "False", "None"}:
            yield parameter["name"]


def _needs_nothing(signature: Any) -> bool:
    return signature is not None and not any(p["required"] for p in signature)
