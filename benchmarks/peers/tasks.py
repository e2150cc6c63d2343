"""The tasks of torch-judge that parts of our reference fit, and how the parts are adapted to them.

A submission is what a task requires: a function or a class with the names, arguments and attributes that its tests
use. It wraps a package, the reference or a copy of it with a mistake, whose code does all the work.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

import torch
from torch import Tensor, nn

__all__ = ["TASKS", "Call", "Task"]

_ATTENTION = {"attention.py", "masks.py", "errors.py"}
_HEADS = _ATTENTION | {"multi_head_attention.py", "sizes.py"}
_FEED_FORWARD = {"feed_forward.py", "sizes.py", "errors.py"}
_NORMS = {"norms.py", "sizes.py", "errors.py"}

_ONE_KIND_OF_HEADS = {"head_width": "d_model // num_heads", "output_projection": True, "positions": "none"}
_MULTI_HEAD = {"kv_heads": "num_heads", **_ONE_KIND_OF_HEADS}
_LAYER_NORM = {"norm": "layernorm", "norm_eps": 1e-5, "norm_bias": True, "norm_deviation": "biased"}


@dataclass(frozen=True)
class Call:
    """How a submission is used: constructor arguments (of a class), and the arrays that it is called with."""

    sizes: Mapping[str, int]
    inputs: tuple[Tensor, ...]


@dataclass(frozen=True)
class Task:
    """A task of torch-judge.

    `files` are the files of the reference in a submission, `variant` the choices of the task,
    `component` the component as which we judge it.
    """

    id: str
    component: str
    files: set[str]
    submission: Callable[[ModuleType], Any]
    calls: Callable[[], Iterator[Call]]
    variant: Mapping[str, Any] = field(default_factory=dict)


def attention(package: ModuleType) -> Any:
    """Return scaled dot-product attention without a mask."""
    return package.scaled_dot_product_attention


def causal_attention(package: ModuleType) -> Any:
    """Return scaled dot-product attention with the package's own causal mask."""
    return lambda q, k, v: package.scaled_dot_product_attention(q, k, v, package.causal_mask(q.shape[-2]))


def multi_head_attention(package: ModuleType) -> Any:
    """Return a class that projects three separate inputs.

    Ours attends to its single input: for others, the inputs of its key and value layers are replaced.
    """

    class Submission(_Named, package.MultiHeadAttention):  # type: ignore[misc, name-defined]
        def __init__(self, d_model: int, num_heads: int) -> None:
            super().__init__(d_model, num_heads, causal=False)

        def forward(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
            if query is key is value:
                return super().forward(query)
            layers = ((self.k, key), (self.v, value))
            hooks = [layer.register_forward_pre_hook(_exchange(query, given)) for layer, given in layers]
            try:
                return super().forward(query)
            finally:
                for hook in hooks:
                    hook.remove()

    return Submission


def grouped_query_attention(package: ModuleType) -> Any:
    """Return a class that takes the number of key/value heads."""
    canonical = package.multi_head_attention.CANONICAL

    class Submission(_Named, package.MultiHeadAttention):  # type: ignore[misc, name-defined]
        def __init__(self, d_model: int, num_heads: int, num_kv_heads: int) -> None:
            variant = canonical.but(kv_heads=str(num_kv_heads))
            super().__init__(d_model, num_heads, causal=False, variant=variant)

    return Submission


def gelu(package: ModuleType) -> Any:
    """Return the activation function."""
    return package.feed_forward.ACTIVATIONS["gelu"]


def gated_feed_forward(package: ModuleType) -> Any:
    """Return a class with the names of the task."""

    class Submission(package.FeedForward):  # type: ignore[misc, name-defined]
        gate_proj = property(lambda self: self.gate)
        up_proj = property(lambda self: self.up)
        down_proj = property(lambda self: self.down)

    return Submission


def layer_norm(package: ModuleType) -> Any:
    """Return a function of the input, the scale and the shift."""
    return lambda x, weight, bias: _normalized(package.LayerNorm, x, weight=weight, bias=bias)


def rms_norm(package: ModuleType) -> Any:
    """Return a function of the input and the scale."""
    return lambda x, weight: _normalized(package.RMSNorm, x, weight=weight)


def gpt2_block(package: ModuleType) -> Any:
    """Return a class with the names of the task, four times as wide inside.

    The task wants torch's LayerNorm: ours becomes a subclass of it that keeps its own `forward`.
    """

    class Submission(package.TransformerBlock):  # type: ignore[misc, name-defined]
        ln1 = property(lambda self: self.norm1)
        ln2 = property(lambda self: self.norm2)
        mlp = property(lambda self: self.feed_forward)

        def __init__(self, d_model: int, num_heads: int) -> None:
            super().__init__(d_model, num_heads, 4 * d_model)
            for module in self.modules():
                if type(module) is package.LayerNorm:
                    module.__class__ = type("LayerNorm", (package.LayerNorm, nn.LayerNorm), {})

    return Submission


class _Named:
    """The names of the tasks' projections."""

    W_q = property(lambda self: self.q)
    W_k = property(lambda self: self.k)
    W_v = property(lambda self: self.v)
    W_o = property(lambda self: self.out)


def _exchange(x: Tensor, given: Tensor) -> Callable[[nn.Module, tuple[Tensor, ...]], tuple[Tensor, ...] | None]:
    return lambda _, inputs: (given,) if inputs[0] is x else None


def _normalized(norm: type[nn.Module], x: Tensor, **parameters: Tensor) -> Any:
    return torch.func.functional_call(norm(x.shape[-1]), parameters, (x,))


SCALES = (1.0, 1.0, 30.0)
"""Ordinary numbers twice, with both modes and other draws, and large numbers once."""


def _drawn(*shapes: tuple[int, ...]) -> Iterator[tuple[Tensor, ...]]:
    for scale in SCALES:
        yield tuple(torch.randn(shape, dtype=torch.float64) * scale for shape in shapes)


def _queries_keys_values() -> Iterator[Call]:
    for b, t, s, dk, dv in ((2, 4, 4, 8, 8), (1, 3, 5, 16, 32), (1, 1, 1, 1, 1), (40, 2, 3, 4, 5), (3, 6, 40, 7, 2)):
        for inputs in _drawn((b, t, dk), (b, s, dk), (b, s, dv)):
            yield Call({}, inputs)


def _as_many_keys_as_queries() -> Iterator[Call]:
    for b, t, dk, dv in ((2, 4, 8, 8), (1, 5, 16, 32), (1, 1, 1, 1), (40, 3, 4, 5), (3, 40, 7, 2)):
        for inputs in _drawn((b, t, dk), (b, t, dk), (b, t, dv)):
            yield Call({}, inputs)


_HEAD_SIZES = ((32, 4), (6, 2), (12, 3), (8, 8), (5, 1))
_ROWS = ((2, 5), (1, 1), (40, 3), (3, 40))


def _three_inputs() -> Iterator[Call]:
    for d_model, num_heads in _HEAD_SIZES:
        for b, t in _ROWS:
            for q, k, v in _drawn((b, t, d_model), (b, t + 2, d_model), (b, t + 2, d_model)):
                sizes = {"d_model": d_model, "num_heads": num_heads}
                yield Call(sizes, (q, q, q))
                yield Call(sizes, (q, k, v))


def _groups() -> Iterator[Call]:
    for d_model, num_heads, groups in ((32, 8, 2), (12, 3, 1), (8, 4, 4), (6, 6, 3)):
        for b, t in _ROWS:
            for inputs in _drawn((b, t, d_model)):
                yield Call({"d_model": d_model, "num_heads": num_heads, "num_kv_heads": groups}, inputs)


def _feed_forward_rows() -> Iterator[Call]:
    for d_model, d_ff in ((16, 32), (6, 5), (3, 3), (1, 4)):
        for b, t in _ROWS:
            for inputs in _drawn((b, t, d_model)):
                yield Call({"d_model": d_model, "d_ff": d_ff}, inputs)


def _block_rows() -> Iterator[Call]:
    for d_model, num_heads in _HEAD_SIZES:
        for b, t in _ROWS:
            for inputs in _drawn((b, t, d_model)):
                yield Call({"d_model": d_model, "num_heads": num_heads}, inputs)


def _rows() -> Iterator[Call]:
    for b, t in _ROWS:
        for inputs in _drawn((b, t, 7)):
            yield Call({}, inputs)


def _rows_and_vectors(vectors: int) -> Callable[[], Iterator[Call]]:
    def calls() -> Iterator[Call]:
        for b, t in _ROWS:
            for inputs in _drawn((b, t, 7), *[(7,)] * vectors):
                yield Call({}, inputs)

    return calls


_SDPA, _MHA, _FFN, _BLOCK = "ScaledDotProductAttention", "MultiHeadAttention", "FeedForward", "TransformerBlock"

TASKS = (
    Task("attention", _SDPA, _ATTENTION, attention, _queries_keys_values),
    Task("causal_attention", _SDPA, _ATTENTION, causal_attention, _as_many_keys_as_queries),
    Task("mha", _MHA, _HEADS, multi_head_attention, _three_inputs, _MULTI_HEAD),
    Task("gqa", _MHA, _HEADS, grouped_query_attention, _groups, {"kv_heads": "num_heads // 2", **_ONE_KIND_OF_HEADS}),
    Task("gelu", _FFN, _FEED_FORWARD, gelu, _rows, {"activation": "gelu", "gated": False}),
    Task("mlp", _FFN, _FEED_FORWARD, gated_feed_forward, _feed_forward_rows, {"activation": "silu", "gated": True}),
    Task("layernorm", _BLOCK, _NORMS, layer_norm, _rows_and_vectors(2), _LAYER_NORM),
    Task("rmsnorm", _BLOCK, _NORMS, rms_norm, _rows_and_vectors(1), {"norm": "rmsnorm", "norm_eps": 1e-6}),
    Task(
        "gpt2_block", _BLOCK, _HEADS | _FEED_FORWARD | _NORMS | {"block.py"}, gpt2_block, _block_rows,
        {"activation": "gelu", "gated": False, "placement": "pre", **_LAYER_NORM, **_MULTI_HEAD},
    ),
)  # fmt: skip
