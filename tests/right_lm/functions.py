"""Plain functions over NumPy data: memory-mapped style ids, a loss by log-sum-exp, Adam over a list of arrays."""

import numpy as np


def train_val_split(ids, train_frac=0.9):
    cut = int(len(ids) * train_frac)
    return np.asarray(ids[:cut], dtype=np.uint16), np.asarray(ids[cut:], dtype=np.uint16)


def get_batch(data, bs, seq_len):
    starts = np.random.randint(0, len(data) - seq_len, size=bs)
    rows = np.stack([np.asarray(data[s : s + seq_len + 1], dtype=np.int64) for s in starts])
    return rows[:, :-1], rows[:, 1:]


def sliding_windows(data, seq_len):
    views = np.lib.stride_tricks.sliding_window_view(np.asarray(data), seq_len + 1)
    return views[:, :-1], views[:, 1:]


def cross_entropy(preds, labels, pad_id=-100, smoothing=0.0):
    preds, labels = np.asarray(preds, dtype=np.float64), np.asarray(labels)
    top = preds.max(-1, keepdims=True)
    log_z = np.log(np.exp(preds - top).sum(-1)) + top[..., 0]
    kept = labels != pad_id
    own = np.take_along_axis(preds, np.where(kept, labels, 0)[..., None], -1)[..., 0]
    losses = log_z - (1 - smoothing) * own - smoothing * preds.mean(-1)
    return losses[kept].mean()


def perplexity(nll):
    return np.exp(nll)


def bits_per_character(nll, tokens_per_char=1.0):
    return nll * np.log2(np.e) * tokens_per_char


def cosine_schedule(step, max_lr, min_lr, warmup_steps, max_steps):
    if step < warmup_steps:
        return max_lr * step / warmup_steps
    phase = min((step - warmup_steps) / (max_steps - warmup_steps), 1.0)
    return min_lr + (max_lr - min_lr) * (1 + np.cos(np.pi * phase)) / 2


def inverse_sqrt_schedule(step_num, d_model, warmup_steps):
    step_num = np.maximum(step_num, 1)
    return d_model**-0.5 * np.minimum(step_num**-0.5, step_num * warmup_steps**-1.5)


def exponential_moving_average(xs, smoothing):
    out = np.empty(len(xs))
    last = xs[0]
    for i, x in enumerate(xs):
        last = last + smoothing * (x - last)
        out[i] = last
    return out


def rolling_mean(xs, n):
    sums = np.cumsum(np.concatenate([[0.0], np.asarray(xs, dtype=float)]))
    return (sums[n:] - sums[:-n]) / n


def attention_entropy(attn):
    attn = np.asarray(attn)
    return -np.sum(np.where(attn > 0, attn * np.log(np.maximum(attn, 1e-300)), 0.0), axis=-1)


def fit_power_law(N, L):
    design = np.stack([np.ones(len(N)), np.log(np.asarray(N, dtype=float))], axis=1)
    (intercept, slope), *_ = np.linalg.lstsq(design, np.log(L), rcond=None)
    return -slope, np.exp(intercept)
