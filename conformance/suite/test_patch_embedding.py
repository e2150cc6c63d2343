"""Clauses of spec/patch_embedding.md."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from conformkit.conformance.assertions.checks import (
    NotApplicable,
    check,
    check_close,
    check_differs,
    check_equal,
    check_finite,
    check_refuses,
    check_shape,
    under,
)
from conformkit.conformance.assertions.draws import Draw
from conformkit.conformance.evidence.counting import check_count
from conformkit.conformance.evidence.definition_at_sizes import check_definition_at_sizes
from conformkit.conformance.evidence.dependence import check_all_arrive, check_kept
from conformkit.conformance.subject.component import Instance, Subject
from conformkit.conformance.suite.registry import clause
from conformkit.spec.arrays import Array

_SHAPES = ((8, 2, 3, 12), (9, 3, 1, 7), (4, 4, 2, 5))
"""Image, patch, channels, width."""


def build(
    patch_embedding: Subject, image: int = 8, patch: int = 2, channels: int = 3, width: int = 12, **options: Any
) -> Instance:
    instance = patch_embedding.build(image_size=image, patch_size=patch, channels=channels, d_model=width, **options)
    shown = ("image_size", "patch_size", "channels", "d_model")
    under(", ".join(f"{name} = {instance.sizes[name]}" for name in shown))
    return instance


def images(instance: Instance, draw: Draw, batch: int, scale: float = 1.0) -> Array:
    extent = instance.sizes["image_size"]
    return draw.values(batch, instance.sizes["channels"], extent, extent, scale=scale)


def side(instance: Instance) -> int:
    return int(instance.sizes["image_size"] // instance.sizes["patch_size"])


@clause("PATCH-SHAPE")
def test_each_patch_gives_a_row(patch_embedding: Subject, draw: Draw) -> None:
    for shape in _SHAPES:
        instance = build(patch_embedding, *shape)
        for batch in (2, 1, 3):
            out = instance(images(instance, draw, batch))
            check_shape("output", out, (batch, side(instance) ** 2, instance.sizes["d_model"]))
            check_finite("output", out)


@clause("PATCH-PARAM-COUNT")
def test_there_are_as_many_parameters_as_in_the_definition(patch_embedding: Subject) -> None:
    for shape in _SHAPES:
        check_count(build(patch_embedding, *shape))
    patch_embedding.bound.require_weights()


def moved(instance: Instance, draw: Draw) -> tuple[Array, Array]:
    """Return how much each row changes with each pixel of one channel after the other, (S · S, N), and whose pixel."""
    extent, patch, channels = (instance.sizes[name] for name in ("image_size", "patch_size", "channels"))
    image, pixels = images(instance, draw, 1), extent * extent
    copies = np.repeat(image, pixels, axis=0)
    line, column = np.divmod(np.arange(pixels), extent)
    copies[np.arange(pixels), np.arange(pixels) % channels, line, column] += 1.0
    by = np.abs(instance(copies) - instance(image)).max(axis=-1)  # (S · S, N)
    return by, line // patch * (extent // patch) + column // patch


@clause("PATCH-LOCAL")
def test_each_pixel_changes_one_row(patch_embedding: Subject, draw: Draw) -> None:
    for shape in _SHAPES:
        instance = build(patch_embedding, *shape).scatter(draw)
        by, _ = moved(instance, draw)
        most = 10 * patch_embedding.tolerance() * max(float(by.max()), 1.0)
        for pixel, rows in enumerate(by > max(most, 1e-6)):
            place = f"pixel ({', '.join(map(str, divmod(pixel, instance.sizes['image_size'])))})"
            check(f"{place} changes {int(rows.sum())} rows, expected one", int(rows.sum()) == 1)


@clause("PATCH-ORDER")
def test_patches_go_line_by_line(patch_embedding: Subject, draw: Draw) -> None:
    for shape in _SHAPES:
        instance = build(patch_embedding, *shape).scatter(draw)
        by, own = moved(instance, draw)
        check_equal("the row that changes most with each pixel", by.argmax(axis=1), own)


@clause("PATCH-SAME")
def test_equal_patches_give_equal_rows(patch_embedding: Subject, draw: Draw) -> None:
    instance = build(patch_embedding).scatter(draw)
    count = side(instance)
    if count < 2:
        raise NotApplicable.from_sizes("its limits allow one patch only")
    patch = draw.values(1, instance.sizes["channels"], instance.sizes["patch_size"], instance.sizes["patch_size"])
    rows = instance(np.tile(patch, (1, 1, count, count)))
    want = np.broadcast_to(rows[:, :1], rows.shape)
    check_close("the rows of equal patches", rows, want, patch_embedding.tolerance())


@clause("PATCH-LINEAR")
def test_the_map_is_linear_with_a_bias(patch_embedding: Subject, draw: Draw) -> None:
    instance = build(patch_embedding).scatter(draw)
    x, y = images(instance, draw, 2), images(instance, draw, 2)
    check_differs("the rows of another image", instance(x), instance(y), at_least=1e-3)
    for share in (0.25, 3.0):
        want = share * instance(x) + (1.0 - share) * instance(y)
        mixed = instance(instance.held(share * x + (1.0 - share) * y))
        check_close(f"the rows of {share:g} · x + {1.0 - share:g} · y", mixed, want, patch_embedding.tolerance(3))


@clause("PATCH-BATCH-INDEP")
def test_an_image_gives_the_same_rows_in_any_batch(patch_embedding: Subject, draw: Draw) -> None:
    instance = build(patch_embedding).scatter(draw)
    x = images(instance, draw, 3)
    together = instance(x)
    check_differs("the rows of another image", together[0], together[1], at_least=1e-3)
    for one in range(3):
        alone = instance(x[one : one + 1])[0]
        check_close(f"the rows of image {one} alone", alone, together[one], patch_embedding.tolerance())


@clause("PATCH-ORACLE")
def test_the_rows_are_those_of_the_definition(patch_embedding: Subject, draw: Draw) -> None:
    for shape in _SHAPES:
        instance = build(patch_embedding, *shape).randomize(draw)
        for scale in (1.0, 100.0):
            x = images(instance, draw, 2, patch_embedding.up_to(scale))
            check_close("output", instance(x), instance.expected(x), patch_embedding.tolerance())
            x = np.clip(np.abs(x) / np.abs(x).max(), 0.0, 1.0)  # pixels, as files hold them
            label = "output for pixels from 0 to 1"
            check_close(label, instance(x), instance.expected(x), patch_embedding.tolerance())


@clause("PATCH-SIZES")
def test_the_rows_equal_the_definition_at_every_size(patch_embedding: Subject, draw: Draw) -> None:
    check_definition_at_sizes(patch_embedding, draw, after="PATCH-ORACLE")


@clause("PATCH-REFUSED")
def test_images_of_another_size_are_refused(patch_embedding: Subject, draw: Draw) -> None:
    instance = build(patch_embedding)
    extent, channels = instance.sizes["image_size"], instance.sizes["channels"]
    oblong = (channels, 2 * extent, extent // 2)
    for shape in ((channels, extent + 1, extent + 1), (channels + 1, extent, extent), oblong):
        check_refuses(f"an image {shape}", partial(instance.unchecked, draw.values(2, *shape)))


@clause("PATCH-GRAD-ALL")
def test_gradients_reach_everything(patch_embedding: Subject, draw: Draw) -> None:
    instance = build(patch_embedding).scatter(draw)
    check_all_arrive(instance, draw, (images(instance, draw, 2),))


@clause("PATCH-KEPT")
def test_the_images_stay_as_they_are(patch_embedding: Subject, draw: Draw) -> None:
    instance = build(patch_embedding)
    check_kept(instance, (images(instance, draw, 2),))
