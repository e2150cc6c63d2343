import math
import pickle

import numpy as np
import torch


class CharTokenizer:
    def __init__(self, text):
        self.alphabet = "".join(sorted(set(text)))
        self.vocab_size = len(self.alphabet)

    def encode(self, text):
        return [self.alphabet.index(c) for c in text]

    def decode(self, ids):
        return "".join(self.alphabet[i] for i in ids)


class BPETokenizer:
    """Pairs are counted in arrays: a pair is left * 65536 + right."""

    def __init__(self, text, vocab_size=500, min_frequency=2):
        ids = np.frombuffer(text.encode("utf-8"), dtype=np.uint8).astype(np.int64)
        self.pairs = []
        self.pieces = [bytes((b,)) for b in range(256)]
        while len(self.pieces) < vocab_size and len(ids) > 1:
            codes, counts = np.unique(ids[:-1] * 65536 + ids[1:], return_counts=True)
            best = counts.argmax()
            if counts[best] < min_frequency:
                break
            left, right = divmod(int(codes[best]), 65536)
            ids = self.replace(ids, left, right, len(self.pieces))
            self.pairs.append((left, right))
            self.pieces.append(self.pieces[left] + self.pieces[right])
        self.vocab_size = len(self.pieces)

    @staticmethod
    def replace(ids, left, right, new):
        hit = (ids[:-1] == left) & (ids[1:] == right)
        if left == right:
            for i in np.flatnonzero(hit):
                if i > 0 and hit[i - 1]:
                    hit[i] = False
        at = np.flatnonzero(hit)
        ids = ids.copy()
        ids[at] = new
        return np.delete(ids, at + 1)

    def encode(self, text):
        ids = np.frombuffer(text.encode("utf-8"), dtype=np.uint8).astype(np.int64)
        for n, (left, right) in enumerate(self.pairs):
            ids = self.replace(ids, left, right, 256 + n)
        return ids.tolist()

    def decode(self, ids):
        return b"".join(self.pieces[i] for i in ids).decode("utf-8", "replace")


def train_val_split(ids, fraction=0.9):
    n = int(len(ids) * fraction)
    return ids[:n], ids[n:]


def get_batch(ids, batch_size, block_size):
    high = len(ids) - block_size
    if high < 1:
        raise ValueError("too short")
    start = torch.randint(high, (batch_size, 1)).numpy()
    at = start + np.arange(block_size)
    return ids[at], ids[at + 1]


def sliding_windows(ids, block_size):
    view = np.lib.stride_tricks.sliding_window_view(ids, block_size + 1)
    return view[:, :-1], view[:, 1:]


def log_softmax(z):
    z = z - z.max(axis=-1, keepdims=True)
    return z - np.log(np.exp(z).sum(axis=-1, keepdims=True))


def cross_entropy(logits, targets, ignore_index=-100, label_smoothing=0.0):
    logp = log_softmax(logits.reshape(-1, logits.shape[-1]).astype(np.float64))
    flat = targets.reshape(-1)
    rows = np.flatnonzero(flat != ignore_index)
    hit = -logp[rows, flat[rows]]
    even = -logp[rows].mean(axis=-1)
    return float(((1 - label_smoothing) * hit + label_smoothing * even).mean())


def gradient(logits, targets):
    p = np.exp(log_softmax(logits))
    b, t, _ = p.shape
    p[np.arange(b)[:, None], np.arange(t), targets] -= 1
    return p / (b * t)


def perplexity(loss):
    return float(np.exp(loss))


def bits_per_character(loss, tokens_per_character=1.0):
    return loss / np.log(2.0) * tokens_per_character


def clip_grad_norm(parameters, max_norm):
    grads = [p.grad.numpy() for p in parameters if p.grad is not None]
    norm = math.sqrt(sum(float(np.vdot(g, g)) for g in grads))
    if norm > max_norm:
        for g in grads:
            g *= max_norm / norm
    return norm


class AdamW:
    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.01):
        self.params = list(params)
        self.lr, self.betas, self.eps, self.weight_decay = lr, betas, eps, weight_decay
        self.moments = [(np.zeros(p.shape), np.zeros(p.shape)) for p in self.params]
        self.steps = 0

    def zero_grad(self):
        for p in self.params:
            p.grad = None

    def step(self):
        self.steps += 1
        b1, b2 = self.betas
        for p, (m, v) in zip(self.params, self.moments):
            if p.grad is None:
                continue
            g = p.grad.detach().numpy().astype(np.float64)
            m += (1 - b1) * (g - m)
            v += (1 - b2) * (g * g - v)
            move = (m / (1 - b1**self.steps)) / (np.sqrt(v / (1 - b2**self.steps)) + self.eps)
            w = p.detach().numpy()
            w -= (self.lr * (move + self.weight_decay * w)).astype(w.dtype)


def cosine_schedule(step, peak, floor, warmup, total):
    rise = peak * step / max(warmup, 1)
    at = np.clip((step - warmup) / (total - warmup), 0, 1)
    fall = floor + (peak - floor) * np.cos(at * np.pi / 2) ** 2
    return float(np.where(step < warmup, rise, fall))


def inverse_sqrt_schedule(step, d_model, warmup):
    step = max(step, 1)
    return float(np.minimum(1 / np.sqrt(step), step * warmup**-1.5) / np.sqrt(d_model))


def train_step(model, optimizer, x, y, max_norm=None):
    model.train()
    logits = model(x)
    value = logits.detach().numpy()
    optimizer.zero_grad()
    logits.backward(torch.from_numpy(gradient(value, y.numpy())))
    if max_norm is not None:
        clip_grad_norm(model.parameters(), max_norm)
    optimizer.step()
    return cross_entropy(value, y.numpy())


def evaluate(model, batches):
    was = model.training
    model.eval()
    nats, places = 0.0, 0
    with torch.no_grad():
        for x, y in batches:
            nats += cross_entropy(model(x).numpy(), y.numpy()) * y.numel()
            places += y.numel()
    model.train(was)
    return nats / places


def save_checkpoint(path, model, optimizer, step):
    arrays = {name: value.numpy().copy() for name, value in model.state_dict().items()}
    with open(path, "wb") as file:
        pickle.dump({"step": step, "arrays": arrays, "adam": (optimizer.steps, optimizer.moments)}, file)


def load_checkpoint(path, model, optimizer):
    with open(path, "rb") as file:
        found = pickle.load(file)
    model.load_state_dict({name: torch.from_numpy(value) for name, value in found["arrays"].items()})
    optimizer.steps, optimizer.moments = found["adam"]
    return found["step"]


def exponential_moving_average(values, alpha):
    state = None
    for x in values:
        state = x if state is None else state + alpha * (x - state)
        yield state


def rolling_mean(values, window):
    return np.convolve(values, np.ones(window) / window, mode="valid")


def attention_entropy(weights):
    w = np.asarray(weights)
    return -np.sum(np.where(w > 0, w * np.log(np.where(w > 0, w, 1)), 0), axis=-1)


def fit_power_law(sizes, losses):
    slope, level = np.polyfit(np.log(sizes), np.log(losses), 1)
    return -slope, np.exp(level)
