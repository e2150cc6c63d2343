"""As in minGPT: a Dataset and a Trainer with callbacks, a CfgNode, and thin functions of the contract around them."""

import collections
import math

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset, RandomSampler


class CharDataset(Dataset):
    def __init__(self, ids, block_size):
        self.ids = torch.as_tensor(ids, dtype=torch.long)
        self.block_size = block_size

    def __len__(self):
        return len(self.ids) - self.block_size

    def __getitem__(self, i):
        chunk = self.ids[i : i + self.block_size + 1]
        return chunk[:-1], chunk[1:]


def sliding_windows(ids, block_size):
    dataset = CharDataset(ids, block_size)
    xs, ys = zip(*(dataset[i] for i in range(len(dataset))), strict=True)
    return torch.stack(xs), torch.stack(ys)


def get_batch(ids, batch_size, block_size):
    dataset = CharDataset(ids, block_size)
    loader = DataLoader(dataset, batch_size, sampler=RandomSampler(dataset, replacement=True, num_samples=batch_size))
    return next(iter(loader))


class Trainer:
    def __init__(self, model, optimizer, grad_norm_clip=None):
        self.model, self.optimizer, self.grad_norm_clip = model, optimizer, grad_norm_clip
        self.callbacks = collections.defaultdict(list)
        self.iter_num, self.loss = 0, None

    def run(self, x, y):
        self.model.train()
        self.loss = F.cross_entropy(self.model(x).flatten(0, 1), y.flatten())
        self.model.zero_grad(set_to_none=True)
        self.loss.backward()
        if self.grad_norm_clip is not None:
            torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.grad_norm_clip)
        self.optimizer.step()
        for callback in self.callbacks["on_batch_end"]:
            callback(self)
        self.iter_num += 1
        return self.loss


def train_step(model, optimizer, x, y, grad_norm_clip=None):
    return Trainer(model, optimizer, grad_norm_clip).run(x, y)


class SGDLike(torch.optim.Optimizer):
    """AdamW over groups, in the style of torch.optim, with decoupled decay after the step."""

    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.01):
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            b1, b2 = group["betas"]
            for p in (p for p in group["params"] if p.grad is not None):
                state = self.state[p]
                if not state:
                    state.update(t=0, m=torch.zeros_like(p), v=torch.zeros_like(p))
                state["t"] += 1
                state["m"].mul_(b1).add_(p.grad, alpha=1 - b1)
                state["v"].mul_(b2).addcmul_(p.grad, p.grad, value=1 - b2)
                rate = group["lr"] * math.sqrt(1 - b2 ** state["t"]) / (1 - b1 ** state["t"])
                eps = group["eps"] * math.sqrt(1 - b2 ** state["t"])
                p.mul_(1 - group["lr"] * group["weight_decay"])
                p.addcdiv_(state["m"], state["v"].sqrt() + eps, value=-rate)


AdamW = SGDLike


def clip_grad_norm(parameters, max_norm):
    grads = [p.grad for p in parameters if p.grad is not None]
    total = torch.sqrt(sum((g.detach() ** 2).sum() for g in grads))
    scale = torch.clamp(max_norm / (total + 1e-6), max=1.0)
    for g in grads:
        g.mul_(scale)
    return total


class Block(nn.Module):
    def __init__(self, n_embd, n_head, d_ff):
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(n_embd), nn.LayerNorm(n_embd)
        self.attn = nn.MultiheadAttention(n_embd, n_head, batch_first=True)
        self.mlp = nn.Sequential(nn.Linear(n_embd, d_ff), nn.GELU(approximate="tanh"), nn.Linear(d_ff, n_embd))

    def forward(self, x):
        hidden = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(1)
        h = self.ln_1(x)
        x = x + self.attn(h, h, h, attn_mask=hidden, need_weights=False)[0]
        return x + self.mlp(self.ln_2(x))


class TinyTransformerLM(nn.Module):
    def __init__(self, vocab_size, n_embd, n_head, n_layer, d_ff, block_size):
        super().__init__()
        self.block_size = block_size
        self.tok_emb = nn.Embedding(vocab_size, n_embd)
        self.pos_emb = nn.Parameter(torch.zeros(1, block_size, n_embd))
        self.blocks = nn.Sequential(*(Block(n_embd, n_head, d_ff) for _ in range(n_layer)))
        self.ln_f, self.head = nn.LayerNorm(n_embd), nn.Linear(n_embd, vocab_size, bias=False)
        self.apply(self._init)

    @staticmethod
    def _init(module):
        if isinstance(module, nn.Linear | nn.Embedding):
            module.weight.data.normal_(mean=0.0, std=0.02)

    def forward(self, idx):
        return self.head(self.ln_f(self.blocks(self.tok_emb(idx) + self.pos_emb[:, : idx.shape[1]])))


def evaluate(model, loader):
    was = model.training
    model.eval()
    with torch.no_grad():
        rows = [F.cross_entropy(model(x).transpose(1, 2), y, reduction="none").flatten() for x, y in loader]
    model.train(was)
    return torch.cat(rows).mean()
