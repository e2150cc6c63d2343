"""Clauses of spec/decoder.md."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from conformkit.conformance.evidence.checks import check_close, check_finite, check_shape, check_zero, under
from conformkit.conformance.evidence.counting import check_count
from conformkit.conformance.evidence.dependence import causal, check_moves, check_still, keys_mask, moved
from conformkit.conformance.evidence.draws import Draw
from conformkit.conformance.registry import clause
from conformkit.conformance.subject import Instance, Subject

Array = npt.NDArray[Any]


def build(layer: Subject, width: int = 12, heads: int = 3, hidden: int = 20, **options: Any) -> Instance:
    instance = layer.build(d_model=width, num_heads=heads, d_ff=hidden, **options)
    under(", ".join(f"{name} = {instance.sizes[name]}" for name in ("d_model", "num_heads", "d_ff")))
    return instance


def inputs(
    instance: Instance, draw: Draw, batch: int, target: int, source: int, scale: float = 1.0
) -> tuple[Array, Array]:
    """Return x (B, T, D) and memory (B, S, D)."""
    tokens, width = instance.subject.tokens, instance.sizes["d_model"]
    return draw.values(batch, tokens(target), width, scale=scale), draw.values(batch, tokens(source), width)


@clause("DEC-SHAPE")
def test_the_target_decides_the_shape_of_the_output(decoder_layer: Subject, draw: Draw) -> None:
    for width, heads, hidden in ((12, 3, 20), (8, 2, 9)):
        instance = build(decoder_layer, width, heads, hidden)
        for batch, target, source in ((2, 4, 7), (3, 6, 2), (1, 1, 5), (2, 5, 1)):
            x, memory = inputs(instance, draw, batch, target, source)
            check_shape("output", y := instance(x, memory), x.shape)
            check_finite("output", y)


@clause("DEC-PARAM-COUNT")
def test_there_are_as_many_parameters_as_in_the_definition(decoder_layer: Subject) -> None:
    for width, heads, hidden in ((12, 3, 20), (8, 2, 9)):
        check_count(build(decoder_layer, width, heads, hidden))
    decoder_layer.bound.require_weights()


@clause("DEC-SELF-CAUSAL")
def test_later_positions_leave_earlier_outputs_unchanged(decoder_layer: Subject, draw: Draw) -> None:
    instance = build(decoder_layer).scatter(draw)
    x, memory = inputs(instance, draw, 1, 6, 4)
    by = moved(instance, draw, (x, memory, causal(x.shape[1])), 0)
    tolerance = decoder_layer.tolerance()
    check_zero("the change of output t when x changes at j > t", np.triu(by.T, 1), at_most=10 * tolerance)
    earlier = by + np.tri(len(by), k=-1)  # output t, row j: what comes later counts as seen
    check_moves("position", earlier)


@clause("DEC-MEMORY-DEP")
def test_every_position_reads_the_whole_memory(decoder_layer: Subject, draw: Draw) -> None:
    instance = build(decoder_layer).scatter(draw)
    for target, source in ((4, 6), (6, 4)):
        x, memory = inputs(instance, draw, 1, target, source)
        mask = causal(x.shape[1]) if decoder_layer.offers("masks") else None
        check_moves("row of the memory", moved(instance, draw, (x, memory, mask), 1))


@clause("DEC-MEM-PAD")
def test_hidden_rows_of_the_memory_change_nothing(decoder_layer: Subject, draw: Draw) -> None:
    instance = build(decoder_layer).scatter(draw)
    x, memory = inputs(instance, draw, 1, 4, 6)
    real = np.arange(memory.shape[1]) < min(4, memory.shape[1] - 1)
    by = moved(instance, draw, (x, memory, causal(x.shape[1]), keys_mask(real[None])), 1)
    check_still("the change of the output when a hidden row changes", by[~real], decoder_layer.tolerance())
    check_moves("visible row of the memory", by[real])


@clause("DEC-ORACLE")
def test_the_output_is_that_of_the_definition(decoder_layer: Subject, draw: Draw) -> None:
    for width, heads, hidden in ((12, 3, 20), (8, 1, 9), (8, 4, 20)):
        instance = build(decoder_layer, width, heads, hidden).randomize(draw)
        for batch, target, source, scale in ((2, 6, 4, 1.0), (2, 3, 5, 0.003), (1, 1, 7, 300.0)):
            check_defined(instance, draw, *inputs(instance, draw, batch, target, source, scale), depth=3)


@clause("DEC-SAME-MEMORY")
def test_the_stack_is_that_of_the_definition(decoder: Subject, draw: Draw) -> None:
    for layers in (1, 3):
        instance = build(decoder, num_layers=layers).randomize(draw)
        under(f"num_layers = {instance.sizes['num_layers']}")
        check_defined(instance, draw, *inputs(instance, draw, 2, 5, 7), depth=3 * layers + 1)


def check_defined(instance: Instance, draw: Draw, x: Array, memory: Array, *, depth: int) -> None:
    """Compare with the definition, without masks and with both."""
    tolerance = instance.subject.tolerance(depth)
    check_close("output", instance(x, memory), instance.expected(x, memory), tolerance)
    if instance.subject.offers("masks"):
        real = np.arange(x.shape[1])[None] < x.shape[1] - np.arange(len(x))[:, None]
        real[:, 0] = True
        masks = causal(x.shape[1], real), keys_mask(draw.mask(*memory.shape[:2]))
        got, want = instance(x, memory, *masks), instance.expected(x, memory, *masks)
        check_close("output, with both masks,", got, want, tolerance)
