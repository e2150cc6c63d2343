"""The numbers of the errata on positions, embeddings and tying."""

from __future__ import annotations

import math

import numpy as np
import torch

from conformkit.spec.attention import softmax
from conformkit.spec.layers import normalize
from conformkit.spec.positional_encoding import sinusoids
from conformkit.spec.variants import CANONICAL

RNG_SEED = 0


def codes(length: int, width: int) -> np.ndarray:
    return sinusoids(length, width, CANONICAL)


def drawn(*extents: int, deviation: float = 1.0) -> np.ndarray:
    return np.random.default_rng(RNG_SEED).normal(scale=deviation, size=extents)


def handout_table(max_len: int, width: int) -> torch.Tensor:
    """The table with the layout of handout §7.3: (1, max_len, width), the cosines in as many columns as the sines."""
    angles = torch.arange(max_len)[:, None] / 10000 ** (torch.arange(0, width, 2) / width)
    table = torch.zeros(max_len, width)
    table[:, 0::2], table[:, 1::2] = torch.sin(angles), torch.cos(angles)
    return table[None]


def first_loss(vocabulary: int, width: int, deviation: float) -> float:
    """The loss of a tied model whose blocks do nothing yet, on targets drawn at random."""
    rng = np.random.default_rng(RNG_SEED)
    table = rng.normal(scale=deviation, size=(vocabulary, width))
    ids, targets = rng.integers(vocabulary, size=(2, 64, 16))
    stream = table[ids] + codes(16, width)
    norm = {"norm.weight": np.ones(width), "norm.bias": np.zeros(width)}
    logits = normalize(norm, "norm", stream, CANONICAL) @ table.T  # (64, 16, V)
    highest = logits.max(-1, keepdims=True)
    totals = np.log(np.exp(logits - highest).sum(-1)) + highest[..., 0]
    return float((totals - np.take_along_axis(logits, targets[..., None], -1)[..., 0]).mean())


def stacks(width: int, hidden: int) -> tuple[int, int]:
    """Parameters of one encoder layer and of one decoder layer, with biases."""
    attention, norm = 4 * (width**2 + width), 2 * width
    feed = 2 * width * hidden + hidden + width
    return attention + feed + 2 * norm, 2 * attention + feed + 3 * norm


def test_err_50_wavelengths_grow_with_the_pair(printed):
    wavelengths = 2 * math.pi / np.arcsin(codes(2, 8)[1, 2::2])  # pair 0 rotates by more than a right angle
    first = 2 * math.pi / math.acos(codes(2, 8)[1, 1])
    assert first < wavelengths[0]
    printed({"wavelengths for a width of 8": [first, *wavelengths]})


def test_err_51_feature_0_is_the_fast_one(printed, differ):
    table = codes(5, 8)
    differ(np.abs(np.diff(table[:, 0])).max(), np.abs(np.diff(table[:, 6])).max(), by=0.5)
    printed({"feature 0": table[:, 0], "feature 6": table[:, 6]})


def test_err_52_feature_64_is_a_sine(printed, differ):
    angle = 5 / 10000 ** (64 / 512)
    found = codes(6, 512)[5, 64]
    differ(found, math.cos(angle), by=0.9)
    printed({"angle": angle, "the code": found, "what is demanded": math.cos(angle)})


def test_err_53_the_table_has_an_axis_for_the_batch(printed, outcome):
    table = torch.as_tensor(codes(10, 512))[None]
    printed({"pe[5, 64]": outcome(lambda: table[5, 64]), "pe[0, 5, 64]": table[0, 5, 64].item()})


def test_err_54_sine_and_cosine_of_a_pair_change_at_one_rate(printed, differ):
    steps = np.abs(np.diff(codes(70000, 8), axis=0)).mean(0)
    differ(steps[0], steps[2], by=0.5)
    assert np.abs(steps[0::2] / steps[1::2] - 1).max() < 0.01
    printed({"mean step of features 0 to 7": steps})


def test_err_55_the_code_holds_frequencies(printed, differ):
    frequencies = torch.exp(torch.arange(0, 8, 2) * (-math.log(10000.0) / 8)).numpy()
    comment = 10000 ** (np.arange(0, 8, 2) / 8)
    differ(frequencies, comment, by=900)
    printed({"the code": frequencies.astype(np.float64).round(6), "its comment": comment})


def test_err_56_positions_count_from_0(printed, differ):
    table = codes(2, 4)
    differ(table[0], table[1])
    printed({"position 0": table[0], "position 1": table[1]})


def test_err_57_an_odd_width_has_one_cosine_less(printed, outcome):
    printed({"skeleton": outcome(lambda: handout_table(4, 5)), "position 1": codes(2, 5)[1]})


def test_err_58_a_table_of_one_row_is_stretched(printed, outcome):
    x = torch.zeros(1, 5, 4)
    printed({
        "max_len 3": outcome(lambda: x + handout_table(3, 4)[:, :5]),
        "max_len 1": outcome(lambda: x + handout_table(1, 4)[:, :5]),
        "what position 4 gets": (x + handout_table(1, 4)[:, :5])[0, 4].numpy(),
    })  # fmt: skip


def test_err_60_small_embeddings_drown_in_positions(printed, differ):
    root = math.sqrt(512)
    lengths = {std: np.linalg.norm(drawn(400, 512, deviation=std), axis=-1).mean() for std in (0.02, 512**-0.5, 1.0)}
    for std, length in lengths.items():
        assert abs(length / (std * root) - 1) < 0.01
    position = np.linalg.norm(codes(50, 512), axis=-1)
    assert np.ptp(position) < 1e-9
    differ(0.02 * root, position[0], by=10)
    printed({
        "position": position[0], "embeddings of deviation 0.02, 1/√512, 1": [std * root for std in lengths],
        "the same, scaled": [std * root * root for std in lengths],
    })  # fmt: skip


def test_err_61_scaling_lengthens_what_has_that_length_already(printed, differ):
    length = math.sqrt((drawn(512, 512) ** 2).sum(-1).mean())
    differ(length * math.sqrt(512), math.sqrt(512), by=400)
    printed({"standard normal": length, "scaled": length * math.sqrt(512)})


def test_err_62_wide_embeddings_make_a_tied_model_start_badly(printed, differ):
    losses = [first_loss(65, 64, deviation) for deviation in (1 / 8, 1.0, 8.0)]
    differ(losses[1], math.log(65), by=20)
    printed({"ln 65": math.log(65), "loss for deviation 1/8, 1, 8": losses})


def test_err_63_scaled_logits_saturate(printed, differ):
    features, table = drawn(1050, 512)[:50], drawn(1050, 512)[50:] / math.sqrt(512)
    logits = features @ table.T
    peaks = [softmax(scale * logits).max(-1).mean() for scale in (1, math.sqrt(512))]
    differ(peaks[0], peaks[1], by=0.5)
    printed({"deviation of logits": logits.std(), "largest probability": peaks[0], "scaled by √512": peaks[1]})


def test_err_65_a_transpose_is_not_an_inverse(printed, differ):
    table = np.array([[1.0, 2.0], [0.0, 1.0]])
    differ(table @ table.T, np.eye(2))
    printed({"E Eᵀ": table @ table.T})


def test_err_66_what_tying_saves_depends_on_the_vocabulary(printed, differ):
    encoder, decoder = stacks(512, 2048)
    shares = np.array([[saved * v * 512 / (6 * (encoder + decoder) + 3 * v * 512) for v in (10000, 30000)]
                       for saved in (1, 2)])  # fmt: skip
    differ(shares[0], [0.25, 0.3], by=0.1)
    printed({"head alone": 100 * shares[0], "all three matrices": 100 * shares[1]})


def test_err_67_drawing_the_table_anew_fills_the_padding_row(printed, differ):
    layer = torch.nn.Embedding(5, 4, padding_idx=0)
    before = int((layer.weight[0] == 0).sum())
    torch.nn.init.normal_(layer.weight, std=0.5)
    after = int((layer.weight[0] == 0).sum())
    differ(before, after)
    printed({"zeros before": before, "zeros after": after})


def products(length: int, width: int) -> dict[str, int]:
    """Multiplications of one layer for one sequence, the feed-forward network four times as wide."""
    return {"scores": length**2 * width, "projections": 4 * length * width**2, "feed": 8 * length * width**2}


def test_err_68_scores_are_linear_in_the_width(printed, differ):
    once, twice = products(512, 512), products(512, 1024)
    differ(twice["scores"] / once["scores"], 4)
    printed({name: twice[part] / once[part] for name, part in
             (("scores", "scores"), ("projections", "projections"), ("feed-forward", "feed"))})  # fmt: skip


def test_err_69_memory_of_weights_is_quadratic_in_the_length(printed, differ):
    numbers = [softmax(np.zeros((length, length))).size for length in (16, 32, 64)]
    differ(numbers[2] / numbers[1], 2 ** (64 - 32))
    printed({"numbers for 16, 32, 64 positions": numbers})


def test_err_70_scores_are_linear_in_d_k_and_parameters_quadratic_in_d_model(printed, differ):
    scores = products(512, 128)["scores"] / products(512, 64)["scores"]
    parameters = [12 * width**2 for width in (64, 128)]
    differ(scores, 4)
    printed({"scores for twice the d_k": scores, "parameters for twice the d_model": parameters[1] / parameters[0]})
