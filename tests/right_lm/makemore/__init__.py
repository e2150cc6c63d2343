"""As in makemore: words around a dot, id 0 the end and -1 the padding, a block of cumulative means of attention."""

import math
import random

import torch
from torch import nn
from torch.nn import functional as F


class CharTokenizer:
    def __init__(self, words):
        chars = sorted(set("".join(words)) - {"."})
        self.stoi = {s: i + 1 for i, s in enumerate(chars)}
        self.stoi["."] = 0
        self.itos = {i: s for s, i in self.stoi.items()}

    @property
    def vocab_size(self):
        return len(self.itos)

    def encode(self, word):
        return [self.stoi[ch] for ch in word]

    def decode(self, ix):
        return "".join(self.itos[int(i)] for i in ix)


def train_val_split(words, split=0.9):
    n1 = int(split * len(words))
    return words[:n1], words[n1:]


def sliding_windows(ids, block_size):
    X, Y = [], []
    for start in range(len(ids) - block_size):
        X.append([int(i) for i in ids[start : start + block_size]])
        Y.append([int(i) for i in ids[start + 1 : start + block_size + 1]])
    return torch.tensor(X), torch.tensor(Y)


def get_batch(ids, batch_size, block_size):
    X, Y = sliding_windows(ids, block_size)
    ix = torch.tensor(random.choices(range(len(X)), k=batch_size))
    return X[ix], Y[ix]


def cross_entropy(logits, targets, ignore_index=-1):
    return F.cross_entropy(logits.view(-1, logits.shape[-1]), targets.view(-1), ignore_index=ignore_index)


class Attention(nn.Module):
    def __init__(self, n_embd, n_head):
        super().__init__()
        self.query, self.key, self.value, self.proj = (nn.Linear(n_embd, n_embd) for _ in range(4))
        self.n_head = n_head

    def forward(self, x):
        B, T, C = x.shape
        q, k, v = (f(x).view(B, T, self.n_head, -1) for f in (self.query, self.key, self.value))
        att = torch.einsum("bthd,bshd->bhts", q, k) / math.sqrt(q.shape[-1])
        att = att + torch.triu(torch.full((T, T), float("-inf"), dtype=x.dtype), diagonal=1)
        return self.proj(torch.einsum("bhts,bshd->bthd", att.softmax(-1), v).reshape(B, T, C))


class TinyTransformerLM(nn.Module):
    def __init__(self, vocab_size, n_embd, n_head, n_layer, d_ff, block_size):
        super().__init__()
        self.block_size = block_size
        self.wte = nn.Embedding(vocab_size, n_embd)
        self.wpe = nn.Embedding(block_size, n_embd)
        self.attn = nn.ModuleList(Attention(n_embd, n_head) for _ in range(n_layer))
        self.mlp = nn.ModuleList(
            nn.Sequential(nn.Linear(n_embd, d_ff), nn.ReLU(), nn.Linear(d_ff, n_embd)) for _ in range(n_layer)
        )
        self.ln1 = nn.ModuleList(nn.LayerNorm(n_embd) for _ in range(n_layer))
        self.ln2 = nn.ModuleList(nn.LayerNorm(n_embd) for _ in range(n_layer))
        self.ln_f, self.lm_head = nn.LayerNorm(n_embd), nn.Linear(n_embd, vocab_size, bias=False)

    def forward(self, idx):
        x = self.wte(idx) + self.wpe.weight[: idx.shape[1]]
        for ln1, attn, ln2, mlp in zip(self.ln1, self.attn, self.ln2, self.mlp, strict=True):
            x = x + attn(ln1(x))
            x = x + mlp(ln2(x))
        return self.lm_head(self.ln_f(x))


@torch.no_grad()
def generate(model, idx, max_new_tokens, temperature=1.0, do_sample=False, top_k=None):
    for _ in range(max_new_tokens):
        logits = model(idx[:, -model.block_size :])[:, -1, :] / temperature
        if top_k is not None:
            v, _ = torch.topk(logits, min(top_k, logits.shape[-1]))
            logits = logits.masked_fill(logits < v[:, [-1]], -float("inf"))
        probs = F.softmax(logits, dim=-1)
        idx_next = torch.multinomial(probs, 1) if do_sample else torch.topk(probs, k=1, dim=-1)[1]
        idx = torch.cat((idx, idx_next), dim=1)
    return idx


@torch.inference_mode()
def evaluate(model, batches):
    model.eval()
    losses, counts = [], []
    for X, Y in batches:
        losses.append(F.cross_entropy(model(X).flatten(0, 1), Y.flatten(), ignore_index=-1, reduction="sum"))
        counts.append((Y != -1).sum())
    model.train()
    return (torch.stack(losses).sum() / torch.stack(counts).sum()).item()
