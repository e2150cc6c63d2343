"""The numbers of the errata on model sizes, memory and cost."""

from __future__ import annotations

import numpy as np

from conformkit.spec.generation import continue_greedily

WIDTH, HIDDEN, VOCABULARY = 512, 2048, 30000
"""The base model of the paper and of the design document."""


def matrices(width: int, hidden: int) -> int:
    """Weights of one block without biases and norms."""
    return 4 * width**2 + 2 * width * hidden


def layer(attentions: int) -> int:
    """Parameters of a layer with biases and a norm for each sublayer."""
    return (
        attentions * 4 * (WIDTH**2 + WIDTH) + 2 * WIDTH * HIDDEN + HIDDEN + WIDTH + (attentions + 1) * 2 * WIDTH
    )  # fmt: skip


def test_err_110_eight_layers_of_512_have_25_million(printed, differ):
    count = 8 * (matrices(WIDTH, HIDDEN) + HIDDEN + WIDTH + 4 * WIDTH)
    differ(count / 1e7, 1.0)
    printed({
        "matrices": 8 * matrices(WIDTH, HIDDEN), "with norms and feed-forward biases": count,
        "layers in ten million": 1e7 / matrices(WIDTH, HIDDEN),
    })  # fmt: skip


def test_err_111_scores_take_four_bytes_each(printed, differ):
    scores = np.broadcast_to(np.float32(0), (32, 8, 512, 512))
    differ(scores.size * scores.itemsize / 2**20, 64)
    printed({"numbers": scores.size, "MiB": scores.size * scores.itemsize / 2**20})


def test_err_112_a_decoder_layer_has_two_score_matrices(printed, differ):
    found = sum(len(attentions) for attentions in 6 * [["own"]] + 6 * [["own", "encoder's"]])
    differ(found, 6 + 6)
    printed({"6 + 6 layers": found})


def test_err_113_the_estimate_counts_one_layer_and_no_cross_attention(printed, differ):
    tokens = 32 * 512  # a batch of full rows
    counted = {
        "scores": 8 * tokens * 512, "embeddings": tokens * WIDTH, "feed-forward": tokens * HIDDEN,
        "parameters": (VOCABULARY + 512) * WIDTH + 12 * matrices(WIDTH, HIDDEN),
    }  # fmt: skip
    whole = counted["parameters"] + 6 * 4 * WIDTH**2
    every_layer = 18 * counted["scores"]
    differ(whole / counted["parameters"], 1)
    printed({
        "the estimate in GiB": 4 * sum(counted.values()) / 2**30, "its parameters": counted["parameters"],
        "with cross-attention": whole, "scores of all layers in GiB": 4 * every_layer / 2**30,
    })  # fmt: skip


def test_err_114_one_step_for_each_token(printed, differ):
    lengths = []

    def model(ids: np.ndarray) -> np.ndarray:
        lengths.append(ids.shape[1])
        return np.zeros((*ids.shape, 3))

    continue_greedily(model, np.zeros((1, 1), np.int64), 100, 128)
    differ(len(lengths), 100**2)
    printed({"steps for 100 tokens": len(lengths), "pairs of positions": lengths[-1] ** 2})


def test_err_118_a_division_comes_before_the_check(printed, outcome):
    def configure(heads: int) -> int:
        width = WIDTH // heads
        if heads <= 0:
            raise ValueError(heads)
        return width

    def configure_safely(heads: int) -> int:
        if heads <= 0:
            raise ValueError(heads)
        return WIDTH // heads

    printed({"divide first": outcome(lambda: configure(0)), "check first": outcome(lambda: configure_safely(0))})


def test_err_120_decoder_layers_are_a_third_larger(printed, differ):
    exact = 2 * 10000 * WIDTH + 6 * layer(1) + 6 * layer(2)
    estimate = 2 * 10000 * WIDTH + 12 * layer(1)
    differ(exact / estimate, 1, by=0.1)
    printed({"encoder layer": layer(1), "decoder layer": layer(2), "by the formula": estimate, "exact": exact})


def test_err_121_the_output_projection_is_a_fourth_matrix(printed, differ):
    single, multi = 3 * WIDTH**2, 4 * WIDTH**2
    differ(single, multi)
    printed({"queries, keys, values": single, "with the output projection": multi})


def test_err_122_a_token_keeps_one_score_a_key(printed, differ):
    shapes = [np.empty((8, length, length), np.float32) for length in (64, 128, 256, 512)]
    tokens = [scores.nbytes // scores.shape[1] for scores in shapes]
    differ(tokens[1] / tokens[0], 4, by=1)
    printed({"bytes a token": tokens, "bytes a sequence": [scores.nbytes for scores in shapes]})
