"""Clauses of spec/encoder.md."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from conformkit.conformance.evidence.checks import check_close, check_finite, check_shape, under
from conformkit.conformance.evidence.counting import check_count
from conformkit.conformance.evidence.dependence import check_moves, check_still, keys_mask, moved
from conformkit.conformance.evidence.draws import Draw
from conformkit.conformance.registry import clause
from conformkit.conformance.subject import Instance, Subject

Array = npt.NDArray[Any]


def build(layer: Subject, width: int = 12, heads: int = 3, hidden: int = 20, **options: Any) -> Instance:
    instance = layer.build(d_model=width, num_heads=heads, d_ff=hidden, **options)
    under(", ".join(f"{name} = {instance.sizes[name]}" for name in ("d_model", "num_heads", "d_ff")))
    return instance


def inputs(instance: Instance, draw: Draw, batch: int, tokens: int, scale: float = 1.0) -> Array:
    return draw.values(batch, instance.subject.tokens(tokens), instance.sizes["d_model"], scale=scale)


@clause("ENC-SHAPE")
def test_any_batch_and_any_number_of_positions_keep_their_shape(encoder_layer: Subject, draw: Draw) -> None:
    for width, heads, hidden in ((12, 3, 20), (8, 2, 9)):
        instance = build(encoder_layer, width, heads, hidden)
        for batch, tokens in ((2, 5), (1, 1), (3, 4)):
            x = inputs(instance, draw, batch, tokens)
            check_shape("output", y := instance(x), x.shape)
            check_finite("output", y)


@clause("ENC-PARAM-COUNT")
def test_there_are_as_many_parameters_as_in_the_definition(encoder_layer: Subject) -> None:
    for width, heads, hidden in ((12, 3, 20), (8, 2, 9)):
        check_count(build(encoder_layer, width, heads, hidden))
    encoder_layer.bound.require_weights()


@clause("ENC-BIDIR")
def test_every_position_sees_the_whole_source(encoder_layer: Subject, draw: Draw) -> None:
    instance = build(encoder_layer).scatter(draw)
    check_moves("position", moved(instance, draw, (inputs(instance, draw, 1, 6),), 0))


@clause("ENC-PAD")
def test_padded_positions_leave_real_ones_unchanged(encoder_layer: Subject, draw: Draw) -> None:
    instance = build(encoder_layer).scatter(draw)
    x = inputs(instance, draw, 1, 6)
    for last in (4, 3):
        real = np.arange(x.shape[1]) < min(last, x.shape[1] - 1)
        by = moved(instance, draw, (x, keys_mask(real[None])), 0)
        check_still("the change at real positions when padding changes", by[~real][:, real], encoder_layer.tolerance())
        check_moves("real position", by[real][:, real])


@clause("ENC-ORACLE")
def test_the_output_is_that_of_the_definition(encoder_layer: Subject, draw: Draw) -> None:
    for width, heads, hidden in ((12, 3, 20), (8, 1, 9), (8, 4, 20)):
        instance = build(encoder_layer, width, heads, hidden).randomize(draw)
        for batch, tokens, scale in ((2, 6, 1.0), (2, 3, 0.003), (1, 1, 300.0), (1, 35, 1.0)):
            x = inputs(instance, draw, batch, tokens, scale=scale)
            check_close("output", instance(x), instance.expected(x), encoder_layer.tolerance(2))
        if encoder_layer.offers("masks"):
            x = inputs(instance, draw, 3, 6)
            mask = keys_mask(draw.mask(*x.shape[:2]))
            check_close(
                "output, with a mask,", instance(x, mask), instance.expected(x, mask), encoder_layer.tolerance(2)
            )


@clause("ENC-STACK")
def test_the_stack_is_that_of_the_definition(encoder: Subject, draw: Draw) -> None:
    for layers in (1, 3):
        instance = build(encoder, num_layers=layers).randomize(draw)
        under(f"num_layers = {instance.sizes['num_layers']}")
        x = inputs(instance, draw, 2, 5)
        check_close("output", instance(x), instance.expected(x), encoder.tolerance(2 * layers + 1))
        if encoder.offers("masks"):
            mask = keys_mask(draw.mask(*x.shape[:2]))
            got, want = instance(x, mask), instance.expected(x, mask)
            check_close("output, with a mask,", got, want, encoder.tolerance(2 * layers + 1))
