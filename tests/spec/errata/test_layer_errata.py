"""The numbers of the errata on feed-forward networks, norms and blocks."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch

from conformkit.spec.attention import scaled_dot_product_attention
from conformkit.spec.block import transformer_block
from conformkit.spec.feed_forward import feed_forward
from conformkit.spec.layers import activate, normalize, under
from conformkit.spec.multi_head_attention import multi_head_attention
from conformkit.spec.variants import CANONICAL, Variant

X = np.array([[[1.0, 2, 0, -1], [0, 1, 3, 0], [2, 0, 1, 1]]])
"""Three positions of width 4, rows that the sublayers rotate."""
RELU, POST = CANONICAL.but(activation="relu"), CANONICAL.but(placement="post")
SIZES: dict[str, Any] = {"num_heads": 2, "kv_heads": 2}


def norms(width: int) -> dict[str, np.ndarray]:
    return {f"norm{n}.{part}": np.full(width, float(part == "weight")) for n in (1, 2) for part in ("weight", "bias")}


def wired_block() -> dict[str, np.ndarray]:
    """Projections that pass everything on, and a feed-forward network that halves its input."""
    eye = np.eye(4)
    attention = {f"attention.{name}.weight": eye for name in ("q", "k", "v", "out")}
    feed = {
        "feed_forward.up.weight": np.concatenate([eye, -eye]), "feed_forward.up.bias": np.zeros(8),
        "feed_forward.down.weight": np.concatenate([eye, -eye], -1) / 2, "feed_forward.down.bias": np.zeros(4),
    }  # fmt: skip
    return attention | feed | norms(4)


def silent_block() -> dict[str, np.ndarray]:
    return {name: 0 * value for name, value in wired_block().items() if "norm" not in name} | norms(4)


def run(weights: dict[str, np.ndarray], x: np.ndarray, variant: Variant, *, causal: bool = True) -> np.ndarray:
    return transformer_block(weights, x, causal=causal, variant=variant, **SIZES)


def layer_norm(row: list[float], eps: float) -> np.ndarray:
    unit = {"norm.weight": np.ones(len(row)), "norm.bias": np.zeros(len(row))}
    return normalize(unit, "norm", np.array(row), CANONICAL.but(norm_eps=eps))


def parameters(width: int, hidden: int, *, biases: bool) -> dict[str, int]:
    """Parameters of the parts of a block with four projections."""
    attention = 4 * (width**2 + (width if biases else 0))
    return {"attention": attention, "feed": 2 * width * hidden + hidden + width, "norms": 4 * width}


def test_err_80_the_two_placements_compute_different_things(printed, differ):
    pre, post = (run(wired_block(), X, variant)[0, 0] for variant in (CANONICAL, POST))
    differ(pre, post, by=1)
    printed({"row 0, pre-norm": pre, "row 0, post-norm": post})


def test_err_82_a_norm_on_the_sublayers_output_is_a_third_scheme(printed, differ):
    weights = wired_block()
    attended = multi_head_attention(under(weights, "attention"), X, causal=True, variant=CANONICAL, **SIZES)
    between = X + normalize(weights, "norm1", attended, CANONICAL)
    fed = feed_forward(under(weights, "feed_forward"), between, variant=CANONICAL)
    third = (between + normalize(weights, "norm2", fed, CANONICAL))[0, 2]
    post = run(weights, X, POST)[0, 2]
    differ(third, post, by=1)
    differ(third, run(weights, X, CANONICAL)[0, 2])
    printed({"row 2, post-norm": post, "row 2, as described": third})


def test_err_83_only_the_pre_norm_path_is_free_of_norms(printed, differ):
    moved = [run(silent_block(), X + 1, variant) - run(silent_block(), X, variant) for variant in (CANONICAL, POST)]
    differ(moved[0], moved[1], by=0.9)
    printed({"a shift by 1, pre-norm": moved[0].min().round(12), "post-norm": np.abs(moved[1]).max().round(12)})


def test_err_84_silent_post_norm_blocks_are_not_the_identity(printed, differ):
    x = np.array([[[1.0, 2, 3, 4]]])
    pre, post = (run(silent_block(), x, variant)[0, 0] for variant in (CANONICAL, POST))
    differ(post, x[0, 0], by=1)
    printed({"pre-norm": pre, "post-norm": post})


def test_err_85_the_stream_of_pre_norm_blocks_grows(printed, differ):
    rng = np.random.default_rng(0)
    width, sizes = 32, []
    stream = rng.normal(size=(4, 8, width))
    for depth in range(17):
        if depth in {0, 4, 16}:
            sizes.append(math.sqrt((stream**2).mean()))
        shapes = {f"attention.{n}.weight": (width, width) for n in ("q", "k", "v", "out")} | {
            "feed_forward.up.weight": (4 * width, width), "feed_forward.down.weight": (width, 4 * width)}  # fmt: skip
        weights = {name: rng.normal(size=s) / math.sqrt(s[1]) for name, s in shapes.items()} | norms(width)
        stream = run(weights, stream, CANONICAL)
    differ(sizes[2], sizes[0], by=1)
    printed({"size after 0, 4, 16 blocks": sizes})


def test_err_86_a_residual_path_can_cancel(printed, differ):
    slopes = []
    for factor in (-1.0, -3.0):
        x = torch.tensor(0.7, requires_grad=True)
        (x + factor * x).backward()
        slopes.append(x.grad.item())
    differ(np.minimum(slopes, 1), 1)
    printed({"slope for F(x) as -x": slopes[0], "as -3x": slopes[1]})


def test_err_87_gelu_and_silu_have_a_flat_point(printed, differ):
    grid = np.round(np.arange(-20000, 1) * 1e-4, 4)
    lowest = {}
    for name in ("gelu", "silu"):
        values = activate(grid, CANONICAL.but(activation=name))
        lowest[name] = [grid[values.argmin()], values.min()]
    slopes = np.diff(activate(np.array([-0.7519, -0.7517]), CANONICAL)) / 2e-4
    differ(slopes, activate(np.array([1.0]), CANONICAL), by=0.5)
    printed({"GELU": lowest["gelu"], "SiLU": lowest["silu"]})


def test_err_88_gelu_and_relu_differ(printed, differ):
    points = np.array([-1.0, 1.0])
    gelu, relu = activate(points, CANONICAL), activate(points, RELU)
    differ(gelu, relu, by=0.1)
    printed({"GELU at -1, 1": gelu, "ReLU at -1, 1": relu})


def test_err_89_biases_in_attention_count(printed, differ):
    without, with_biases = (parameters(64, 256, biases=b)["attention"] for b in (False, True))
    differ(without, with_biases)
    printed({"without": without, "with": with_biases})


def test_err_90_dropping_before_the_activation_matters_for_gelu_only(printed, differ):
    rows = {}
    for name, variant in (("ReLU", RELU), ("GELU", CANONICAL)):
        rows[name] = [activate(np.array([1 / 0.9]), variant)[0], activate(np.array([1.0]), variant)[0] / 0.9]
    differ(rows["GELU"][0], rows["GELU"][1], by=0.01)
    printed({f"{name}, before and after": row for name, row in rows.items()})


def test_err_91_the_factor_belongs_to_training(printed, differ):
    queries, keys = np.array([[1.0, 0], [0, 1], [1, 1]]), np.array([[1.0, 0], [1, 1], [0, 1]])
    right = scaled_dot_product_attention(queries, keys, np.array([[1.0, 0], [0, 2], [3, 1]]))[0]
    differ(right / 0.9, right, by=0.1)
    torch.manual_seed(0)
    mean = torch.nn.functional.dropout(torch.ones(200_000), 0.1).mean().item()
    printed({"mean of kept and dropped": mean, "row 0": right, "row 0 with the factor left in": right / 0.9})


def test_err_94_a_layer_norm_has_no_modes(printed):
    norm, x = torch.nn.LayerNorm(4), torch.tensor([[1.0, 2, 3, 5]])
    found = norm.train()(x) - norm.eval()(x)
    printed({"difference of the modes": found.abs().max().item()})


def test_err_95_a_layer_norm_reads_one_position(printed, differ):
    x = np.random.default_rng(0).normal(size=(6, 8))
    alone, together = (normalize({"n.weight": np.ones(8)}, "n", part, CANONICAL)[0] for part in (x[:1], x))
    differ((x[0] - x.mean(0)) / x.std(0), together, by=0.1)
    printed({"difference alone and in a batch": np.abs(alone - together).max()})


def test_err_96_epsilon_shows_where_rows_are_nearly_constant(printed, differ):
    coarse, fine = (layer_norm([0, 1e-3, 0, 1e-3], eps)[1] for eps in (1e-5, 1e-6))
    differ(coarse, fine, by=0.2)
    printed({"eps 1e-5": coarse, "eps 1e-6": fine, "factor": fine / coarse})


def test_err_98_a_matrix_d_by_f_multiplies_from_the_right(printed, outcome):
    x, widen = np.zeros(4), np.zeros((4, 8))
    printed({"W x": outcome(lambda: widen @ x), "x W": outcome(lambda: x @ widen)})


def test_err_99_the_feed_forward_networks_share_depends_on_the_vocabulary(printed, differ):
    block = parameters(128, 512, biases=False)
    small = 2 * (block["feed"] + 3 * 128**2 + 2 * 128) + 2 * 500 * 128  # no output projection, RMSNorm, two tables
    shares = [8 / 12, 2 * block["feed"] / small]
    differ(shares[1], shares[0], by=0.1)
    printed({"share of a block's matrices": shares[0], "share of the small model": shares[1], "all of it": small})
