"""Clauses of spec/vision_transformer.md."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from conformkit.conformance.assertions.checks import (
    NotApplicable,
    check,
    check_close,
    check_differs,
    check_finite,
    check_refuses,
    check_shape,
    under,
)
from conformkit.conformance.assertions.draws import Draw
from conformkit.conformance.evidence.counting import check_count
from conformkit.conformance.evidence.definition_at_sizes import check_definition_at_sizes
from conformkit.conformance.evidence.dependence import check_all_arrive, check_drops_nothing, check_kept
from conformkit.conformance.evidence.encoder_texts import (
    check_extreme_scores,
    check_layers_drop,
    check_past,
    check_raw,
    plain_norms,
    quiet,
)
from conformkit.conformance.evidence.gradients_at_sizes import check_gradients_at_sizes
from conformkit.conformance.evidence.own_draws import check_own_draws
from conformkit.conformance.evidence.sublayers import check_varies, share_dropped
from conformkit.conformance.subject.component import Instance, Subject
from conformkit.conformance.suite.registry import clause
from conformkit.spec.arrays import Array

DEPTH = 8
"""The number of components that a row of logits passes through, with three layers."""
EMBEDDED = ("patch.", "positions.", "class_token.")
"""What the rows that enter the first layer are made of."""
_SMALL = 1e-5
"""Rows this small show a norm's ε, whatever the number format."""
_LEAST_LEFT = 0.6
"""The share of entries left behind one layer that three leave, at least: dropped in each, a quarter stays."""


def build(vision: Subject, width: int = 12, heads: int = 3, **options: Any) -> Instance:
    instance = vision.build(d_model=width, num_heads=heads, **options)
    shown = ("image_size", "patch_size", "channels", "num_classes", "d_model", "num_heads", "num_layers", "d_ff")
    under(", ".join(f"{name} = {instance.sizes[name]}" for name in shown))
    return instance


def images(instance: Instance, draw: Draw, batch: int) -> Array:
    extent = instance.sizes["image_size"]
    return draw.values(batch, instance.sizes["channels"], extent, extent)


def lit(image: Array) -> Array:
    """Return an image as pixels from 0 to 1, as files hold them."""
    return np.asarray((image - image.min()) / np.ptp(image), image.dtype)


@clause("VIT-SHAPE")
def test_each_image_gives_a_row_of_logits(vision: Subject, draw: Draw) -> None:
    for options in ({}, {"image_size": 9, "patch_size": 3, "channels": 1, "num_classes": 2}):
        instance = build(vision, **options)
        for batch in (2, 1, 3):
            out = instance(images(instance, draw, batch))
            check_shape("output", out, (batch, instance.sizes["num_classes"]))
            check_finite("output", out)


@clause("VIT-RAW")
def test_rows_of_logits_are_no_probabilities(vision: Subject, draw: Draw) -> None:
    instance = build(vision).scatter(draw)
    given = images(instance, draw, 8)
    check_raw(instance, draw, lambda: instance(given))


@clause("VIT-PARAM-COUNT")
def test_there_are_as_many_parameters_as_in_the_definition(vision: Subject) -> None:
    for layers, patch in ((2, 2), (1, 4), (3, 2)):
        check_count(build(vision, num_layers=layers, patch_size=patch))
    vision.bound.require_weights()


@clause("VIT-OWN-DRAWS")
def test_each_layer_begins_with_numbers_of_its_own(vision: Subject, draw: Draw) -> None:
    check_own_draws("the model", build(vision, seed=draw.integer(0, 999)).read())


@clause("VIT-PIXELS")
def test_every_pixel_reaches_the_logits(vision: Subject, draw: Draw) -> None:
    instance = build(vision, num_layers=1).scatter(draw)
    image = images(instance, draw, 1)
    places = np.argwhere(np.ones(image.shape[1:]))  # channel, line, column of each number
    copies = np.repeat(image, len(places), axis=0)
    copies[(np.arange(len(places)), *places.T)] += 3.0
    by = np.abs(instance(copies) - instance(image)).max(axis=-1)
    still = places[by < 1e-6]
    where = ", ".join(map(str, still[0])) if len(still) else ""
    check(f"pixel (channel, line, column) = ({where}) changes no logit; {len(still)} of {len(places)} don't",
          not len(still))  # fmt: skip


@clause("VIT-ORDER")
def test_patches_in_another_order_give_other_logits(vision: Subject, draw: Draw) -> None:
    instance = build(vision).scatter(draw)
    patch = instance.sizes["patch_size"]
    if instance.sizes["image_size"] < 2 * patch:
        raise NotApplicable.from_sizes("its limits allow one patch only")
    x = images(instance, draw, 2)
    turned = np.concatenate([x[..., patch:], x[..., :patch]], axis=-1)
    check_differs("the logits of an image whose patches are in another order", instance(turned), instance(x),
                  at_least=1e-4)  # fmt: skip


@clause("VIT-BATCH-INDEP")
def test_an_image_gives_the_same_logits_in_any_batch(vision: Subject, draw: Draw) -> None:
    instance = build(vision).scatter(draw)
    x = images(instance, draw, 3)
    together = instance(x)
    check_differs("the logits of another image", together[0], together[1])
    for one in range(3):
        alone = instance(x[one : one + 1])[0]
        check_close(f"the logits of image {one} alone", alone, together[one], vision.tolerance(4))


@clause("VIT-CLASS")
def test_the_head_reads_the_class_token(vision: Subject, draw: Draw) -> None:
    check_silent(vision, draw)


@clause("VIT-MEAN")
def test_the_head_reads_the_mean_of_all_rows(vision: Subject, draw: Draw) -> None:
    check_silent(vision, draw)


def check_silent(vision: Subject, draw: Draw) -> None:
    for layers in (1, 2):
        instance = build(vision, num_layers=layers).randomize(draw)
        own = dict(instance.weights)
        instance.write(quiet(instance, "attention", "feed_forward"))
        for scale in (1.0, *(() if vision.half else (_SMALL,))):
            small = {n: scale * own[n] for n in own if n.startswith(EMBEDDED)}
            x = images(instance.write(small), draw, 3)
            sentence = "" if scale == 1.0 else f" patches and positions {scale:g} times as large,"
            label, sublayers = f"logits, sublayers silent,{sentence}", ("attention", "feed_forward")
            check_past(instance, draw, own, sublayers, label, x, tolerance=vision.tolerance(4))


@clause("VIT-ATTENTION")
def test_the_attention_halves_are_those_of_the_definition(vision: Subject, draw: Draw) -> None:
    for heads, layers in ((3, 1), (4, 2)):
        instance = build(vision, heads=heads, num_layers=layers)
        check_half(instance, draw, "feed_forward", "the networks silent")
        check_extreme_scores(instance.randomize(draw), partial(instance, images(instance, draw, 2)))


@clause("VIT-FFN")
def test_the_network_halves_are_those_of_the_definition(vision: Subject, draw: Draw) -> None:
    for layers in (1, 2):
        check_half(build(vision, num_layers=layers), draw, "attention", "attention silent")


def check_half(instance: Instance, draw: Draw, silenced: str, label: str) -> None:
    instance.randomize(draw)
    instance.write(quiet(instance, silenced))
    own = dict(instance.weights)
    for scale in (1.0, 0.01):
        small = {n: scale * own[n] for n in own if n.startswith(EMBEDDED)}
        x = images(instance.write(small), draw, 2)
        check_close(f"logits, {label},", instance(x), instance.expected(x), instance.subject.tolerance(6))


@clause("VIT-ORACLE")
def test_the_logits_are_those_of_the_definition(vision: Subject, draw: Draw) -> None:
    cases = ({"num_layers": 2}, {"num_layers": 1, "patch_size": 4, "channels": 1}, {"num_layers": 3, "image_size": 12})
    for (width, heads), options in zip(((12, 3), (8, 1), (8, 4)), cases, strict=True):
        instance = build(vision, width, heads, **options).randomize(draw)
        for batch in (3, 1):
            x = images(instance, draw, batch)
            check_close("logits", instance(x), instance.expected(x), vision.tolerance(DEPTH))
        for brightest in (1.0, vision.up_to(255.0)):
            x = brightest * lit(images(instance, draw, 2))
            label = f"logits of pixels from 0 to {brightest:g}"
            check_close(label, instance(x), instance.expected(x), vision.tolerance(DEPTH))


@clause("VIT-SIZES")
def test_the_logits_equal_the_definition_at_every_size(vision: Subject, draw: Draw) -> None:
    check_definition_at_sizes(vision, draw, after="VIT-ORACLE", depth=3, coverage="some bands and marks")


@clause("VIT-GRAD-ALL")
def test_gradients_reach_everything(vision: Subject, draw: Draw) -> None:
    instance = build(vision).scatter(draw)
    check_all_arrive(instance, draw, (images(instance, draw, 3),))


@clause("VIT-GRAD-SIZES")
def test_gradients_are_right_at_every_size(vision: Subject, draw: Draw) -> None:
    check_gradients_at_sizes(vision, draw, after="VIT-ORACLE")


@clause("VIT-DROPOUT-EVAL")
def test_evaluation_drops_nothing(vision: Subject, draw: Draw) -> None:
    instance = build(vision, dropout=0.5).scatter(draw)
    check_drops_nothing(instance, build(vision, dropout=0.0), (images(instance, draw, 2),))


@clause("VIT-DROPOUT-TRAIN")
def test_training_varies_with_dropout_and_not_without(vision: Subject, draw: Draw) -> None:
    instance, plain = (build(vision, dropout=rate).scatter(draw) for rate in (0.5, 0.0))
    x = images(instance, draw, 2)
    check_varies(instance, plain, (x,))
    check_layers_drop(instance.randomize(draw), (x,), *EMBEDDED)


@clause("VIT-DROPOUT-RESIDUAL")
def test_training_leaves_the_residual_path_alone(vision: Subject, draw: Draw) -> None:
    left = [1.0 - share_dropped(_seen_past_silence(vision, draw, layers)) for layers in (1, 3)]
    lost = " and ".join(
        f"{1.0 - share:.0%} behind {layers}" for share, layers in zip(left, ("one layer", "three"), strict=True)
    )
    check(f"of a row's entries {lost} are dropped in training mode; before and after all layers it should be as many",
          left[1] > _LEAST_LEFT * left[0])  # fmt: skip


def _seen_past_silence(vision: Subject, draw: Draw, layers: int) -> Array:
    """Return rows as the head reads them in training mode, past silent sublayers."""
    instance = build(vision, dropout=0.5, num_layers=layers, num_classes=12).randomize(draw)
    shape = instance.weights["head.weight"].shape
    seen = {"head.weight": np.eye(*shape), "head.bias": np.zeros(shape[0])}
    shown = {name: array for name, array in seen.items() if name in instance.weights}
    instance.write({**quiet(instance, "attention", "feed_forward"), **plain_norms(instance), **shown})
    logits = instance(images(instance, draw, 128), mode="train", seed=1)
    return logits[:, : min(shape)]


@clause("VIT-KEPT")
def test_the_images_stay_as_they_are(vision: Subject, draw: Draw) -> None:
    instance = build(vision)
    check_kept(instance, (images(instance, draw, 2),))


@clause("VIT-REFUSED")
def test_images_of_another_size_are_refused(vision: Subject, draw: Draw) -> None:
    instance = build(vision)
    extent, patch, channels = (instance.sizes[name] for name in ("image_size", "patch_size", "channels"))
    larger = extent + patch
    for shape in ((channels, larger, larger), (channels + 1, extent, extent)):
        check_refuses(f"an image {shape}", partial(instance.unchecked, draw.values(2, *shape)))
