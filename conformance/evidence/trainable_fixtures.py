"""Models to evaluate and to train: their modes, their gradients, and the loss that their own logits give."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from conformkit.conformance.assertions.checks import NotApplicable
from conformkit.conformance.assertions.draws import Draw
from conformkit.conformance.assertions.sizes import Case
from conformkit.conformance.binding.sizes import NoSizeError, nearest_allowed
from conformkit.conformance.evidence.logits import logits_of
from conformkit.conformance.evidence.writers_at_sizes import constructed_writer, found_writer
from conformkit.conformance.subject.component import Instance, Subject
from conformkit.conformance.subject.tool import Parameters, Tool, ToolObject, WorkerOptimizer
from conformkit.spec.arrays import Array
from conformkit.spec.loss import loss_gradient
from conformkit.spec.metrics import mean_loss

__all__ = [
    "adam", "batch", "descent", "gradient_of", "gradients", "modes", "nearest_trainee", "optimizer", "own_loss",
    "parameters_of", "put_gradients", "trainee",
]  # fmt: skip

Batch = tuple[Array, Array]


def trainee(model: Subject, draw: Draw, **wanted: Any) -> Instance:
    """Build a small model with drawn weights, for tools that take a model and ids (B, T)."""
    if model.bound.config.layout == "sequence first":
        raise NotApplicable("its ids have positions first: the layout that the tools expect is not declared")
    sizes = {"vocab_size": 11, "d_model": 12, "num_heads": 3, "num_layers": 1, "d_ff": 20, "block_size": 9, **wanted}
    return model.build(**sizes).scatter(draw)


def nearest_trainee(model: Subject, sizes: Case) -> dict[str, int]:
    """Return the sizes within a model's limits that are nearest to these; `prompt` and `tokens` share one block."""
    limits, several = model.bound.limits, "prompt" in sizes
    wanted = sizes["tokens"] + sizes.get("prompt", 0)
    taken = {name: sizes[name] for name in ("vocab_size",) if name in sizes}
    built = model.sizes(block_size=wanted, **taken, **constructed_writer(sizes))
    longest = min(nearest_allowed("tokens", wanted, limits), built["block_size"])
    found = {**sizes, **{name: int(built[name]) for name in taken}, **found_writer(sizes, built)}
    found["batch"] = nearest_allowed("batch", sizes["batch"], limits)
    found["tokens"] = min(sizes["tokens"], longest - several)
    if several:
        found["prompt"] = min(nearest_allowed("tokens", sizes["prompt"], limits), longest - found["tokens"])
    if min(found.values()) < 1:
        raise NoSizeError(f"its limits leave no room for a prompt and new ids in {longest} positions")
    return found


def batch(model: Instance, draw: Draw, rows: int, length: int) -> Batch:
    """Draw inputs and targets (B, T)."""
    size = model.sizes["vocab_size"]
    return draw.ids(size, rows, length), draw.ids(size, rows, length)


def own_loss(model: Instance, batches: Sequence[Batch]) -> float:
    """Return the mean loss over all targets by the model's own logits, in eval mode."""
    return mean_loss([(logits_of(model, x), y) for x, y in batches])


def modes(model: Instance, ids: Array) -> tuple[bool, ...]:
    """Return the training flags of the model and its parts, without changing them."""
    return model.call(ids, mode=None, watch=True).modes


def gradients(model: Instance) -> dict[str, Array]:
    """Return the gradients stored with its parameters."""
    reply = model.subject.link.request({"op": "gradients", "handle": model.handle}, {})
    return dict(reply.tensors)


def parameters_of(model: Instance) -> dict[str, Array]:
    """Return its current trainable arrays, shared ones once."""
    names = {p["name"] for p in model.trainable}
    return {name: value for name, value in model.read_raw().items() if name in names}


def gradient_of(model: Instance, x: Array, y: Array) -> dict[str, Array]:
    """Return the gradient of the mean loss of a batch, in eval mode, by the model's own backward pass."""
    found = model.vjp(x, cotangent=loss_gradient(logits_of(model, x), y), wrt=())
    return {name: gradient for name, gradient in found.parameters.items() if gradient is not None}


def put_gradients(model: Instance, gradients: Mapping[str, Array]) -> None:
    """Set the gradients of its parameters."""
    model.subject.link.request({"op": "gradients", "handle": model.handle}, dict(gradients))


def descent(model: Instance, rate: float, own: Tool | None) -> WorkerOptimizer:
    """Make plain gradient descent for a model; its methods are called as those of the implementation's own AdamW."""
    names = {name: call.method for name, call in own.bound.calls.items()} if own is not None else {}
    return optimizer(model, "conformkit.conformance.driver.worker.frameworks.torch_training:Descent", rate, names=names)


def adam(model: Instance, own: Tool | None) -> WorkerOptimizer | ToolObject:
    """Make an AdamW for a model: the implementation's own if it has one, else the framework's."""
    if own is not None:
        return own.make(params=Parameters(model.handle))
    return optimizer(model, "torch.optim:AdamW", 1e-3)


def optimizer(model: Instance, path: str, rate: float, **options: Any) -> WorkerOptimizer:
    """Make the optimizer at an import path, for a model."""
    link, given = model.subject.link, {"lr": rate, **options}
    header = {"op": "build", "path": path, "args": [{"$parameters": model.handle}], "kwargs": given}
    return WorkerOptimizer(link.request(header, {}).header["handle"], link)
