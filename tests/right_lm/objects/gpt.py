from dataclasses import dataclass
import math

import torch
import torch.nn.functional as F
from torch import nn


@dataclass
class Config:
    vocab: int
    width: int
    heads: int
    layers: int
    hidden: int
    context: int
    dropout: float = 0.0


class SelfAttention(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        if cfg.width % cfg.heads != 0:
            raise ValueError("width must be a multiple of heads")
        self.heads = cfg.heads
        self.q = nn.Linear(cfg.width, cfg.width)
        self.k = nn.Linear(cfg.width, cfg.width)
        self.v = nn.Linear(cfg.width, cfg.width)
        self.out = nn.Linear(cfg.width, cfg.width)
        self.rate = cfg.dropout
        self.register_buffer(
            "mask", torch.tril(torch.ones(cfg.context, cfg.context, dtype=torch.bool)), persistent=False
        )

    def forward(self, x):
        B, T, C = x.shape

        def split(y):
            return y.view(B, T, self.heads, C // self.heads).transpose(1, 2)

        q, k, v = split(self.q(x)), split(self.k(x)), split(self.v(x))
        w = (q @ k.transpose(2, 3)) / math.sqrt(q.size(-1))
        w = w.masked_fill(self.mask[:T, :T] == 0, float("-inf"))
        w = F.dropout(F.softmax(w, dim=-1), self.rate, self.training)
        return self.out((w @ v).transpose(1, 2).contiguous().view(B, T, C))


class Layer(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.norm1 = nn.LayerNorm(cfg.width)
        self.attention = SelfAttention(cfg)
        self.norm2 = nn.LayerNorm(cfg.width)
        self.feed_forward = nn.Sequential(
            nn.Linear(cfg.width, cfg.hidden), nn.ReLU(), nn.Linear(cfg.hidden, cfg.width), nn.Dropout(cfg.dropout)
        )

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.feed_forward(self.norm2(x))


class GPT(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.cfg = cfg
        self.tokens = nn.Embedding(cfg.vocab, cfg.width)
        self.positions = nn.Embedding(cfg.context, cfg.width)
        self.drop = nn.Dropout(cfg.dropout)
        self.layers = nn.ModuleList(Layer(cfg) for _ in range(cfg.layers))
        self.norm = nn.LayerNorm(cfg.width)
        self.head = nn.Linear(cfg.width, cfg.vocab, bias=False)
        self.head.weight = self.tokens.weight
        self.apply(self._init)

    def _init(self, m):
        if isinstance(m, (nn.Linear, nn.Embedding)):
            nn.init.normal_(m.weight, std=0.02)
        if isinstance(m, nn.Linear) and m.bias is not None:
            nn.init.zeros_(m.bias)

    def forward(self, ids, targets=None):
        T = ids.size(1)
        if T > self.cfg.context:
            raise ValueError(f"sequence of {T} is longer than the context of {self.cfg.context}")
        x = self.tokens(ids) + self.positions(torch.arange(T, device=ids.device))
        x = self.drop(x)
        for layer in self.layers:
            x = layer(x)
        logits = self.head(self.norm(x))
        if targets is None:
            return logits, None
        return logits, F.cross_entropy(logits.flatten(0, 1), targets.flatten())


class Sampler:
    """Write text with a model, by top-k, nucleus or greedily."""

    def __init__(self, temperature=1.0, top_k=0, top_p=1.0, stop=None):
        self.temperature, self.top_k, self.top_p, self.stop = temperature, top_k, top_p, stop

    def filter(self, logits):
        if self.top_k:
            floor = torch.topk(logits, min(self.top_k, logits.size(-1)))[0][..., -1, None]
            logits = torch.where(logits < floor, -torch.inf, logits)
        if self.top_p < 1.0:
            ranked, order = torch.sort(logits, descending=True)
            total = ranked.softmax(-1).cumsum(-1)
            drop = total > self.top_p
            drop[..., 1:] = drop[..., :-1].clone()
            drop[..., 0] = False
            logits = logits.masked_fill(drop.scatter(-1, order, drop), -torch.inf)
        return logits

    def next(self, logits):
        if self.temperature == 0.0:
            return logits.argmax(-1, keepdim=True)
        probs = self.filter(logits / self.temperature).softmax(-1)
        return torch.multinomial(probs, 1)

    @torch.no_grad()
    def write(self, model, ids, length):
        mode = model.training
        model.eval()
        finished = torch.zeros(ids.size(0), 1, dtype=torch.bool)
        for _ in range(length):
            logits, _ = model(ids[:, -model.cfg.context :])
            new = self.next(logits[:, -1])
            if self.stop is not None:
                new = new.masked_fill(finished, self.stop)
                finished |= new == self.stop
            ids = torch.cat((ids, new), dim=1)
            if finished.all():
                break
        model.train(mode)
        return ids


def write(model, ids, length, temperature=1.0, top_k=None, top_p=None, stop=None):
    return Sampler(temperature, top_k or 0, 1.0 if top_p is None else top_p, stop).write(model, ids, length)


@dataclass
class Hypothesis:
    ids: torch.Tensor
    logp: float
    new: int = 0
    ended: bool = False

    def score(self, penalty):
        return self.logp / max(self.new, 1) ** penalty


class Beams:
    def __init__(self, model, width, penalty=0.0, end=None):
        self.model, self.width, self.penalty, self.end = model, width, penalty, end

    def grow(self, hyp):
        logits, _ = self.model(hyp.ids[None, -self.model.cfg.context :])
        logp = F.log_softmax(logits[0, -1], dim=-1)
        for i in range(logp.size(0)):
            yield Hypothesis(
                torch.cat([hyp.ids, torch.tensor([i])]), hyp.logp + logp[i].item(), hyp.new + 1, i == self.end
            )

    @torch.no_grad()
    def run(self, prompt, steps):
        alive = [Hypothesis(prompt, 0.0)]
        for _ in range(steps):
            pool = []
            for hyp in alive:
                pool.extend([hyp] if hyp.ended else self.grow(hyp))
            pool.sort(key=lambda h: -h.score(self.penalty))
            alive = pool[: self.width]
        return alive


def beams(model, ids, steps, width, penalty=0.0, end=None):
    mode = model.training
    model.eval()
    search = Beams(model, width, penalty, end)
    rows, scores = [], []
    for row in ids:
        hyps = search.run(row, steps)
        length = row.size(0) + steps
        rows.append(torch.stack([F.pad(h.ids, (0, length - h.ids.size(0)), value=end or 0) for h in hyps]))
        scores.append(torch.tensor([h.score(penalty) for h in hyps]))
    model.train(mode)
    return torch.stack(rows), torch.stack(scores)
