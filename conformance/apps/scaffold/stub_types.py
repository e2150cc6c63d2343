"""Types of the contract's arguments and results in a framework; the contract itself is independent of frameworks."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from conformkit.spec.components import Argument
from conformkit.spec.tools import ToolContract

__all__ = ["FRAMEWORKS", "StubFramework", "arguments", "imports", "result"]


@dataclass(frozen=True, slots=True)
class StubFramework:
    """How components look in it: base class, first line of the constructor, name of the called method."""

    array: str
    base: str
    begin: str
    call: str
    module: str
    """The type of a model."""


_STANDARD: Mapping[str, tuple[str, ...]] = {"collections.abc": ("Iterable", "Sequence"), "typing": ("Any",)}

FRAMEWORKS: Mapping[str, StubFramework] = {
    "torch": StubFramework("Tensor", "nn.Module", "super().__init__()", "forward", "nn.Module"),
    "numpy": StubFramework("np.ndarray", "", "", "__call__", "Any"),
}

_INTEGERS = (
    "src_vocab_size", "tgt_vocab_size", "num_encoder_layers", "num_decoder_layers", "pad_id", "bos_id", "size",
    "d_model", "num_heads", "num_layers", "d_ff", "vocab_size", "block_size", "max_len", "max_new_tokens", "batch_size",
    "beam_width", "min_frequency", "window", "step", "warmup", "total", "ignore_index", "mask_id",
    "num_segments", "experts_active", "group_size", "image_size", "patch_size", "channels", "num_classes",
)  # fmt: skip
_FLOATS = (
    "dropout", "temperature", "fraction", "label_smoothing", "loss", "tokens_per_character", "lr", "eps",
    "weight_decay", "peak", "beta", "clip", "floor", "length_penalty", "alpha", "smoothing", "probability",
)  # fmt: skip
_TYPES: Mapping[str, str] = {
    **dict.fromkeys(_INTEGERS, "int"), **dict.fromkeys(_FLOATS, "float"),
    **dict.fromkeys(("d_k", "d_v", "top_k", "eos_id"), "int | None"),
    **dict.fromkeys(("top_p",), "float | None"), "causal": "bool", "use_cache": "bool", "text": "str", "path": "str",
    **dict.fromkeys(("q", "k", "v", "x", "y", "idx", "ids", "logits", "targets", "weights", "query", "key", "value",
                     "memory", "src", "tgt", "images", "labels", "chosen", "rejected", "policy_chosen",
                     "policy_rejected", "reference_chosen", "reference_rejected", "rewards", "advantages",
                     "log_probs", "old_log_probs", "reference_log_probs"), "ARRAY"),
    "kind": "str",
    **dict.fromkeys(("mask", "src_mask", "tgt_mask", "memory_mask", "segments"), "ARRAY | None"),
    "pairs": "Sequence[tuple[ARRAY, ARRAY]]", "special_ids": "Sequence[int]",
    "model": "MODULE", "optimizer": "Any", "betas": "tuple[float, float]",
    **dict.fromkeys(("params", "parameters"), "Iterable[ARRAY]"), "batches": "Iterable[tuple[ARRAY, ARRAY]]",
}  # fmt: skip
_RESULTS: Mapping[str, str] = {
    "encode": "list[int]", "decode": "str", "step": "None", "zero_grad": "None", "save_checkpoint": "None",
    "load_checkpoint": "int", "cross_entropy": "ARRAY", "balance_loss": "ARRAY", "attention_entropy": "ARRAY",
    "fit_power_law": "tuple[float, float]", "collate": "tuple[ARRAY, ARRAY, ARRAY]",
    **dict.fromkeys(("answer_loss", "sequence_log_probs", "reward_loss", "dpo_loss", "group_advantages", "policy_loss",
                     "kl_estimate"), "ARRAY"),
    **dict.fromkeys(("create_padding_mask", "create_causal_mask", "shift_right", "LabelSmoothingLoss"), "ARRAY"),
    "exponential_moving_average": "list[float]", "rolling_mean": "list[float]",
}  # fmt: skip
"""Result types other than numbers and pairs of arrays."""


def arguments(
    given: Iterable[Argument | inspect.Parameter], how: StubFramework, *, lists: tuple[str, ...] = ()
) -> list[str]:
    """Return arguments as written in a signature, with types and defaults."""
    return [_argument(item, how, lists) for item in given]


def result(tool: ToolContract, method: str, how: StubFramework) -> str:
    """Return the result type of a tool's method."""
    name = method or tool.name
    kind = _RESULTS.get(name) or ("tuple[ARRAY, ARRAY]" if tool.parts else "float")
    return _written(kind, how)


def imports(body: str) -> str:
    """Return the imports that a module of stubs needs."""
    code = re.sub(r'""".*?"""', "", body, flags=re.DOTALL)
    standard = filter(None, (_from(module, names, code) for module, names in _STANDARD.items()))
    used = _from("torch", ("Tensor", "nn"), code) or ("import numpy as np" if "np." in code else "")
    return "\n\n".join(part for part in ("\n".join(standard), used) if part)


def _from(module: str, names: tuple[str, ...], code: str) -> str:
    used = [name for name in names if re.search(rf"\b{name}\b", code)]
    return f"from {module} import {', '.join(used)}" if used else ""


def _argument(item: Argument | inspect.Parameter, how: StubFramework, lists: tuple[str, ...]) -> str:
    required = item.required if isinstance(item, Argument) else item.default is inspect.Parameter.empty
    kind = ("list[int]" if item.name == "ids" else "Sequence[float]") if item.name in lists else _type(item)
    kind = _written(kind, how)
    return f"{item.name}: {kind}" if required else f"{item.name}: {kind} = {item.default!r}"


def _type(item: Any) -> str:
    kind = _TYPES.get(item.name, "float")  # max_norm: None if nothing is clipped
    optional = getattr(item, "default", None) is None and not getattr(item, "required", True)
    return f"{kind} | None" if optional and "None" not in kind else kind


def _written(kind: str, how: StubFramework) -> str:
    return kind.replace("ARRAY", how.array).replace("MODULE", how.module)
