"""The numbers of the errata on attention and masks."""

from __future__ import annotations

import decimal
import math

import numpy as np
import torch

from conformkit.spec.attention import attention_weights, scaled_dot_product_attention, softmax
from conformkit.spec.generation import continue_greedily
from conformkit.spec.masks import additive, causal_mask
from conformkit.spec.multi_head_attention import merge_heads, multi_head_attention, split_heads
from conformkit.spec.variants import CANONICAL

Q = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
K = np.array([[1.0, 0.0], [1.0, 1.0], [0.0, 1.0]])
V = np.array([[1.0, 0.0], [0.0, 2.0], [3.0, 1.0]])
PLAIN, CAUSAL = attention_weights(Q, K), attention_weights(Q, K, causal_mask(3))
PAIR, PAIR_VALUES = np.eye(2), np.array([[2.0, 3.0], [4.0, 5.0]])
FOUR = np.array([[1.0, 0, 0, 1], [0, 1, 1, 0], [1, 1, 0, 0]])
"""Three positions of width 4, split into two heads."""


def shape(*extents: int) -> np.ndarray:
    return np.zeros(extents)


def entropy(weights: np.ndarray) -> np.ndarray:
    """The entropy of each row, relative to that of equal weights."""
    logs = np.log(np.where(weights > 0, weights, 1.0))
    return np.asarray(-(weights * logs).sum(-1) / math.log(weights.shape[-1]))


def heads(x: np.ndarray, count: int) -> np.ndarray:
    """Attention of each head's features on themselves, without projections, (heads, T, d)."""
    split = split_heads(x, count)
    return scaled_dot_product_attention(split, split, split)


def test_err_01_softmax_over_queries_leaves_rows_that_sum_to_something_else(printed, differ):
    over_queries = softmax((Q @ K.T / math.sqrt(2)).T).T
    differ(over_queries.sum(-1), 1.0)
    printed({"row sums over queries": over_queries.sum(-1), "row sums over keys": PLAIN.sum(-1)})


def test_err_02_the_last_row_is_the_one_that_the_causal_mask_leaves(printed, differ):
    differ(CAUSAL[0], PLAIN[0], by=0.5)
    printed({"row 0 before": PLAIN[0], "row 0 after": CAUSAL[0], "row 2 before": PLAIN[2], "row 2 after": CAUSAL[2]})


def test_err_03_the_first_two_rows_change(printed, differ):
    change = np.abs(CAUSAL - PLAIN).max(-1)
    differ(change > 0, [False, True, True])
    printed({"largest change per row": change})


def test_err_04_orthogonal_tokens_prefer_themselves(printed, differ):
    weights = attention_weights(PAIR, PAIR)
    differ(weights @ PAIR_VALUES, [[3, 4], [3, 4]])
    printed({"weights": weights, "output": weights @ PAIR_VALUES})


def test_err_05_dropout_in_training_never_leaves_the_output_alone(printed, differ):
    weights = attention_weights(PAIR, PAIR)
    kept = [weights * np.array(pattern).reshape(2, 2) / 0.9 for pattern in np.ndindex(2, 2, 2, 2)]
    for dropped in kept:
        differ(dropped @ PAIR_VALUES, weights @ PAIR_VALUES, by=0.1)
    others = weights * (1 - np.eye(2)) / 0.9
    printed({"nothing dropped": weights / 0.9 @ PAIR_VALUES, "both own keys dropped": others @ PAIR_VALUES})


def test_err_06_the_upper_triangle_hides_and_the_lower_one_allows(printed, differ):
    hides = torch.triu(torch.ones(2, 2), diagonal=1).numpy()
    differ(hides, np.tril(np.ones((2, 2))))
    printed({"hides": hides, "allows": causal_mask(2).astype(int)})


def test_err_07_identity_projections_do_not_average(printed, differ):
    unmasked = scaled_dot_product_attention(Q, Q, Q)
    differ(unmasked, Q.mean(0))
    diagonal = scaled_dot_product_attention(Q, Q, Q, np.eye(3, dtype=np.bool_))
    constant = scaled_dot_product_attention(0 * Q, Q, Q)
    printed({"no mask": unmasked, "diagonal mask": diagonal, "zero queries, row 0": constant[0]})


def test_err_08_a_mask_with_a_head_axis_adds_an_axis(printed):
    found = np.broadcast_shapes((2, 3, 3), (2, 1, 3, 3))
    assert len(found) != 3
    printed({"scores (2, 3, 3) with mask (2, 1, 3, 3)": found})


def test_err_09_large_negative_entries_times_a_large_negative_number_win(printed, differ):
    mask = np.array([0.0, 0.0, -1e9])
    scores = np.array([0.3, 0.2, 0.1])
    differ(softmax(scores + mask * -1e9), softmax(scores + mask))
    printed({"product": 1e9 * 1e9, "weights": softmax(scores + mask * -1e9), "added": softmax(scores + mask)})


def test_err_11_or_of_what_may_be_seen_hides_nothing(printed, differ):
    causal, real = causal_mask(3), np.array([[True, True, False]])
    differ((causal | real).sum(), (causal & real).sum())
    smallest = np.minimum(additive(causal), additive(real))
    np.testing.assert_array_equal(np.isfinite(smallest), causal & real)
    printed({"AND": (causal & real).astype(int), "OR": (causal | real).astype(int)})


def test_err_12_a_query_that_is_hidden_too_has_nothing_to_attend_to(printed):
    real = np.array([True, True, False])
    both = real[:, None] & real[None, :]
    with np.errstate(invalid="ignore"):
        exponentials = np.exp(additive(both) - additive(both).max(-1, keepdims=True))
    printed({
        "keys allowed": both.sum(-1), "keys allowed, keys only": np.broadcast_to(real, (3, 3)).sum(-1),
        "weights of the padded query": exponentials[2] / exponentials[2].sum(),
    })  # fmt: skip


def test_err_13_a_mask_per_sequence_aligns_with_the_queries(printed, outcome):
    mask = np.array([[0.0], [1], [2]]) * np.ones((3, 3))  # entry = sequence
    printed({
        "B 2, L 3": outcome(lambda: shape(2, 3, 3) + shape(2, 3)),
        "B 3, L 3: rows of sequence 0": (shape(3, 3, 3) + mask)[0, :, 0],
    })  # fmt: skip


def test_err_14_heads_do_not_change_that_alignment(printed, outcome):
    mask = np.array([[0.0], [1], [2]]) * np.ones((3, 3))
    printed({
        "B 2, L 3": outcome(lambda: shape(2, 4, 3, 3) + shape(2, 3)),
        "B 3, L 3: rows of sequence 0": (shape(3, 4, 3, 3) + mask)[0, 0, :, 0],
    })  # fmt: skip


def test_err_15_a_mask_without_head_axis_meets_the_heads(printed, outcome):
    mask = np.array([0.0, 1.0])[:, None, None] * np.ones((2, 3, 3))  # entry = sequence
    printed({
        "B 2, H 4": outcome(lambda: shape(2, 4, 3, 3) + shape(2, 3, 3)),
        "B 2, H 2: heads of sequence 0": (shape(2, 2, 3, 3) + mask)[0, :, 0, 0],
    })  # fmt: skip


def test_err_16_lengths_and_widths_may_differ(printed):
    printed({"output": scaled_dot_product_attention(shape(2, 3, 4), shape(2, 5, 4), shape(2, 5, 7)).shape})


def test_err_17_each_mask_value_has_its_own_fault(printed, outcome, differ):
    scores = np.array([0.0, 1.0, 2.0])
    single = (scores.astype(np.float32) + np.float32(-1e9)).astype(np.float64)
    added = softmax(scores - 1e9)
    differ(added, 1 / 3)
    half = torch.zeros(2, dtype=torch.float16)
    printed({
        "−∞": torch.softmax(torch.full((3,), -math.inf), -1).numpy(),
        "−1e9 in place of the scores": softmax(np.full(3, -1e9)),
        "−1e9 added in float32": softmax(single),
        "−1e9 added in float64": added,
        "−1e9 in float16": outcome(lambda: half.masked_fill(torch.tensor([True, False]), -1e9)),
        "allowed −2e9 against hidden −1e9": softmax(np.array([-2e9, -1e9])),
    })  # fmt: skip


def test_err_18_minus_hundred_leaves_nothing_that_can_be_measured(printed, differ):
    decimal.getcontext().prec = 60
    root = decimal.Decimal(2).sqrt()
    scores = [1 / root, 1 / root - 100, decimal.Decimal(-100)]  # row 0 of the worked example
    parts = [s.exp() for s in scores]
    weights = [p / sum(parts) for p in parts]
    moved = max(abs(sum(w * int(v) for w, v in zip(weights, V[:, n], strict=True)) - int(V[0, n])) for n in (0, 1))
    differ(softmax(np.array([-100.0, -100.0 - 1])), [1.0, 0.0], by=0.2)
    printed({"e^−100": math.exp(-100), "largest change of row 0": moved})


def test_err_19_masking_after_the_softmax_leaves_less_than_one(printed, differ):
    after = PLAIN * causal_mask(3)
    differ(after.sum(-1), 1.0)
    printed({
        "row sums": after.sum(-1),
        "difference after renormalizing": round(float(np.abs(after / after.sum(-1, keepdims=True) - CAUSAL).max()), 12),
    })  # fmt: skip


def test_err_22_the_exponential_overflows_much_later(printed, differ):
    limits = [math.log(float(np.finfo(kind).max)) for kind in (np.float16, np.float32, np.float64)]
    differ(limits[1], 20, by=60)
    printed({"e^20": math.exp(20), "float16, float32, float64": limits})


def test_err_23_equal_scores_are_uniform_either_way(printed):
    bare = np.exp(np.full(4, 3.0)) / np.exp(np.full(4, 3.0)).sum()
    printed({"with": softmax(np.full(4, 3.0)), "without": bare})


def test_err_24_the_slope_of_a_peaked_softmax_vanishes(printed, differ):
    slopes = []
    for p in (0.5, 0.99, 0.999999):
        above, below = (softmax(np.array([math.log(p / (1 - p)) + step, 0.0]))[0] for step in (1e-4, -1e-4))
        slopes.append((above - below) / 2e-4)
    differ(slopes[0], slopes[2], by=0.2)
    printed({f"p(1-p) at {p}": slope for p, slope in zip((0.5, 0.99, 0.999999), slopes, strict=True)})


def test_err_25_a_larger_divisor_flattens(printed, differ):
    rng = np.random.default_rng(0)
    q, k = rng.normal(size=(2, 200, 64, 64))
    scores = q @ np.swapaxes(k, -1, -2)
    by_head, by_model = (float(entropy(softmax(scores / math.sqrt(d))).mean()) for d in (64, 512))
    assert by_model > by_head
    differ(by_model, by_head, by=0.05)
    printed({"√64": by_head, "√512": by_model})


def test_err_26_variance_of_a_dot_product_is_its_width(printed, differ):
    rng = np.random.default_rng(0)
    draws = {width: rng.normal(size=(2, 4000, width)) for width in (16, 64, 256)}
    variances = np.array([(q * k).sum(-1).var() for q, k in draws.values()])
    differ(variances[0], variances[1], by=40)
    printed({"variance over width, for 16, 64, 256": variances / list(draws)})


def test_err_27_the_size_grows_as_a_root(printed, differ):
    differ(math.sqrt(256 / 64), 256 / 64)
    printed({"deviation for 64": math.sqrt(64), "deviation for 256": math.sqrt(256), "ratio": math.sqrt(256 / 64)})


def test_err_28_a_full_transpose_reverses_all_axes(printed, outcome):
    q = shape(2, 3, 4)
    printed({"shape": q.T.shape, "product": outcome(lambda: q @ q.T), "swapped": (q @ np.swapaxes(q, -1, -2)).shape})


def test_err_29_a_merge_without_transposing_back_mixes_positions(printed, differ):
    mixed = heads(FOUR, 2)
    right, wrong = merge_heads(mixed), mixed.reshape(3, 4)
    differ(wrong, right, by=0.1)
    printed({"row 0": right[0], "row 0, merged at once": wrong[0]})


def test_err_30_the_silent_forms_are_reshape_and_a_direct_view(printed, outcome, differ):
    x = torch.as_tensor(FOUR)[None]  # (B, T, D)
    direct = x.view(1, 2, 3, 2).numpy()[0]
    differ(direct, split_heads(FOUR, 2))
    printed({
        "view": outcome(lambda: x.transpose(1, 2).view(1, 3, 2, 2)),
        "reshape": outcome(lambda: x.transpose(1, 2).reshape(1, 3, 2, 2)),
        "head 0, right": split_heads(FOUR, 2)[0], "head 0, direct": direct[0],
    })  # fmt: skip


def test_err_31_a_product_takes_strided_tensors(printed, outcome):
    split = torch.zeros(1, 3, 2, 2).transpose(1, 2)  # (B, H, T, d), strided
    assert not split.is_contiguous()
    merge = torch.zeros(1, 2, 3, 2).transpose(1, 2)  # (B, T, H, d), strided
    printed({"matmul": outcome(lambda: split @ split.mT), "view": outcome(lambda: merge.view(1, 3, 4))})


def test_err_32_a_width_that_does_not_divide_raises(printed, outcome):
    x = torch.zeros(2, 3, 10)
    printed({"view": outcome(lambda: x.view(2, 3, 3, 10 // 3)), "features left": 3 * (10 // 3)})


def test_err_33_equal_heads_are_not_one_wide_head(printed, differ):
    rng = np.random.default_rng(0)
    narrow, x = {name: rng.normal(size=(4, 8)) for name in "qkv"}, rng.normal(size=(1, 5, 8))
    weights = {f"{name}.weight": np.concatenate([narrow[name]] * 2) for name in "qkv"} | {"out.weight": np.eye(8)}
    stacked, wide = (multi_head_attention(weights, x, num_heads=count, kv_heads=count, causal=False, variant=CANONICAL)
                     for count in (2, 1))  # fmt: skip
    q, k, v = (x @ narrow[name].T for name in "qkv")
    twice = np.concatenate([scaled_dot_product_attention(q, k, v)] * 2, -1)
    differ(stacked, wide, by=0.01)
    printed({
        "distance to the narrow head, repeated": round(float(np.abs(stacked - twice).max()), 12),
        "factor between the scores": (2 / math.sqrt(8)) / (1 / math.sqrt(4)),
    })  # fmt: skip


def test_err_34_without_dropout_a_seed_changes_nothing(printed):
    outputs = []
    layer = torch.nn.MultiheadAttention(8, 2, dropout=0.1, batch_first=True).eval()
    x = torch.ones(1, 3, 8)
    for seed in (42, 123):
        torch.manual_seed(seed)
        outputs.append(layer(x, x, x)[0].detach().numpy())
    printed({"difference in eval mode": np.abs(outputs[0] - outputs[1]).max()})


def test_err_35_biases_count(printed, differ):
    layer = torch.nn.MultiheadAttention(512, 8, device="meta")
    with_biases = sum(p.numel() for p in layer.parameters())
    differ(with_biases, 4 * 512**2)
    printed({"with biases": with_biases, "without": 4 * 512**2})


def test_err_36_a_row_has_no_triangle(printed, outcome):
    weights = torch.zeros(1, 3, 3)
    printed({"rank": weights[0, 0].dim(), "triu": outcome(lambda: weights[0, 0].triu(diagonal=1))})


def test_err_37_dropped_rows_never_sum_to_one(printed, differ):
    torch.manual_seed(0)
    weights = torch.full((1000, 8, 8), 1 / 8)
    sums = torch.nn.functional.dropout(weights, 0.1).sum(-1)
    good = (sums - 1).abs() < 1e-5
    differ(1 / 0.9, 1.0)
    printed({"full row": 1 / 0.9, "runs of 1000 in which all rows sum to 1": int(good.all(-1).sum())})


def test_err_38_a_second_softmax_hides_a_peak(printed, differ):
    twice = [softmax(np.eye(n)[0]) for n in (4, 512)]
    differ(entropy(twice[0]), entropy(np.eye(4)[0]), by=0.9)
    shares = [entropy(row) for row in twice]
    printed({"four keys": twice[0], "share of uniform": shares, "true share": entropy(np.eye(4)[0])})


def test_err_40_a_causal_layer_distinguishes_two_tokens_from_their_exchange(printed, differ):
    def attend(x: np.ndarray, mask: np.ndarray | None) -> np.ndarray:
        return scaled_dot_product_attention(x, x, x, mask)

    ends = [attend(pair, causal_mask(2))[-1] for pair in (np.eye(2), np.eye(2)[::-1])]
    differ(ends[0], ends[1], by=0.3)
    moved = [np.abs(attend(Q[::-1], mask)[::-1] - attend(Q, mask)).max() for mask in (None, causal_mask(3))]
    differ(moved[0], moved[1], by=0.3)
    printed({"last output of AB": ends[0], "last output of BA": ends[1],
             "deviation without a mask": round(moved[0], 12), "with it": moved[1]})  # fmt: skip


def test_err_41_weights_of_variance_one_saturate_what_scaling_should_protect(printed, differ):
    scores = np.array([
        [2.5395, -3.4004, 6.9126, -3.9048], [-30.8605, -12.8885, -12.9827, 7.6144],
        [-21.9970, -0.1657, -8.6070, -1.6373], [-0.2251, 3.2522, -6.6831, -6.3684],
    ])  # fmt: skip
    differ(scores.std(), 1.0, by=5)
    printed({"deviation": math.sqrt(8 * 8 * 8) / math.sqrt(8), "largest weights": softmax(scores).max(-1)})


def test_err_42_a_cache_saves_a_factor_of_the_length(printed, differ):
    seen = []

    def model(ids: np.ndarray) -> np.ndarray:
        seen.append(ids.shape[1])
        return np.zeros((*ids.shape, 3))

    continue_greedily(model, np.zeros((1, 1), np.int64), 100, 128)
    differ(sum(seen), seen[-1])
    printed({"positions projected without": sum(seen), "with": int(np.diff([0, *seen]).sum())})


def test_err_43_the_cache_grows_with_the_batch(printed, differ):
    of_one = 2 * 8 * 1 * 256 * 8 * 64 * 4
    differ(8 * of_one, of_one)
    printed({"1 sequence": of_one, "8 sequences": 8 * of_one, "8 sequences, 2 of 8 key/value heads": 8 * of_one // 4})


def test_err_44_the_newest_query_loses_nothing(printed):
    only = causal_mask(1, 5)[0]
    printed({"keys of the only query": only.astype(int), "keys of query 1 of 5": causal_mask(5)[1].sum()})
