"""The contract besides the components: functions and classes for data, loss, training and reports.

A tool is identified by its export name. All tools are optional.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from conformkit.spec.clauses import clauses_of
from conformkit.spec.components import Argument

__all__ = ["FUNCTION", "TOKENIZER", "TOOLS", "ToolContract", "tools_of"]

TOKENIZER = "tokenizer"
"""The name of an object whose `encode` gives the ids of a text that was made of them."""
FUNCTION = ""
"""The call of a tool that is a function, or of the object that a class makes."""


@dataclass(frozen=True, slots=True)
class ToolContract:
    """A function, or a class with a constructor, methods and attributes.

    `calls` contains the arguments of each method, or of the function under FUNCTION. `lists` are arguments that are
    lists of Python numbers; others are arrays of the framework.
    """

    name: str
    calls: Mapping[str, tuple[Argument, ...]]
    construct: tuple[Argument, ...] | None = None
    attributes: tuple[str, ...] = ()
    lists: tuple[str, ...] = ()
    parts: int = 0
    """The number of values that a call returns together; 0 for a single value."""
    partner: str = ""
    """The component that it works on."""
    profile: str = "lm"
    masks: bool = False
    """Whether it returns masks, whose polarity and kind can be declared."""
    elements: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Names for the elements of an argument that is a pair, for code that takes them one by one."""
    marks: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """Names for where the entries of one argument are among those of another, for code that takes a mask of them."""
    limited: tuple[str, ...] = ()
    """Arguments in whose place code may have numbers of its own, with which it is judged then."""
    averages: bool = False
    """Whether it is a mean of what logits cost; code may take their logarithms of probabilities, and return the sum."""
    made: bool = False
    """Whether a function may be an object of a class, whose constructor takes some of its arguments."""
    texts: Mapping[str, str] = field(default_factory=dict)
    """Names of a text with a character for each id of an argument; `tokenizer` gives the ids of such a text."""
    begin: bool = True
    """Whether a new package begins with a stub of it."""

    def optional(self) -> list[str]:
        """Return the arguments of all calls that have a default."""
        given = [*(self.construct or ()), *(a for arguments in self.calls.values() for a in arguments)]
        return [a.name for a in given if not a.required]

    def names(self, arguments: Iterable[Argument]) -> list[str]:
        """Return the names of arguments, and of their elements."""
        own = [a.name for a in arguments]
        marked = [mark for mark, of in self.marks.items() if set(of) <= set(own)]
        texts = [text for text, ids in self.texts.items() if ids in own]
        elements = [element for name in own for element in self.elements.get(name, ())]
        return [*own, *elements, *marked, *texts, *([TOKENIZER] if texts else [])]


def _required(*names: str) -> tuple[Argument, ...]:
    return tuple(Argument(name, required=True) for name in names)


def _function(
    name: str, *arguments: Argument, lists: tuple[str, ...] = (), parts: int = 0, begin: bool = True, **more: Any
) -> ToolContract:
    partner = "TinyTransformerLM" if any(a.name == "model" for a in arguments) else ""
    return ToolContract(name, {FUNCTION: arguments}, lists=lists, parts=parts, partner=partner, begin=begin, **more)


def _of_pairs(name: str, *arguments: Argument, parts: int = 0, masks: bool = False, **more: Any) -> ToolContract:
    return ToolContract(name, {FUNCTION: arguments}, parts=parts, masks=masks, profile="seq2seq", **more)


def _tuning(name: str, *arguments: Argument, parts: int = 0) -> ToolContract:
    return ToolContract(name, {FUNCTION: arguments}, parts=parts, profile="finetune", made=not parts)


_LABELED = (*_required("logits", "labels"), Argument("mask"))
_TOKENIZER = {"encode": _required("text"), "decode": _required("ids")}
_MODEL = _required("model", "optimizer")

TOOLS: Mapping[str, ToolContract] = {
    tool.name: tool
    for tool in (
        ToolContract("CharTokenizer", _TOKENIZER, _required("text"), ("vocab_size",), lists=("ids",)),
        ToolContract(
            "BPETokenizer", _TOKENIZER,
            (*_required("text"), Argument("vocab_size", 500), Argument("min_frequency", 2)), ("vocab_size",),
            lists=("ids",),
        ),
        _function("train_val_split", *_required("ids"), Argument("fraction", 0.9), parts=2),
        _function("get_batch", *_required("ids", "batch_size", "block_size"), parts=2),
        _function("sliding_windows", *_required("ids", "block_size"), parts=2, made=True, texts={"text": "ids"}),
        _function(
            "cross_entropy", *_required("logits", "targets"), Argument("ignore_index", -100),
            Argument("label_smoothing", 0.0), made=True,
        ),
        _function("balance_loss", *_required("logits", "experts_active"), Argument("num_experts"), begin=False),
        _function("perplexity", *_required("loss")),
        _function("bits_per_character", *_required("loss"), Argument("tokens_per_character", 1.0)),
        _function("clip_grad_norm", *_required("parameters", "max_norm")),
        ToolContract(
            "AdamW", {"step": (), "zero_grad": ()},
            (*_required("params"), Argument("lr", 1e-3), Argument("betas", (0.9, 0.999)), Argument("eps", 1e-8),
             Argument("weight_decay", 0.01)),
            elements={"betas": ("beta1", "beta2")},
        ),
        _function("cosine_schedule", *_required("step", "peak", "floor", "warmup", "total"), made=True),
        _function("inverse_sqrt_schedule", *_required("step", "d_model", "warmup"), made=True),
        _function("train_step", *_MODEL, *_required("x", "y"), Argument("max_norm")),
        _function("evaluate", *_required("model", "batches")),
        _function("save_checkpoint", *_required("path"), *_MODEL, *_required("step")),
        _function("load_checkpoint", *_required("path"), *_MODEL),
        _function(
            "beam_search", *_required("model", "ids", "max_new_tokens", "beam_width"), Argument("length_penalty", 0.0),
            Argument("eos_id"), parts=2,
        ),
        _function("exponential_moving_average", *_required("values", "alpha"), lists=("values",)),
        _function("rolling_mean", *_required("values", "window"), lists=("values",)),
        _function("attention_entropy", *_required("weights")),
        _function("fit_power_law", *_required("sizes", "losses"), lists=("sizes", "losses"), parts=2),
        _of_pairs("create_padding_mask", *_required("ids"), Argument("pad_id", 0), masks=True),
        _of_pairs("create_causal_mask", *_required("size"), masks=True),
        _of_pairs("create_masks", *_required("src", "tgt"), Argument("pad_id", 0), parts=2, masks=True),
        _of_pairs("shift_right", *_required("tgt", "bos_id")),
        _of_pairs("collate", *_required("pairs", "pad_id", "bos_id", "eos_id"), parts=3),
        ToolContract(
            "LabelSmoothingLoss", {FUNCTION: _required("logits", "targets")},
            (Argument("vocab_size"), Argument("smoothing", 0.1), Argument("ignore_index", -100)), profile="seq2seq",
            averages=True,
        ),
        _of_pairs(
            "mask_tokens", *_required("ids", "mask_id", "vocab_size", "special_ids"), Argument("probability", 0.15),
            parts=2, marks={"special_positions": ("ids", "special_ids")}, limited=("mask_id", "special_ids"),
        ),
        _tuning("collate_answers", *_required("pairs", "pad_id", "eos_id"), parts=2),
        _tuning("answer_loss", *_LABELED),
        _tuning("sequence_log_probs", *_LABELED),
        _tuning("reward_loss", *_required("chosen", "rejected")),
        _tuning(
            "dpo_loss", *_required("policy_chosen", "policy_rejected", "reference_chosen", "reference_rejected"),
            Argument("beta", 0.1), Argument("label_smoothing", 0.0),
        ),
        _tuning("group_advantages", *_required("rewards"), Argument("group_size")),
        _tuning(
            "policy_loss", *_required("log_probs", "old_log_probs", "advantages", "mask"), Argument("clip", 0.2)
        ),
        _tuning("kl_estimate", *_required("log_probs", "reference_log_probs"), Argument("kind", "k3")),
    )
}  # fmt: skip
"""The contract's tools by name, in the order in which one needs them."""


def tools_of(profile: str) -> Mapping[str, ToolContract]:
    """Return the tools that are a profile's own, and those that its clauses are about."""
    about = {clause.component for clause in clauses_of(profile).values()}
    return {name: tool for name, tool in TOOLS.items() if tool.profile == profile or name in about}
