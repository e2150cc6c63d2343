import math
from collections import defaultdict

import torch
import torch.nn.functional as F


class CrossEntropy:
    def __init__(self, smoothing=0.0, ignored=-100):
        self.smoothing, self.ignored = smoothing, ignored

    def __call__(self, logits, targets):
        logp = F.log_softmax(logits.reshape(-1, logits.shape[-1]), dim=-1)
        targets = targets.reshape(-1)
        counted = targets != self.ignored
        logp, targets = logp[counted], targets[counted]
        V = logp.shape[-1]
        want = torch.full_like(logp, self.smoothing / V)
        want.scatter_add_(1, targets[:, None], torch.full_like(logp[:, :1], 1 - self.smoothing))
        return -(want * logp).sum() / len(targets)


def loss_of(logits, targets, ignored=-100, smoothing=0.0):
    return CrossEntropy(smoothing, ignored)(logits, targets)


class Adam:
    def __init__(self, params, rate=1e-3, beta1=0.9, beta2=0.999, eps=1e-8, decay=0.01):
        self.params = list(params)
        self.rate, self.beta1, self.beta2, self.eps, self.decay = rate, beta1, beta2, eps, decay
        self.count = 0
        self.first = {}
        self.second = {}

    def zero(self):
        for p in self.params:
            p.grad = None

    def update(self):
        self.count += 1
        for i, p in enumerate(self.params):
            if p.grad is not None:
                self.one(i, p, p.grad.detach())

    def one(self, i, p, g):
        m = self.first.get(i, torch.zeros_like(p.data))
        v = self.second.get(i, torch.zeros_like(p.data))
        m = self.beta1 * m + (1 - self.beta1) * g
        v = self.beta2 * v + (1 - self.beta2) * g * g
        self.first[i], self.second[i] = m, v
        step = self.rate * math.sqrt(1 - self.beta2**self.count) / (1 - self.beta1**self.count)
        eps = self.eps * math.sqrt(1 - self.beta2**self.count)
        p.data -= self.rate * self.decay * p.data
        p.data -= step * m / (v.sqrt() + eps)

    def state(self):
        return dict(count=self.count, first=self.first, second=self.second, rate=self.rate)

    def restore(self, state):
        for key, value in state.items():
            setattr(self, key, value)


class Warmup:
    """The rate over time."""

    def __init__(self, peak, floor, warmup, total):
        self.peak, self.floor, self.warmup, self.total = peak, floor, warmup, total

    def __call__(self, step):
        if step < self.warmup:
            return self.peak * step / self.warmup
        share = min(1.0, (step - self.warmup) / max(1, self.total - self.warmup))
        return self.floor + (self.peak - self.floor) * 0.5 * (1.0 + math.cos(math.pi * share))


def rate_at(step, peak, floor, warmup, total):
    return Warmup(peak, floor, warmup, total)(step)


def noam(step, width, warmup):
    step = max(1, step)
    return 1 / math.sqrt(width) * min(1 / math.sqrt(step), step / warmup**1.5)


class Clip:
    def __init__(self, limit):
        self.limit = limit

    def __call__(self, params):
        grads = [p.grad for p in params if p.grad is not None]
        norm = torch.stack([g.norm() for g in grads]).norm().item()
        if norm > self.limit:
            for g in grads:
                g *= self.limit / norm
        return norm


def clip(params, limit):
    return Clip(limit)(params)


class Trainer:
    def __init__(self, model, optimizer, limit=None):
        self.model, self.optimizer, self.limit = model, optimizer, limit

    def step(self, x, y):
        self.model.train()
        logits, loss = self.model(x, y)
        self.optimizer.zero()
        loss.backward()
        if self.limit is not None:
            Clip(self.limit)(self.model.parameters())
        self.optimizer.update()
        return loss.item()

    def save(self, path, step):
        torch.save([self.model.state_dict(), self.optimizer.state(), step], path)

    def load(self, path):
        weights, state, step = torch.load(path)
        self.model.load_state_dict(weights)
        self.optimizer.restore(state)
        return step


def one_step(model, optimizer, x, y, limit=None):
    return Trainer(model, optimizer, limit).step(x, y)


def save(path, model, optimizer, step):
    Trainer(model, optimizer).save(path, step)


def load(path, model, optimizer):
    return Trainer(model, optimizer).load(path)


class Metrics:
    def __init__(self):
        self.sums = defaultdict(float)

    def add(self, nats, tokens):
        self.sums["nats"] += nats
        self.sums["tokens"] += tokens

    @property
    def loss(self):
        return self.sums["nats"] / self.sums["tokens"]


def validate(model, batches):
    mode = model.training
    model.eval()
    metrics = Metrics()
    with torch.no_grad():
        for x, y in batches:
            _, loss = model(x, y)
            metrics.add(loss.item() * y.numel(), y.numel())
    model.train(mode)
    return metrics.loss


def ppl(loss):
    return math.e**loss


def bpc(loss, tokens_per_character=1.0):
    return loss * tokens_per_character * math.log2(math.e)
