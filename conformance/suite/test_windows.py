"""Clauses of spec/windows.md."""

from __future__ import annotations

import numpy as np

from conformkit.conformance.assertions.checks import NotApplicable, check, check_close, check_hidden, each_of, under
from conformkit.conformance.assertions.draws import Draw
from conformkit.conformance.evidence.rotation_angles import check_angles
from conformkit.conformance.subject.component import Instance, Subject
from conformkit.conformance.suite.registry import clause
from conformkit.spec.arrays import Array
from conformkit.spec.scores import within

LONGEST = 1024
"""The largest window that is tried: attention over a longer one costs too much."""
EVERY_PAIR = 16
"""Up to this window all pairs of query and key are tried, beyond it those of the last queries at its edge."""
SHORT = 40
"""Positions at which bases show; no more of them are needed."""
LAYERS = {"all": 2, "even": 3, "odd": 3, "5 of 6": 7}
"""Enough layers to tell who has the window from who has not."""


def beyond(subject: Subject, further: int) -> int:
    """Return a length so much longer than the window. Raises NotApplicable if sequences can't be longer than it."""
    window = subject.variant.window
    length = 0 if window > LONGEST else subject.tokens(window + further)
    if length <= window:
        raise NotApplicable.from_sizes("no sequence that is tried is longer than its window")
    return length


def moved(multi_head: Subject, draw: Draw) -> tuple[Array, Array]:
    """Return how much each output t changes when x changes at j, (j, t), and whether t may see j."""
    window, length = multi_head.variant.window, beyond(multi_head, 4)
    instance = multi_head.build(causal=True).scatter(draw)
    under(f"{length} positions")
    edge = {*range(max(0, length - window - 3), length - window + 3), length - 2, length - 1}
    chosen = np.asarray(sorted(j for j in (range(length) if window <= EVERY_PAIR else edge) if 0 <= j < length))
    x = draw.values(1, length, instance.sizes["d_model"])
    changed = np.repeat(x, len(chosen), axis=0)
    changed[np.arange(len(chosen)), chosen] += 3.0 * draw.values(len(chosen), x.shape[-1])
    change = np.abs(instance(changed) - instance(x)).max(axis=-1)  # (j, t)
    return change, within(length, window).T[chosen]


@clause("WIN-HIDES")
def test_no_output_depends_on_a_key_before_its_window(multi_head: Subject, draw: Draw) -> None:
    change, seen = moved(multi_head, draw)
    label = "the change of output t (column) when x changes at a key before its window (row)"
    check_hidden(label, change, seen | ~np.triu(np.ones_like(seen)), at_most=10 * multi_head.tolerance())


@clause("WIN-REACH")
def test_every_output_depends_on_all_keys_of_its_window(multi_head: Subject, draw: Draw) -> None:
    change, seen = moved(multi_head, draw)
    blind = np.argwhere(seen & (change <= 1e-9))
    sentence = f"the window is {multi_head.variant.window}; {len(blind)} outputs do not depend on a key within it"
    check(sentence, not len(blind))


@clause("WIN-ORACLE")
def test_lengths_around_the_window_give_the_definitions_output(multi_head: Subject, draw: Draw) -> None:
    window, longest = multi_head.variant.window, beyond(multi_head, multi_head.variant.window + 3)
    for heads in each_of("heads", [3, 2]):
        instance = multi_head.build(d_model=12, num_heads=heads, causal=True).randomize(draw)
        for length in sorted({max(window - 1, 1), window, window + 1, longest} & set(range(1, longest + 1))):
            under(f"{length} positions, a window of {window}")
            check_definition(instance, draw.values(2, length, instance.sizes["d_model"]))


@clause("WIN-BASE")
def test_each_pair_turns_by_the_base_of_the_window(multi_head: Subject) -> None:
    for width in each_of("width", [16, 32]):
        check_angles(multi_head.build(d_model=width, num_heads=2))


@clause("WIN-BASES")
def test_each_layer_rotates_by_the_base_of_its_kind(model: Subject, draw: Draw) -> None:
    length = model.tokens(min(model.variant.window, SHORT))
    instance = model.build(num_layers=LAYERS[model.variant.window_layers], block_size=length).randomize(draw)
    under(f"{instance.sizes['num_layers']} layers, {length} ids, a window of {model.variant.window}")
    check_definition(instance, draw.ids(instance.sizes["vocab_size"], 2, length))


@clause("WIN-LAYERS")
def test_the_declared_layers_have_the_window(model: Subject, draw: Draw) -> None:
    length = beyond(model, 4)
    layers = LAYERS[model.variant.window_layers]
    instance = model.build(num_layers=layers, block_size=length).randomize(draw)
    length = min(length, instance.sizes["block_size"])
    under(f"{instance.sizes['num_layers']} layers, {length} ids, a window of {model.variant.window}")
    check_definition(instance, draw.ids(instance.sizes["vocab_size"], 2, length))


def check_definition(instance: Instance, given: Array) -> None:
    """Check the output for x or ids against the definition's."""
    subject = instance.subject
    depth = 1 if subject.name == "MultiHeadAttention" else 5
    check_close("output", instance(given), instance.expected(given), subject.tolerance(depth))
