"""The numbers of the errata on loss, data and training."""

from __future__ import annotations

import math

import numpy as np
import torch

from conformkit.reference import collate, shift_right
from conformkit.spec.attention import attention_weights, softmax
from conformkit.spec.multi_head_attention import split_heads

LOGITS = np.array([2.0, 1.0, 0.1])
"""One prediction over three tokens; the first one is right."""


def surprise(logits: np.ndarray, target: int) -> float:
    return -math.log(softmax(logits)[target])


def cross_entropy(target: np.ndarray, logits: np.ndarray) -> float:
    return float(-(target * np.log(softmax(logits))).sum())


def smoothed(size: int, reading: str, rate: float = 0.1) -> np.ndarray:
    """The target distribution for token 0: mass spread over all, over the others, or over all and then overwritten."""
    spread = {"all": rate / size, "others": rate / (size - 1), "overwritten": rate / size}[reading]
    target = np.full(size, spread)
    target[0] = 1 - rate + (spread if reading == "all" else 0)
    return target


def adam(gradient: float, *, inside: bool = False, epsilon: float = 1e-8, rate: float = 1e-3) -> float:
    """How far the first step of Adam goes: the corrected moments are the gradient and its square."""
    first = 0.1 * gradient / (1 - 0.9)
    second = 0.001 * gradient**2 / (1 - 0.999)
    return rate * first / (math.sqrt(second + epsilon) if inside else math.sqrt(second) + epsilon)


def entropy_share(bound: float) -> float:
    """The entropy of four heads' weights, projected by matrices drawn uniformly up to a bound, over ln 64."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(16, 64, 64))
    q, k = (split_heads(x @ rng.uniform(-bound, bound, size=(64, 64)), 4) for _ in range(2))
    weights = attention_weights(q, k)
    return float(-(weights * np.log(weights)).sum(-1).mean() / math.log(64))


def test_err_130_metrics_come_from_the_mean(printed, differ):
    losses = [surprise(LOGITS, 0), surprise(np.zeros(3), 1)]
    mean, total = float(np.mean(losses)), float(np.sum(losses))
    differ(math.exp(mean), math.exp(total), by=1)
    printed({
        "mean and sum": [mean, total], "bits": [mean / math.log(2), total / math.log(2)],
        "perplexity": [math.exp(mean), math.exp(total)],
    })  # fmt: skip


def test_err_131_targets_start_one_later(printed, differ):
    ids = np.arange(10)
    x, y = ids[3:7], ids[4:8]
    to_the_right = ids[2:6]
    differ(y, to_the_right)
    printed({"inputs": x, "targets": y, "inputs shifted to the right": to_the_right})


def test_err_132_windows_of_a_random_split_overlap(printed, differ):
    starts = np.random.default_rng(0).permutation(1000 - 50)
    training, held_out = starts[:760], starts[760:]
    distance = np.abs(held_out[:, None] - training)
    seen = set((training[:, None] + np.arange(1, 51)).ravel())
    targets = (held_out[:, None] + np.arange(1, 51)).ravel()
    differ(np.mean([t in seen for t in targets]), 0, by=0.9)
    printed({
        "expected share with a neighbour": 1 - 0.2**2, "share with a neighbour": (distance == 1).any(-1).mean(),
        "share with an overlap": (distance < 50).any(-1).mean(),
        "share of targets seen": np.mean([t in seen for t in targets]),
        "chance of no overlap": 0.2 ** (2 * 49),
    })  # fmt: skip


def test_err_133_a_perplexity_below_two_is_less_than_a_bit(printed, differ):
    differ(math.log(1.8), 1.8)
    printed({
        "nats and bits of 1.8": [math.log(1.8), math.log2(1.8)],
        "perplexity, if 2.2 and 1.8 are losses": [math.exp(2.2), math.exp(1.8)],
    })  # fmt: skip


def test_err_134_an_untrained_model_starts_near_the_vocabulary(printed, differ):
    losses = [surprise(np.zeros(size), 0) for size in (10000, 30000)]
    differ(np.exp(losses[0]), 1000, by=1000)
    printed({"loss for 10000, 30000": losses, "perplexity": [round(math.exp(loss), 6) for loss in losses]})


def test_err_136_random_targets_leave_the_entropy_of_the_draw(printed, differ):
    differ(math.log(999), 0)
    printed({"least loss for ids 1 to 999": surprise(np.zeros(999), 0)})


def test_err_138_padded_rows_are_as_long_as_the_batch(printed, differ):
    rows = [[1, 2, 3, 4, 5], [1, 2, 0, 0, 0]]
    lengths = (np.array(rows) != 0).sum(-1)
    differ([len(row) for row in rows], lengths)
    printed({"len()": [len(row) for row in rows], "tokens": lengths})


def test_err_139_the_decoder_input_has_one_token_more(printed, differ):
    targets = np.array([5, 6, 7, 0, 0])
    shifted = np.array([1, *targets[:-1]])
    differ(targets != 0, shifted != 0)
    masks = {"its mask": shifted != 0, "mask of targets": targets != 0}
    printed({"decoder input": shifted} | {name: mask.astype(int) for name, mask in masks.items()})


def test_err_140_pads_of_0_are_counted_unless_0_is_ignored(printed, differ):
    logits, targets = torch.tensor(np.stack([LOGITS, np.zeros(3)])), torch.tensor([0, 0])  # the second is a pad
    shifted = torch.tensor([0, -100])
    found = [torch.nn.functional.cross_entropy(logits, t, ignore_index=-100).item() for t in (targets, shifted)]
    differ(found[0], found[1], by=0.1)
    printed({"pads of 0": found[0], "pads of -100": found[1]})


def test_err_141_smoothing_spreads_over_all_tokens(printed, differ):
    readings = {name: smoothed(5, name) for name in ("all", "others", "overwritten")}
    losses = [cross_entropy(smoothed(3, name), LOGITS) for name in readings]
    differ(losses[0], losses[1], by=0.01)
    own = smoothed(3, "all")
    printed({
        "over all five": readings["all"], "over the others": readings["others"],
        "sum when overwritten": readings["overwritten"].sum(), "losses of the three": losses,
        "as a divergence": losses[0] + (own * np.log(own)).sum(),
    })  # fmt: skip


def test_err_142_epsilon_stands_outside_the_root(printed, differ):
    rows = {g: [adam(g), adam(g, inside=True)] for g in (0.1, 1e-8)}
    differ(rows[1e-8][0] / rows[1e-8][1], 1, by=1000)
    printed({"g 0.1, outside and inside": rows[0.1], "g 1e-8": rows[1e-8]})


def test_err_143_decay_is_decoupled_or_has_slope_lambda(printed, differ):
    theta, decay, rate, step = 1.0, 0.01, 1e-3, 1e-6
    decoupled, coupled = theta - rate * decay * theta, theta - adam(decay * theta, rate=rate)
    differ(decoupled, coupled, by=5e-4)
    slopes = [((theta + step) ** 2 - (theta - step) ** 2) / (2 * step) * factor for factor in (decay, decay / 2)]
    differ(slopes[0], decay * theta, by=0.005)
    printed({"AdamW": decoupled, "Adam": coupled, "slope of 0.01 θ²": slopes[0], "slope of 0.01 θ²/2": slopes[1]})


def test_err_144_the_backward_pass_is_in_half_precision_too(printed, differ):
    weight, x = torch.ones(2, 2, requires_grad=True), torch.ones(1, 2)
    seen = []
    with torch.autocast("cpu", torch.bfloat16):
        y = x @ weight
    y.register_hook(lambda gradient: seen.append(str(gradient.dtype)))
    y.sum().backward()
    printed({"gradient of a product": seen[0], "gradient of a parameter": str(weight.grad.dtype)})


def test_err_145_the_norm_that_clipping_returns_is_the_one_before(printed, differ):
    theta = torch.zeros(2, requires_grad=True)
    theta.grad = torch.tensor([3.0, 4.0])
    returned = torch.nn.utils.clip_grad_norm_([theta], 1.0).item()
    differ(returned, theta.grad.norm().item(), by=3)
    printed({"returned": returned, "clipped": theta.grad.numpy()})


def test_err_147_attention_is_nearly_uniform_at_first(printed):
    printed({"default layers": entropy_share(1 / 8), "Xavier": entropy_share(math.sqrt(6 / 128))})


def test_err_148_clipping_never_enlarges(printed):
    theta = torch.zeros(2, requires_grad=True)
    theta.grad = torch.tensor([3e-5, 4e-5])
    torch.nn.utils.clip_grad_norm_([theta], 1.0)
    printed({"norm after clipping 5e-5 to 1": theta.grad.norm().item()})


def test_err_149_the_two_initializations_differ(printed, differ):
    layer = torch.empty(512, 512)
    torch.manual_seed(0)
    torch.nn.init.xavier_uniform_(layer)
    differ(math.sqrt(2 / 512), layer.std().item())
    found = {"Xavier's bound": math.sqrt(6 / 1024), "its deviation": layer.std().item()}
    printed({"√(2/512)": math.sqrt(2 / 512)} | found)


def test_err_150_the_matrix_is_as_wide_as_it_is_high(printed, differ):
    fans = torch.nn.init._calculate_fan_in_and_fan_out(torch.empty(512, 512))
    bound = math.sqrt(6 / sum(fans))
    differ(math.sqrt(6 / (512 + 64)), bound, by=0.02)
    printed({"bound": bound, "in the table": math.sqrt(6 / (512 + 64))})


def test_err_151_the_deviation_is_one_over_the_root(printed, differ):
    right, wrong = 512**-0.5, math.sqrt(512**-0.5)
    x = np.random.default_rng(0).normal(size=(1000, 512))
    outputs = [(x @ np.random.default_rng(1).normal(scale=s, size=(512, 512))).std() for s in (right, wrong)]
    differ(outputs[0], outputs[1], by=1)
    printed({"deviations": [right, wrong], "of the output": outputs})


def test_err_154_a_floor_bends_the_line(printed, differ):
    sizes = np.array([1e6, 1e7, 1e8])
    slopes = [np.polyfit(np.log(sizes), np.log(loss), 1)[0] for loss in (5 * sizes**-0.076, 1.5 + 5 * sizes**-0.3)]
    differ(slopes[1], -0.3, by=0.2)
    printed({"without a floor": slopes[0], "floor of 1.5, exponent 0.3": slopes[1]})


def test_err_155_chinchilla_has_less_than_half_the_parameters(printed):
    printed({"parameters": 175 / 70, "tokens per parameter, both": [300e9 / 175e9, 1.4e12 / 70e9]})


def test_err_159_a_target_ends(printed):
    src, tgt_in, tgt_out = collate([([9], [5, 6, 7])], pad_id=0, bos_id=1, eos_id=2)
    assert src.tolist() == [[9]]
    as_it_is = torch.tensor([[5, 6, 7]])
    printed({
        "decoder input": tgt_in[0], "targets": tgt_out[0], "input of the source": shift_right(as_it_is, 1)[0],
        "its targets": as_it_is[0],
    })  # fmt: skip


def test_err_160_answers_stand_in_the_input(printed, differ):
    target = torch.arange(5, 13)[None]
    _, tgt_in, tgt_out = collate([(target[0], target[0])], pad_id=0, bos_id=1, eos_id=2)
    shares = [
        float((read[0, 1:] == wanted[0, :-1]).sum() / wanted.shape[1])
        for read, wanted in ((shift_right(target, 1), target), (tgt_in, tgt_out))
    ]
    differ(shares, 0, by=0.8)
    printed({"shifted, last id dropped": shares[0], "with an end id": shares[1]})


def test_err_161_variances_change_where_a_matrix_is_not_square(printed, differ):
    def gain(fan_in: int, fan_out: int) -> float:
        bound = math.sqrt(6 / (fan_in + fan_out))
        return fan_in * bound**2 / 3  # a sum of fan_in products; a uniform draw has variance bound²/3

    hidden = gain(512, 2048)
    after = gain(2048, 512) * hidden / 2  # half the mean square is negative
    differ([hidden, after], 1, by=0.5)
    printed({
        "after 512 to 512": round(gain(512, 512), 12), "after 512 to 2048": hidden, "after ReLU and 2048 to 512": after,
    })  # fmt: skip
