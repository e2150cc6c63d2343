"""Clauses of spec/optimization.md."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from conformkit.conformance.assertions.checks import (
    Compared,
    NotApplicable,
    check,
    check_close,
    check_differs,
    check_equal,
    each_of,
    supposing,
    under,
)
from conformkit.conformance.assertions.draws import Draw
from conformkit.conformance.assertions.sizes import Case
from conformkit.conformance.assertions.values import close, number
from conformkit.conformance.evidence.at_sizes import check_at_sizes
from conformkit.conformance.evidence.files import file_of_its_own
from conformkit.conformance.evidence.optimizer_slips import of_adam, of_clipping
from conformkit.conformance.evidence.trainable_fixtures import (
    adam,
    batch,
    descent,
    gradient_of,
    nearest_trainee,
    own_loss,
    parameters_of,
    put_gradients,
    trainee,
)  # fmt: skip
from conformkit.conformance.subject.component import Instance, Subject
from conformkit.conformance.subject.tool import Held, Parameters, Tool, ToolObject, WorkerOptimizer
from conformkit.conformance.suite.registry import clause
from conformkit.fixtures import facts
from conformkit.spec.arrays import Array
from conformkit.spec.optimization import ADAM_FORMS, adamw, clipped, global_norm

UNCLIPPED = 1e9
"""Larger than the norm of any gradient here."""
RATE = 0.05
_DECAY = 0.5
_MANY_LAYERS = (11, 12)
"""Their numbers have two digits in the names of parameters."""
_NUMBER, _GRADIENT = 200.0, 600.0
"""A number of a parameter, and a logit or a score with its derivative: as costly as so many multiplications."""
ADAM = 1e-4
"""How far weights may be off after a few steps, relative to how far they moved: float32 in each operation."""


# --- clipping ---------------------------------------------------------------------------------------------------------


@clause("OPT-CLIP-NOOP")
def test_small_gradients_are_left_alone(clip_grad_norm: Tool, draw: Draw) -> None:
    for limit in each_of("limit", [10.0, 1e6]):
        held, gradients = _held(clip_grad_norm, draw)
        clip_grad_norm(parameters=held.parameters, max_norm=limit)
        _compare_clipped(held, gradients, limit)
    stored = facts("OPT-CLIP-NOOP")[0]
    under(f"golden {stored.number}, {stored.title}")
    _compare(_clip(clip_grad_norm, stored.inputs["g"], stored.inputs["limits"][1]), {"g": stored.value["to 10"]})


@clause("OPT-CLIP-GLOBAL")
def test_one_factor_for_all_gradients(clip_grad_norm: Tool, draw: Draw) -> None:
    stored = facts("OPT-CLIP-GLOBAL")[0]
    under(f"golden {stored.number}, {stored.title}")
    _compare(_clip(clip_grad_norm, stored.inputs["g"], stored.inputs["limits"][0]), {"g": stored.value["to 1"]})
    for limit, scale in each_of("limit, scale", [(1.0, 4.0), (0.25, 4.0), (3.0, 4.0), (1.0, 1e5), (1e-3, 0.1)]):
        held, gradients = _held(clip_grad_norm, draw, scale=scale)
        clip_grad_norm(parameters=held.parameters, max_norm=limit)
        _compare_clipped(held, gradients, limit)


@clause("OPT-CLIP-NONE")
def test_parameters_without_a_gradient_are_passed_over(clip_grad_norm: Tool, draw: Draw) -> None:
    held = Held(clip_grad_norm.link, {"a": draw.values(3), "b": draw.values(2, 2)})
    held.put(a=np.array([3.0, 4.0, 0.0]))
    clip_grad_norm(parameters=held.parameters, max_norm=1.0)
    check("a parameter without a gradient has one now", held.gradients()["b"] is None)
    got = held.gradients()["a"]
    check_close("the gradient", np.zeros(3) if got is None else got, np.array([0.6, 0.8, 0.0]), 1e-4)


@clause("OPT-CLIP-PRENORM")
def test_the_norm_that_is_returned_is_the_one_before_clipping(clip_grad_norm: Tool, draw: Draw) -> None:
    for limit in each_of("limit", [0.5, 100.0]):
        held, gradients = _held(clip_grad_norm, draw)
        got = clip_grad_norm(parameters=held.parameters, max_norm=limit)
        close("the norm", got, global_norm(gradients))


@clause("OPT-CLIP-SIZES")
def test_one_factor_for_any_number_of_gradients(clip_grad_norm: Tool, draw: Draw) -> None:
    def check_sizes(sizes: Case) -> None:
        own, shape = draw.at(sizes), (sizes["rows"], sizes["columns"])
        gradients = {f"p{number}": own.values(*shape) for number in range(sizes["parameters"])}
        held = Held(clip_grad_norm.link, {name: np.zeros(shape) for name in gradients})
        held.put(**gradients)
        limit = float(np.float32(0.5 * global_norm(gradients)))
        clip_grad_norm(parameters=held.parameters, max_norm=limit)
        _compare_clipped(held, gradients, limit)

    check_at_sizes(draw, check_sizes, _numbers, dict, after="OPT-CLIP-GLOBAL")


# --- AdamW ------------------------------------------------------------------------------------------------------------


@clause("OPT-LR-USED")
def test_the_learning_rate_is_the_one_that_is_given(adam_w: Tool, draw: Draw) -> None:
    gradient = draw.values(4)
    still, short, long = (_steps(adam_w, np.zeros(4), [gradient], lr=lr) for lr in (0.0, 0.01, 0.02))
    check_equal("the weights after a step with lr 0", still, np.zeros(4))
    check_close("the weights after a step with lr 0.02", long, 2.0 * short, ADAM)
    check_differs("the weights after a step with lr 0.01", short, np.zeros(4))


@clause("OPT-ADAM-STEP")
def test_the_first_step_is_as_long_as_the_learning_rate(adam_w: Tool) -> None:
    stored = facts("OPT-ADAM-STEP")[0]
    gradient = np.array(stored.inputs["g"])
    got = _steps(adam_w, np.zeros(3), [gradient], lr=stored.inputs["lr"], **_plain(adam_w))
    want = -np.array(stored.value["steps"])
    under(f"golden {stored.number}, {stored.title}: gradients {', '.join(f'{g:g}' for g in gradient)}")
    orders = _in_each_order(np.zeros(3), [gradient], lr=stored.inputs["lr"], weight_decay=0.0)
    for_each = 1e-3 * float(np.abs(want).min() / np.abs(want).max())  # every step by its own length
    check_close("the first step", got, _nearest(got, [want, *orders]), for_each)


@clause("OPT-ADAM-OPTIONS")
def test_betas_and_eps_are_those_that_are_given(adam_w: Tool, draw: Draw) -> None:
    gradients = [draw.values(5) for _ in range(4)]
    for betas, eps in each_of("betas, eps", [((0.5, 0.8), 1e-8), ((0.9, 0.95), 0.1), ((0.0, 0.5), 1e-3)]):
        options = {"lr": 0.1, "betas": betas, "eps": eps, **_plain(adam_w)}
        got = _steps(adam_w, np.zeros(5), gradients, **options)
        orders = _in_each_order(np.zeros(5), gradients, lr=0.1, betas=betas, eps=eps, weight_decay=0.0)
        check_close("the weights after 4 steps", got, _nearest(got, orders), ADAM)


@clause("OPT-ADAM-STATE")
def test_each_parameter_has_averages_and_a_count_of_its_own(adam_w: Tool, draw: Draw) -> None:
    shapes: dict[str, tuple[int, ...]] = {"a": (3,), "b": (2, 3), "c": (3,)}
    scales = {"a": 1.0, "b": 3e4, "c": 2e-6}
    held = Held(adam_w.link, {name: np.zeros(shape) for name, shape in shapes.items()})
    optimizer = adam_w.make(params=held.parameters, lr=0.01, **_plain(adam_w))
    drawn = [{name: draw.values(*shape, scale=scales[name]) for name, shape in shapes.items()} for _ in range(5)]
    for gradients in drawn:
        held.put(**gradients)
        optimizer.call("step")
    for name, got in held.values().items():
        own = [gradients[name] for gradients in drawn]
        want = _nearest(got, _in_each_order(np.zeros(shapes[name]), own, lr=0.01, weight_decay=0.0))
        check_close(f"a parameter with gradients of size {scales[name]:g}, after 5 steps,", got, want, ADAM)


@clause("OPT-ADAM-NONE")
def test_a_parameter_without_a_gradient_stays_as_it_is(adam_w: Tool, draw: Draw) -> None:
    before = {"a": draw.values(3), "b": draw.values(2)}
    held = Held(adam_w.link, before)
    optimizer = adam_w.make(params=held.parameters)
    held.put(a=draw.values(3))
    optimizer.call("step")
    after = held.values()
    check_equal("the parameter without a gradient", after["b"], before["b"])
    check_differs("the parameter with a gradient", after["a"], before["a"])


@clause("OPT-ADAM-GENERATOR")
def test_parameters_may_come_from_a_generator(adam_w: Tool, draw: Draw) -> None:
    held = Held(adam_w.link, {"a": draw.values(3), "b": draw.values(2)})
    optimizer = adam_w.make(params=Parameters(held.handle, once=True), lr=0.1)
    for step in each_of("step", ["first", "second", "third"]):
        before = held.values()
        optimizer.call("zero_grad")
        left = [name for name, gradient in held.gradients().items() if gradient is not None and gradient.any()]
        check(f"before the {step} step, {len(left)} of 2 parameters still have a gradient", not left)
        held.put(a=draw.values(3), b=draw.values(2))
        optimizer.call("step")
        for name, after in held.values().items():
            check_differs(f"a parameter after the {step} step", after, before[name])


@clause("OPT-ADAMW")
def test_decay_shrinks_weights_apart_from_the_gradient(adam_w: Tool, draw: Draw) -> None:
    stored = facts("OPT-ADAMW")[0]
    under(f"golden {stored.number}, {stored.title}")
    given = stored.inputs
    got = _steps(adam_w, np.array([given["θ"]]), [np.zeros(1)], lr=given["lr"], weight_decay=given["decay"])
    supposing(of_adam(np.ones(1), [np.zeros(1)], {"lr": given["lr"], "weight_decay": given["decay"]}, moved=True))
    check_close("how far the weight went", got - 1.0, np.array([stored.value["θ"] - 1.0]), 0.05)
    weights, gradients = draw.values(5), [draw.values(5) for _ in range(3)]
    for decay in each_of("decay", [0.0, 0.1, 0.5]):
        got = _steps(adam_w, weights, gradients, lr=0.1, weight_decay=decay)
        orders = _in_each_order(weights, gradients, lr=0.1, weight_decay=decay)
        check_close("the weights after 3 steps", got, _nearest(got, orders), ADAM)


@clause("OPT-ZERO-GRAD")
def test_gradients_are_forgotten_when_asked(adam_w: Tool, draw: Draw) -> None:
    held = Held(adam_w.link, {"a": draw.values(3), "b": draw.values(2, 2)})
    optimizer = adam_w.make(params=held.parameters)
    held.put(a=draw.values(3), b=draw.values(2, 2))
    optimizer.call("zero_grad")
    left = [name for name, gradient in held.gradients().items() if gradient is not None and gradient.any()]
    check(f"{len(left)} of 2 parameters still have a gradient", not left)


@clause("OPT-ADAM-SIZES")
def test_parameters_of_any_size_take_the_steps_of_the_definition(adam_w: Tool, draw: Draw) -> None:
    def check_sizes(sizes: Case) -> None:
        own, shape = draw.at(sizes), (sizes["rows"], sizes["columns"])
        weights, gradients = own.values(*shape), [own.values(*shape) for _ in range(sizes["updates"])]
        for decay in (0.0, _DECAY)[: 1 + adam_w.offers("weight-decay")]:
            given = {"weight_decay": decay} if adam_w.offers("weight-decay") else {}
            got = _steps(adam_w, weights, gradients, lr=0.01, **given)
            want = _nearest(got, _in_each_order(weights, gradients, lr=0.01, weight_decay=decay))
            label = f"how far the weights went, with decay {decay:g}," if decay else "how far the weights went"
            supposing(of_adam(weights, gradients, {"lr": 0.01, "weight_decay": decay}, moved=True))
            check_close(label, got - weights, want - weights, 1e-3)

    check_at_sizes(draw, check_sizes, _numbers, dict, after="OPT-ADAM-STATE")


# --- a step of training -----------------------------------------------------------------------------------------------


@clause("OPT-STEP-LOSS")
def test_a_step_returns_the_loss_before_it(train_step: Tool, model: Subject, own_adam: Tool | None, draw: Draw) -> None:
    for rows, length in each_of("rows, length", [(3, 5), (1, 1)]):
        instance = trainee(model, draw)
        x, y = batch(instance, draw, rows, length)
        want = own_loss(instance, [(x, y)])
        got = train_step(model=instance, optimizer=descent(instance, RATE, own_adam), x=x, y=y)
        close("the loss", got, want)


@clause("OPT-UPDATES-ALL")
def test_every_weight_that_has_a_gradient_moves(
    train_step: Tool, model: Subject, own_adam: Tool | None, draw: Draw
) -> None:
    instance = trainee(model, draw)
    x, y = batch(instance, draw, 4, 7)
    moving = [name for name, gradient in gradient_of(instance, x, y).items() if np.abs(gradient).max() > 1e-6]
    before = parameters_of(instance)
    _step(train_step, own_adam, instance, x, y)
    after = parameters_of(instance)
    still = [name for name in moving if (after[name] == before[name]).all()]
    check(f"{len(still)} of {len(moving)} parameters did not move: {', '.join(still[:4])}", not still)


@clause("OPT-STEP-GRAD")
def test_a_step_goes_down_the_gradient_of_the_loss(
    train_step: Tool, model: Subject, own_adam: Tool | None, draw: Draw
) -> None:
    for rows, length in each_of("rows, length", [(3, 5), (2, 9)]):
        instance = trainee(model, draw)
        x, y = batch(instance, draw, rows, length)
        _descends(train_step, own_adam, instance, x, y, gradient_of(instance, x, y))


@clause("OPT-STEP-SIZES")
def test_a_step_goes_down_the_gradient_of_a_batch_of_any_size(
    train_step: Tool, model: Subject, own_adam: Tool | None, draw: Draw
) -> None:
    def check_sizes(sizes: Case) -> None:
        own = draw.at(sizes)
        instance = trainee(model, own, vocab_size=sizes["vocab_size"], block_size=sizes["tokens"])
        x, y = batch(instance, own, sizes["batch"], sizes["tokens"])
        want = own_loss(instance, [(x, y)])
        close("the loss", _descends(train_step, own_adam, instance, x, y, gradient_of(instance, x, y)), want)

    def cost(sizes: Case) -> float:
        return _GRADIENT * sizes["batch"] * sizes["tokens"] * (sizes["vocab_size"] + sizes["tokens"])

    check_at_sizes(
        draw, check_sizes, cost, partial(nearest_trainee, model), after="OPT-STEP-GRAD", coverage="some bands"
    )


@clause("OPT-STEP-ALONE")
def test_a_step_forgets_the_gradients_of_the_one_before(
    train_step: Tool, model: Subject, own_adam: Tool | None, draw: Draw
) -> None:
    instance = trainee(model, draw)
    optimizer = descent(instance, RATE, own_adam)
    for step in each_of("step", ["the first step", "the second step", "the third step"]):
        x, y = batch(instance, draw, 3, 5)
        under(step)
        _descends(train_step, own_adam, instance, x, y, gradient_of(instance, x, y), optimizer=optimizer)


@clause("OPT-CLIP-ORDER")
def test_clipping_comes_between_backward_and_step(
    train_step: Tool, model: Subject, own_adam: Tool | None, draw: Draw
) -> None:
    instance = trainee(model, draw)
    optimizer = descent(instance, RATE, own_adam)
    for share in each_of("share", [0.5, 0.1, 4.0]):
        x, y = batch(instance, draw, 3, 5)
        gradients = gradient_of(instance, x, y)
        limit = float(np.float32(share * global_norm(gradients)))
        wanted = clipped(gradients, limit)
        if share < 1:
            supposing({"without clipping, or with what is clipped elsewhere": partial(float, 1.0 / share)})
        _descends(train_step, own_adam, instance, x, y, wanted, optimizer=optimizer, max_norm=limit)


@clause("OPT-TRAIN-MODE")
def test_a_step_of_a_model_in_training_mode_runs_in_it(
    train_step: Tool, model: Subject, own_adam: Tool | None, draw: Draw
) -> None:
    _drops(train_step, own_adam, model, draw, "train")


@clause("OPT-TRAIN-MODE-BACK")
def test_a_step_goes_back_to_training_mode(train_step: Tool, model: Subject, own_adam: Tool | None, draw: Draw) -> None:
    _drops(train_step, own_adam, model, draw, "eval")


# --- checkpoints ------------------------------------------------------------------------------------------------------


@clause("OPT-CKPT-WEIGHTS")
def test_a_checkpoint_brings_the_weights_back(
    load_checkpoint: Tool, save_checkpoint: Tool, model: Subject, own_adam: Tool | None, draw: Draw
) -> None:
    for num_layers in each_of("num_layers", [1, draw.integer(*_MANY_LAYERS)]):
        instance, fresh = (trainee(model, draw, num_layers=num_layers) for _ in range(2))
        optimizer = adam(instance, own_adam)
        with file_of_its_own() as path:
            _moved(instance, optimizer, draw)
            saved = parameters_of(instance)
            save_checkpoint(path=path, model=instance, optimizer=optimizer, step=3)
            _moved(instance, optimizer, draw)
            load_checkpoint(path=path, model=instance, optimizer=optimizer)
            for name, value in parameters_of(instance).items():
                check_equal(f"{name}, loaded,", value, saved[name])
            load_checkpoint(path=path, model=fresh, optimizer=adam(fresh, own_adam))
            for name, value in parameters_of(fresh).items():
                check_equal(f"{name}, loaded into another model,", value, saved[name])


@clause("OPT-CKPT-STEP")
def test_a_checkpoint_knows_its_step(
    load_checkpoint: Tool, save_checkpoint: Tool, model: Subject, own_adam: Tool | None, draw: Draw
) -> None:
    instance = trainee(model, draw)
    optimizer = adam(instance, own_adam)
    with file_of_its_own() as path:
        _moved(instance, optimizer, draw)
        for step in each_of("step", [7, 12345]):
            save_checkpoint(path=path, model=instance, optimizer=optimizer, step=step)
            got = number("the step", load_checkpoint(path=path, model=instance, optimizer=optimizer))
            check(f"the step is {got:g}, expected {step}", got == step)


@clause("OPT-RESUME")
def test_training_goes_on_as_if_it_had_not_stopped(
    load_checkpoint: Tool, save_checkpoint: Tool, model: Subject, own_adam: Tool | None, draw: Draw
) -> None:
    instance = trainee(model, draw)
    if instance.dtype == "float16":
        raise NotApplicable.from_formats("Adam's ε is 0 in float16, whose weights need another format to be trained")
    optimizer = adam(instance, own_adam)
    later = [_drawn(instance, draw) for _ in range(3)]
    with file_of_its_own() as path:
        _moved(instance, optimizer, draw, steps=3)
        save_checkpoint(path=path, model=instance, optimizer=optimizer, step=3)
        fresh = trainee(model, draw)
        again = adam(fresh, own_adam)
        load_checkpoint(path=path, model=fresh, optimizer=again)
    ways = []
    for one, own in ((instance, optimizer), (fresh, again)):
        before = parameters_of(one)
        for gradients in later:
            _one_step(one, own, gradients)
            ways.append(global_norm({name: value - before[name] for name, value in parameters_of(one).items()}))
    without, loaded = ways[0], ways[len(later)]
    under(f"the first step after loading is {loaded / without:.3g} times as long as without a stop")
    want = parameters_of(instance)
    for name, value in sorted(parameters_of(fresh).items()):
        check_close(f"{name} after 3 steps from a checkpoint", value, want[name], 1e-6)


def _numbers(sizes: Case) -> float:
    """Estimate the cost of arrays and their gradients."""
    return _NUMBER * sizes["rows"] * sizes["columns"] * sizes.get("parameters", 1) * sizes.get("updates", 1)


# --- parts ------------------------------------------------------------------------------------------------------------


def _held(tool: Tool, draw: Draw, *, scale: float = 1.0) -> tuple[Held, dict[str, Array]]:
    """Hold parameters of three shapes with gradients of very different sizes; their norm is near 2 · scale."""
    sizes = {"a": (3, 1.0), "b": (2, 0.1), "c": (4, 0.5)}
    held = Held(tool.link, {name: draw.values(rows, 2) for name, (rows, _) in sizes.items()})
    gradients = {name: draw.values(rows, 2, scale=scale * size) for name, (rows, size) in sizes.items()}
    held.put(**gradients)
    return held, gradients


def _clip(clip_grad_norm: Tool, gradient: list[float], limit: float) -> Held:
    supposing(*of_clipping({"g": np.array(gradient)}, limit))
    held = Held(clip_grad_norm.link, {"g": np.zeros(len(gradient))})
    held.put(g=np.array(gradient))
    clip_grad_norm(parameters=held.parameters, max_norm=limit)
    return held


def _compare(held: Held, want: Mapping[str, Any]) -> None:
    for name, gradient in held.gradients().items():
        check(f"a gradient is gone, expected {want[name]}", gradient is not None)
        check_close("a gradient", np.zeros(0) if gradient is None else gradient, np.asarray(want[name]), 1e-4)


def _compare_clipped(held: Held, gradients: Mapping[str, Array], limit: float) -> None:
    supposing(*of_clipping(gradients, limit))
    _compare(held, clipped(gradients, limit))


def _plain(adam_w: Tool) -> dict[str, float]:
    """Return the option that turns decay off, where there is one."""
    return {"weight_decay": 0.0} if adam_w.offers("weight-decay") else {}


def _steps(adam_w: Tool, weights: Array, gradients: list[Array], **options: Any) -> Array:
    """Return one array of weights after these gradients in turn."""
    held = Held(adam_w.link, {"w": weights})
    optimizer = adam_w.make(params=held.parameters, **options)
    for gradient in gradients:
        held.put(w=gradient)
        optimizer.call("step")
    return held.values()["w"]


def _in_each_order(weights: Array, gradients: list[Array], **options: Any) -> list[Array]:
    """Return where the definition puts weights, in each order in which it may be computed; the usual one first."""
    supposing(of_adam(weights, gradients, options))
    return [adamw(weights, gradients, form=form, **options) for form in ADAM_FORMS]


def _nearest(got: Array, orders: list[Array]) -> Array:
    """Return which of these results is nearest; the first where the shape is another."""
    if np.shape(got) != np.shape(orders[0]):
        return orders[0]
    return min(orders, key=lambda want: float(np.nan_to_num(np.abs(got - want), nan=np.inf).max(initial=0.0)))


def _drops(train_step: Tool, own_adam: Tool | None, model: Subject, draw: Draw, mode: str) -> None:
    """Check that a step of a model in this mode runs with dropout."""
    model.requires("dropout")
    instance = trainee(model, draw, dropout=0.5)
    x, y = batch(instance, draw, 4, 9)
    still = own_loss(instance, [(x, y)])
    instance.call(x, mode=mode, seed=1)
    got = number("the loss", train_step.seeded(1, model=instance, optimizer=descent(instance, 0.0, own_adam), x=x, y=y))
    label = f"of a model in {mode} mode, a step returns {got:.7g}, as without dropout"
    check(label, abs(got - still) > 1e-6 * abs(still))


def _step(train_step: Tool, own_adam: Tool | None, instance: Instance, x: Array, y: Array, **options: Any) -> float:
    unclipped = {"max_norm": UNCLIPPED} if train_step.offers("max-norm") else {}  # some clip unless told otherwise
    given = {"optimizer": descent(instance, RATE, own_adam), **unclipped, **options}
    return number("the loss", train_step(model=instance, x=x, y=y, **given))


def _descends(
    train_step: Tool,
    own_adam: Tool | None,
    instance: Instance,
    x: Array,
    y: Array,
    gradients: Mapping[str, Array],
    **options: Any,
) -> float:
    """Take a step, check that each parameter went down its gradient, and return the loss."""
    if instance.subject.half and instance.dtype == instance.subject.precision:
        raise NotApplicable.from_formats(f"what a step changes is lost in the rounding of {instance.dtype} weights")
    before = parameters_of(instance)
    loss = _step(train_step, own_adam, instance, x, y, **options)
    after = parameters_of(instance)
    scale = RATE * max(float(np.abs(g).max(initial=0.0)) for g in gradients.values())
    _check_length({name: after[name] - before[name] for name in gradients}, gradients, scale)
    for name, gradient in gradients.items():
        check_close(f"how {name} changed", after[name] - before[name], -RATE * gradient, 1e-3, scale=scale)
    return loss


def _check_length(moves: Mapping[str, Array], gradients: Mapping[str, Array], scale: float) -> None:
    """Fail where the whole step is a multiple of the wanted one: by how much does not depend on the model's form."""
    norm = global_norm(gradients)
    ratio = -sum(float((moves[name] * g).sum()) for name, g in gradients.items()) / (RATE * norm**2) if norm else 1.0
    off = max(float(np.abs(moves[name] + ratio * RATE * g).max(initial=0.0)) for name, g in gradients.items())
    close_to_it = off <= 1e-3 * scale * max(abs(ratio), 1.0)
    sentence = f"the step is {ratio:.4g} times as long as the wanted one"
    both = Compared(np.asarray(ratio), np.asarray(1.0), 2e-3)
    check(sentence, not close_to_it or abs(ratio - 1.0) <= 2e-3, compared=both)


def _drawn(instance: Instance, draw: Draw) -> dict[str, Array]:
    return {name: draw.values(*value.shape) for name, value in parameters_of(instance).items()}


def _one_step(instance: Instance, optimizer: ToolObject | WorkerOptimizer, gradients: Mapping[str, Array]) -> None:
    put_gradients(instance, gradients)
    optimizer.call("step")


def _moved(instance: Instance, optimizer: ToolObject | WorkerOptimizer, draw: Draw, *, steps: int = 1) -> None:
    for _ in range(steps):
        _one_step(instance, optimizer, _drawn(instance, draw))
