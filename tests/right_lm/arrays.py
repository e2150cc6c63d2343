"""NumPy and plain Python: characters in the order in which they come, int32 ids, lists wherever a list will do."""

import itertools
import math

import numpy as np


class CharTokenizer:
    """Characters in the order of their first appearance; what the text lacks has an id of its own."""

    def __init__(self, text):
        self.chars = [*dict.fromkeys(text), "\ufffd"]
        self.index = {c: i for i, c in enumerate(self.chars)}

    def vocab_size(self):
        return len(self.chars)

    def encode(self, text):
        return np.array([self.index.get(c, len(self.chars) - 1) for c in text], dtype=np.int32)

    def decode(self, ids):
        return "".join(self.chars[i] for i in np.asarray(ids, dtype=int))


class BPETokenizer:
    """Byte pairs by hand: the whole text is one word, and ties go to the pair that came first."""

    def __init__(self, text, vocab_size=500, min_frequency=2):
        ids = list(text.encode())
        self.merges = {}
        while 256 + len(self.merges) < vocab_size:
            counts = {}
            for pair in itertools.pairwise(ids):
                counts[pair] = counts.get(pair, 0) + 1
            if not counts:
                break
            best = max(counts, key=counts.get)
            if counts[best] < min_frequency:
                break
            self.merges[best] = 256 + len(self.merges)
            ids = self._merge(ids, best)
        self.pieces = {i: bytes([i]) for i in range(256)}
        for (a, b), new in self.merges.items():
            self.pieces[new] = self.pieces[a] + self.pieces[b]

    @property
    def vocab_size(self):
        return len(self.pieces)

    def encode(self, text):
        ids = list(text.encode("utf-8", "surrogatepass"))
        while len(ids) > 1:
            pair = min(itertools.pairwise(ids), key=lambda p: self.merges.get(p, math.inf))
            if pair not in self.merges:
                break
            ids = self._merge(ids, pair)
        return ids

    def decode(self, ids):
        return b"".join(self.pieces[int(i)] for i in ids).decode("utf-8", "replace")

    def _merge(self, ids, pair):
        out, i = [], 0
        while i < len(ids):
            if i + 1 < len(ids) and (ids[i], ids[i + 1]) == pair:
                out.append(self.merges[pair])
                i += 2
            else:
                out.append(ids[i])
                i += 1
        return out


def train_val_split(ids, fraction=0.9):
    cut = math.ceil(len(ids) * fraction)
    return list(ids[:cut]), list(ids[cut:])


def sliding_windows(ids, block_size):
    windows = np.lib.stride_tricks.sliding_window_view(np.asarray(ids, dtype=np.int32), block_size + 1)
    return windows[:, :-1].copy(), windows[:, 1:].copy()


def get_batch(ids, block_size, batch_size):
    if len(ids) <= block_size:
        raise ValueError(f"{len(ids)} ids have no window of {block_size} and its targets")
    starts = np.random.randint(0, len(ids) - block_size, size=batch_size)  # noqa: NPY002 - as students do
    x = [list(ids[s : s + block_size]) for s in starts]
    y = [list(ids[s + 1 : s + block_size + 1]) for s in starts]
    return {"x": np.array(x), "y": np.array(y)}


def cross_entropy(logits, targets):
    logits = logits - logits.max(axis=-1, keepdims=True)
    log_p = logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))
    return -np.take_along_axis(log_p, targets[..., None], axis=-1).mean()


def perplexity(loss):
    return np.exp(loss)


def bits_per_character(loss):
    return loss / np.log(2)


def cosine_schedule(step, peak, floor, warmup, total):
    if step < warmup:
        return peak * (step + 1) / warmup
    share = min(1.0, (step - warmup) / max(1, total - warmup))
    return floor + (peak - floor) * math.cos(share * math.pi / 2) ** 2


def inverse_sqrt_schedule(step, d_model, warmup):
    step = max(1, step)
    return min(step**-0.5, step * warmup**-1.5) / math.sqrt(d_model)


def exponential_moving_average(values, alpha):
    out = np.empty(len(values))
    out[0] = values[0]
    for i in range(1, len(values)):
        out[i] = out[i - 1] + alpha * (values[i] - out[i - 1])
    return out


def rolling_mean(values, window):
    sums = np.cumsum(np.concatenate([[0.0], values]))
    return (sums[window:] - sums[:-window]) / window


def balance_loss(logits, experts_active):
    p = np.exp(logits - logits.max(-1, keepdims=True))
    p /= p.sum(-1, keepdims=True)
    used = np.zeros_like(p)
    np.put_along_axis(used, np.argpartition(-logits, experts_active - 1, axis=-1)[:, :experts_active], 1, axis=-1)
    return p.shape[-1] * float(used.mean(0) @ p.mean(0)) / experts_active


def attention_entropy(weights):
    return -np.sum(weights * np.log(weights + 1e-12), axis=-1)


def fit_power_law(sizes, losses):
    a = np.vstack([np.log10(sizes), np.ones(len(sizes))]).T
    (slope, intercept), *_ = np.linalg.lstsq(a, np.log10(losses), rcond=None)
    return {"exponent": -slope, "factor": 10**intercept}
