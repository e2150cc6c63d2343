"""Mistakes in a part of the weights, mistakes with the same numbers, and what numbers say where none is known."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from conformkit.conformance.apps.port.naming import explained
from conformkit.conformance.apps.port.request import NamedMistake
from conformkit.spec.arrays import Array
from tests.apps.port.test_mistakes import SCENES, right


def named(scene: str, change: Callable[[dict[str, Array]], None]) -> list[NamedMistake]:
    one = right(SCENES[scene])
    weights = {name: one.ours(name).astype(np.float64) for name in one.parameters}
    change(weights)
    return explained(one, weights.__getitem__, list(one.parameters))


def test_a_mistake_in_one_layer_is_named_with_the_layer() -> None:
    def change(w: dict[str, Array]) -> None:
        gate, up = "blocks.2.feed_forward.gate.weight", "blocks.2.feed_forward.up.weight"
        w[gate], w[up] = w[up], w[gate]

    (mistake,) = named("llama", change)
    assert (mistake.id, mistake.certainty) == ("gate-up-exchanged", "exact")
    assert mistake.sentence == "exactly your numbers with gate and up exchanged, in block 2 alone"


def test_a_mistake_in_some_parameters_is_named_with_these() -> None:
    def change(w: dict[str, Array]) -> None:
        for i in range(3):
            one, two = f"blocks.{i}.norm1.weight", f"blocks.{i}.norm2.weight"
            w[one], w[two] = w[two], w[one]

    (mistake,) = named("gpt2", change)
    assert mistake.id == "norms-exchanged"
    assert mistake.sentence.endswith("exchanged, in norm1.weight, norm2.weight alone")


def test_a_1_that_was_added_to_norms_of_heads_alone_is_said_so() -> None:
    def change(w: dict[str, Array]) -> None:
        w |= {name: w[name] + 1 for name in w if name.endswith(("q_norm.weight", "k_norm.weight"))}

    (mistake,) = named("qwen3", change)
    assert (mistake.id, mistake.certainty) == ("head-norm-offset-added", "exact")


def test_one_tensor_off_by_one_layer_is_named_with_it() -> None:
    def change(w: dict[str, Array]) -> None:
        name = "blocks.{}.feed_forward.down.weight"
        w |= {name.format(i): w[name.format((i + 1) % 3)] for i in range(3)}

    (mistake,) = named("llama", change)
    assert mistake.id == "layers-rotated"
    assert mistake.sentence.endswith("in feed_forward.down.weight alone")


def test_a_mistake_made_before_the_weights_were_moved_is_named() -> None:
    one = right(SCENES["to-pairs"])

    def change(w: dict[str, Array]) -> None:  # what is called k is permuted, and holds the values
        for i in range(3):
            for kind in ("weight", "bias"):
                k, v = (f"blocks.{i}.attention.{part}.{kind}" for part in "kv")
                w |= {k: one.plan.moved(k, one.theirs(v)), v: one.theirs(k)}

    (mistake,) = named("to-pairs", change)
    assert (mistake.id, mistake.certainty) == ("qkv-order-qvk", "exact")


def test_whole_heads_in_another_order_are_no_rows_added_in_front() -> None:
    def change(w: dict[str, Array]) -> None:
        for i in range(3):
            name = f"blocks.{i}.attention.v.weight"
            w[name] = w[name].reshape(2, 6, 24)[::-1].reshape(12, 24)

    assert [m.id for m in named("llama", change)] == ["heads-reversed-v"]


def test_one_head_in_the_place_of_all_is_no_row_added_in_front() -> None:
    def change(w: dict[str, Array]) -> None:
        name = "blocks.1.attention.v.weight"
        w[name] = np.concatenate([w[name][:6], w[name][:6]])

    (mistake,) = named("llama", change)
    assert mistake.sentence == "blocks.1.attention.v.weight: every head has the numbers of head 0"


def test_mistakes_with_the_same_numbers_are_all_named() -> None:
    def change(w: dict[str, Array]) -> None:
        for i in range(3):
            name = f"blocks.{i}.attention.q.weight"
            w[name] = w[name].reshape(2, 2, -1, 24).swapaxes(0, 1).reshape(w[name].shape)

    assert {m.id for m in named("llama", change)} == {"heads-grouped-back", "heads-grouped"}


def test_one_mistake_in_two_sayings_is_named_once() -> None:
    def change(w: dict[str, Array]) -> None:
        w |= {name: w[name] * 0 for name in w if "attention" in name and name.endswith("bias")}

    assert [m.id for m in named("qwen", change)] == ["qkv-bias-missing"]


def test_an_order_of_parts_of_other_sizes_is_no_copy_of_values() -> None:
    def change(w: dict[str, Array]) -> None:
        w |= {f"blocks.{i}.attention.v.weight": w[f"blocks.{i}.attention.k.weight"] for i in range(3)}

    assert [m.id for m in named("llama", change)] == ["values-of-keys"]


def _shifted(a: Array) -> Array:
    return np.concatenate([np.full((3, a.shape[1]), 0.5), a[:-3]])


def _quantized(a: Array) -> Array:
    step = np.abs(a).max(axis=1, keepdims=True) / 127
    return np.asarray((np.round(a / step) * step).astype(np.float32).astype(np.float64))


@pytest.mark.parametrize(
    ("name", "change", "says"),
    [
        ("embedding.weight", _shifted, "the right rows 3 later: 3 rows are added in front"),
        ("embedding.weight", lambda a: _shifted(a[::-1])[::-1], "the right rows 3 earlier: 3 rows are missing"),
        ("blocks.1.attention.q.weight", lambda a: a.reshape(4, 6, 24)[[2, 0, 3, 1]].reshape(24, 24),
         "the order 2, 0, 3, 1"),
        ("blocks.1.feed_forward.up.weight", _quantized, "rounded to 8 bits, with a scale for each row"),
        ("blocks.1.feed_forward.up.weight", lambda a: a + 1e-3 * np.sin(np.arange(a.size)).reshape(a.shape),
         "rounded: off by less than"),
        ("blocks.1.feed_forward.up.weight", lambda a: np.random.default_rng(1).normal(0, 0.02, a.shape),
         "without any relation to the right ones, 0.019: left as"),
        ("blocks.1.norm1.weight", np.exp, "the exponential of the right numbers"),
        ("blocks.1.norm1.weight", np.reciprocal, "the reciprocal of the right numbers"),
    ],
    ids=["added-in-front", "missing-in-front", "heads", "quantized", "rounded", "left", "exponential", "reciprocal"],
)  # fmt: skip
def test_numbers_of_no_known_mistake_say_what_they_are(name: str, change: Callable[[Array], Array], says: str) -> None:
    def put(w: dict[str, Array]) -> None:
        w[name] = change(w[name])

    (mistake,) = named("gpt2", put)
    assert mistake.id == "numbers"
    assert says in mistake.sentence, mistake.sentence


def test_numbers_of_another_part_of_the_block_are_said_once_for_all_blocks() -> None:
    def change(w: dict[str, Array]) -> None:
        w |= {f"blocks.{i}.norm1.weight": w[f"blocks.{i}.feed_forward.down.bias"] for i in range(3)}

    (mistake,) = named("gpt2", change)
    assert mistake.sentence.endswith("the numbers of feed_forward.down.bias of the same block")


def test_rows_of_a_fused_projection_in_each_others_places_are_one_sentence() -> None:
    names = [f"attention.{part}.weight" for part in "qkv"]

    def change(w: dict[str, Array]) -> None:
        for i in range(3):
            rows = np.concatenate([w[f"blocks.{i}.{name}"] for name in names])
            rows = np.random.default_rng(i).permutation(rows)
            w |= {f"blocks.{i}.{n}": r for n, r in zip(names, np.split(rows, 3), strict=True)}

    (mistake,) = named("gpt2", change)
    assert mistake.certainty == "unsure"
    assert "rows of q, k and v stand in each other's places" in mistake.sentence


def test_a_matrix_filled_from_another_transposed_is_said_so() -> None:
    def change(w: dict[str, Array]) -> None:
        w |= {f"blocks.{i}.feed_forward.down.weight": w[f"blocks.{i}.feed_forward.up.weight"].T for i in range(3)}

    (mistake,) = named("llama", change)
    assert mistake.sentence.endswith("the numbers of feed_forward.up.weight of the same block, transposed")


@pytest.mark.parametrize(
    ("name", "made", "said"),
    [
        ("down", lambda w: w[::-1].copy(), "the right experts in the order 3, 2, 1, 0"),
        ("down", lambda w: w[[0, 0, 0, 0]], "every expert has the numbers of expert 0"),
        ("router", lambda w: np.roll(w, 1, 0), "the right experts in the order 3, 0, 1, 2"),
        ("down", lambda w: w.swapaxes(1, 2).reshape(w.shape), "reshaped where it had to be transposed"),
    ],
    ids=["reversed", "first", "rolled", "reshaped"],
)
def test_what_became_of_experts_is_said(name: str, made: Callable[[Array], Array], said: str) -> None:
    def change(w: dict[str, Array]) -> None:
        for place in (f"blocks.{i}.feed_forward.{name}.weight" for i in range(3)):
            w[place] = made(w[place])

    assert any(said in mistake.sentence for mistake in named("experts", change))


def test_a_norm_filled_from_another_one_is_no_exchange() -> None:
    def change(w: dict[str, Array]) -> None:
        w |= {f"embedding_norm.{kind}": w[f"norm.{kind}"] + 0 for kind in ("weight", "bias")}

    sentences = [mistake.sentence for mistake in named("bloom", change)]
    assert sentences[0] == "embedding_norm.weight: the numbers of norm.weight"


def test_a_shorter_norm_filled_from_a_longer_one_is_said_so() -> None:
    def change(w: dict[str, Array]) -> None:
        w |= {f"blocks.{i}.attention.k_norm.weight": w[f"blocks.{i}.attention.q_norm.weight"][:12] for i in range(3)}

    (mistake,) = named("olmo2-grouped", change)
    assert mistake.sentence.endswith("the first 12 numbers of attention.q_norm.weight of the same block")


def _drawn(name: str, array: Array) -> Array:
    if array.ndim == 1:
        return np.full(array.shape, float(name.endswith("weight")))
    return np.random.default_rng(len(name)).normal(0, 0.02, array.shape)


def test_a_block_into_which_nothing_was_loaded_is_one_sentence() -> None:
    def change(w: dict[str, Array]) -> None:
        w |= {name: _drawn(name, array) for name, array in w.items() if name.startswith("blocks.2.")}

    (mistake,) = named("gpt2", change)
    assert mistake.sentence == "block 2: no number is that of the checkpoint: left as drawn, not loaded?"


def test_a_model_into_which_nothing_was_loaded_is_one_sentence() -> None:
    def change(w: dict[str, Array]) -> None:
        w |= {name: _drawn(name, array) for name, array in w.items()}

    (mistake,) = named("gpt2", change)
    assert mistake.id == "not-loaded"
    assert mistake.sentence.startswith("no number of the file")


def test_a_block_whose_biases_alone_are_zero_is_not_one_into_which_nothing_was_loaded() -> None:
    def change(w: dict[str, Array]) -> None:
        w |= {n: _drawn(n, a) for n, a in w.items() if n.startswith("blocks.2.") and a.ndim == 1}

    assert "not-loaded" not in {mistake.id for mistake in named("gpt2", change)}


def test_rows_that_are_rolled_around_are_said_so() -> None:
    def change(w: dict[str, Array]) -> None:
        w["blocks.1.feed_forward.down.weight"] = np.roll(w["blocks.1.feed_forward.down.weight"], 3, 0)

    (mistake,) = named("llama", change)
    assert mistake.sentence == "blocks.1.feed_forward.down.weight: the right rows rolled around: row 0 stands at 3"


def test_heads_that_cannot_be_counted_so_are_no_reason_to_stop() -> None:
    def change(w: dict[str, Array]) -> None:
        w["blocks.1.attention.out.weight"] = w["blocks.1.attention.out.weight"] + 1.0

    assert named("one-norm", change)  # half as many heads of keys as one are none
