"""Tools around a torch model: AdamW over lists of tensors, a loss from log_softmax, checkpoints as one dictionary."""

import copy
import math
import pickle

import torch
import torch.nn.functional as F
from torch import nn


class Block(nn.Module):
    def __init__(self, d_model, num_heads, d_ff, dropout=0.0):
        super().__init__()
        self.h, self.p = num_heads, dropout
        self.ln_1, self.ln_2 = nn.LayerNorm(d_model), nn.LayerNorm(d_model)
        self.q, self.k, self.v, self.o = (nn.Linear(d_model, d_model, bias=False) for _ in range(4))
        self.fc, self.proj = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)

    def attend(self, x, past):
        q, k, v = (m(x).unflatten(-1, (self.h, -1)).transpose(1, 2) for m in (self.q, self.k, self.v))
        start = 0
        if past is not None:
            if past:
                start = past["k"].size(2)
                k, v = torch.cat([past["k"], k], 2), torch.cat([past["v"], v], 2)
            past["k"], past["v"] = k, v
        t, s = q.size(2), k.size(2)
        visible = torch.ones(t, s, dtype=torch.bool, device=x.device).tril(diagonal=start)
        y = F.scaled_dot_product_attention(q, k, v, visible, dropout_p=self.p if self.training else 0.0)
        return self.o(y.transpose(1, 2).flatten(2))

    def forward(self, x, past=None):
        x = x + F.dropout(self.attend(self.ln_1(x), past), self.p, self.training)
        return x + F.dropout(self.proj(F.gelu(self.fc(self.ln_2(x)))), self.p, self.training)


class TinyTransformerLM(nn.Module):
    def __init__(self, vocab_size, d_model, num_heads, num_layers, d_ff, block_size, dropout=0.0):
        super().__init__()
        self.block_size = block_size
        self.emb = nn.Embedding(vocab_size, d_model)
        nn.init.normal_(self.emb.weight, std=0.02)
        self.register_buffer("waves", waves(block_size, d_model), persistent=False)
        self.blocks = nn.ModuleList([Block(d_model, num_heads, d_ff, dropout) for _ in range(num_layers)])
        self.ln = nn.LayerNorm(d_model)
        self.head = nn.Linear(d_model, vocab_size)

    def forward(self, ids, pasts=None):
        start = pasts[0]["k"].size(2) if pasts and pasts[0] else 0
        if start + ids.size(1) > self.block_size:
            raise ValueError(f"{start + ids.size(1)} positions, block_size {self.block_size}")
        x = self.emb(ids) + self.waves[start : start + ids.size(1)].to(self.emb.weight.dtype)
        for i, block in enumerate(self.blocks):
            x = block(x, None if pasts is None else pasts[i])
        return self.head(self.ln(x))

    @torch.no_grad()
    def generate(self, ids, max_new_tokens, temperature=1.0, top_k=None, top_p=None, eos_id=None, use_cache=False):
        mode = self.training
        self.eval()
        pasts, prompt = None, ids.size(1)
        alive = torch.ones(ids.size(0), 1, dtype=torch.bool, device=ids.device)
        for _ in range(max_new_tokens):
            if use_cache and pasts is not None and pasts[0]["k"].size(2) < self.block_size:
                logits = self(ids[:, -1:], pasts)[:, -1]
            elif use_cache:
                pasts = [{} for _ in self.blocks]
                logits = self(ids[:, -self.block_size :], pasts)[:, -1]
            else:
                logits = self(ids[:, -self.block_size :])[:, -1]
            new = choose(logits, temperature, top_k, top_p)
            if eos_id is not None:
                new = torch.where(alive, new, eos_id)
                alive = alive & (new != eos_id)
            ids = torch.cat([ids, new], 1)
            if not alive.any():
                break
        self.train(mode)
        return ids


def waves(n, d):
    angle = torch.arange(n, dtype=torch.float64)[:, None] / 10000 ** (torch.arange(0, d, 2, dtype=torch.float64) / d)
    return torch.stack([angle.sin(), angle.cos()], 2).reshape(n, -1)[:, :d]


def choose(z, temperature, top_k, top_p):
    if temperature == 0:
        return z.argmax(-1, keepdim=True)
    z = z / temperature
    if top_k is not None:
        z = z.masked_fill(z < z.topk(min(top_k, z.size(-1))).values[:, -1:], -torch.inf)
    if top_p is not None:
        p, order = z.softmax(-1).sort(-1, descending=True)
        z = z.masked_fill((p.cumsum(-1) - p >= top_p).gather(1, order.argsort(1)), -torch.inf)
    return z.softmax(-1).multinomial(1)


@torch.no_grad()
def beam_search(model, ids, max_new_tokens, beam_width, length_penalty=0.0, eos_id=None):
    mode = model.training
    model.eval()
    results = [_search(model, row, max_new_tokens, beam_width, length_penalty, eos_id) for row in ids]
    model.train(mode)
    fill = 0 if eos_id is None else eos_id
    size = ids.size(1) + max_new_tokens
    texts = [[t + [fill] * (size - len(t)) for t, _ in r] for r in results]
    return torch.tensor(texts).to(ids), torch.tensor([[s for _, s in r] for r in results], dtype=torch.float64)


def _search(model, row, n, width, alpha, eos):
    prompt = row.tolist()
    live, done = [(prompt, 0.0)], []
    for step in range(1, n + 1):
        grown = []
        for text, score in live:
            log_p = model(torch.tensor([text[-model.block_size :]]))[0, -1].double().log_softmax(-1)
            grown += [(text + [i], score + lp) for i, lp in enumerate(log_p.tolist())]
        grown.sort(key=lambda h: -h[1])
        live = []
        for text, score in grown:
            if eos is not None and text[-1] == eos:
                done.append((text, score / step**alpha))
            else:
                live.append((text, score))
            if len(live) == width:
                break
    done += [(text, score / n**alpha) for text, score in live] if n else [(prompt, 0.0)]
    done.sort(key=lambda h: -h[1])
    done = done[:width]
    return done + [(prompt + [0] * n, -math.inf)] * (width - len(done))


class CharTokenizer:
    def __init__(self, text):
        self.itos = sorted(set(text))
        self.stoi = {c: i for i, c in enumerate(self.itos)}

    @property
    def vocab_size(self):
        return len(self.itos)

    def encode(self, text):
        return [self.stoi[c] for c in text]

    def decode(self, ids):
        return "".join([self.itos[i] for i in ids])


def train_val_split(ids, fraction=0.9):
    return torch.tensor_split(torch.as_tensor(ids), [int(len(ids) * fraction)])


def get_batch(ids, batch_size, block_size):
    ids = torch.as_tensor(ids)
    at = torch.randint(0, len(ids) - block_size, (batch_size, 1)) + torch.arange(block_size + 1)
    window = ids[at]
    return window[:, :-1].contiguous(), window[:, 1:].contiguous()


def sliding_windows(ids, block_size):
    pairs = [(ids[i : i + block_size], ids[i + 1 : i + 1 + block_size]) for i in range(len(ids) - block_size)]
    x, y = zip(*pairs)
    return torch.stack(x), torch.stack(y)


def cross_entropy(logits, targets, ignore_index=-100, label_smoothing=0.0):
    log_p = logits.log_softmax(-1)
    keep = targets != ignore_index
    own = log_p.gather(-1, targets.clamp(min=0).unsqueeze(-1)).squeeze(-1)
    loss = -(1 - label_smoothing) * own - label_smoothing * log_p.mean(-1)
    return (loss * keep).sum() / keep.sum()


def perplexity(loss):
    return torch.as_tensor(loss).exp()


def bits_per_character(loss, tokens_per_character=1.0):
    return loss / math.log(2.0) * tokens_per_character


def clip_grad_norm(parameters, max_norm):
    grads = [p.grad for p in parameters if p.grad is not None]
    if not grads:
        return torch.tensor(0.0)
    norm = torch.stack([g.pow(2).sum() for g in grads]).sum().sqrt()
    if norm > max_norm:
        for g in grads:
            g.mul_(max_norm / norm)
    return norm


class AdamW:
    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.01):
        self.params = list(params)
        self.lr, self.betas, self.eps, self.weight_decay = lr, betas, eps, weight_decay
        self.m = [torch.zeros_like(p) for p in self.params]
        self.v = [torch.zeros_like(p) for p in self.params]
        self.t = [0] * len(self.params)

    @torch.no_grad()
    def step(self):
        b1, b2 = self.betas
        for i, p in enumerate(self.params):
            if p.grad is None:
                continue
            self.t[i] += 1
            p.mul_(1 - self.lr * self.weight_decay)
            self.m[i].lerp_(p.grad, 1 - b1)
            self.v[i].mul_(b2).addcmul_(p.grad, p.grad, value=1 - b2)
            m_hat = self.m[i] / (1 - b1 ** self.t[i])
            v_hat = self.v[i] / (1 - b2 ** self.t[i])
            p.addcdiv_(m_hat, v_hat.sqrt().add_(self.eps), value=-self.lr)

    def zero_grad(self):
        for p in self.params:
            p.grad = None

    def state_dict(self):
        return {"m": self.m, "v": self.v, "t": self.t, "lr": self.lr}

    def load_state_dict(self, state):
        self.t, self.lr = list(state["t"]), state["lr"]
        for mine, other in ((self.m, state["m"]), (self.v, state["v"])):
            for a, b in zip(mine, other):
                a.copy_(b)


def cosine_schedule(step, peak, floor, warmup, total):
    if step < warmup:
        return peak * step / warmup
    if step >= total:
        return floor
    return floor + (peak - floor) / 2 * (1 + math.cos(math.pi * (step - warmup) / (total - warmup)))


def inverse_sqrt_schedule(step, d_model, warmup):
    step = max(step, 1)
    return d_model**-0.5 * (step**-0.5 if step > warmup else step * warmup**-1.5)


def train_step(model, optimizer, x, y, max_norm=None):
    model.train()
    logits = model(x)
    loss = cross_entropy(logits, y)
    optimizer.zero_grad()
    loss.backward()
    if max_norm is not None:
        clip_grad_norm(model.parameters(), max_norm)
    optimizer.step()
    return float(loss.detach())


def evaluate(model, batches):
    mode = model.training
    model.eval()
    sums, count = 0.0, 0
    try:
        with torch.no_grad():
            for x, y in batches:
                log_p = model(x).log_softmax(-1)
                sums -= float(log_p.gather(-1, y.unsqueeze(-1)).sum())
                count += y.numel()
    finally:
        model.train(mode)
    return sums / count


def save_checkpoint(path, model, optimizer, step):
    with open(path, "wb") as f:
        pickle.dump({"model": copy.deepcopy(model.state_dict()), "optimizer": optimizer.state_dict(), "step": step}, f)


def load_checkpoint(path, model, optimizer):
    with open(path, "rb") as f:
        state = pickle.load(f)
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    return state["step"]


def exponential_moving_average(values, alpha):
    out = list(values[:1])
    for v in values[1:]:
        out.append((1 - alpha) * out[-1] + alpha * v)
    return out


def rolling_mean(values, window):
    return [sum(values[i - window + 1 : i + 1]) / window for i in range(window - 1, len(values))]


def attention_entropy(weights):
    return -torch.xlogy(weights, weights).sum(-1)


def fit_power_law(sizes, losses):
    x, y = (torch.tensor(s, dtype=torch.float64).log() for s in (sizes, losses))
    slope = ((x - x.mean()) * (y - y.mean())).sum() / ((x - x.mean()) ** 2).sum()
    return float(-slope), float((y.mean() - slope * x.mean()).exp())
