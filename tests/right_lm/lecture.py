"""As in a lecture: everything in one file, PyTorch's own loss, clipping and optimizer, windows by torch.stack."""

import math

import torch
from torch import nn
from torch.nn import functional as F


class CharTokenizer:
    def __init__(self, text):
        chars = sorted(set(text))
        self.vocab_size = len(chars)
        self.stoi = {ch: i for i, ch in enumerate(chars)}
        self.itos = dict(enumerate(chars))

    def encode(self, s):
        return torch.tensor([self.stoi[c] for c in s], dtype=torch.long)

    def decode(self, ids):
        return "".join(self.itos[int(i)] for i in ids)


def train_val_split(data, train_ratio=0.9):
    n = round(train_ratio * len(data))
    return data[:n], data[n:]


def get_batch(data, batch_size, block_size):
    ix = torch.randint(len(data) - block_size, (batch_size,))
    x = torch.stack([data[i : i + block_size] for i in ix])
    y = torch.stack([data[i + 1 : i + block_size + 1] for i in ix])
    return x, y


class Head(nn.Module):
    def __init__(self, d_model, num_heads, block_size, dropout):
        super().__init__()
        self.num_heads = num_heads
        self.c_attn = nn.Linear(d_model, 3 * d_model, bias=False)
        self.c_proj = nn.Linear(d_model, d_model, bias=False)
        self.drop = nn.Dropout(dropout)
        self.register_buffer("tril", torch.tril(torch.ones(block_size, block_size)))

    def forward(self, x):
        B, T, C = x.shape
        q, k, v = self.c_attn(x).split(C, dim=2)
        q, k, v = (t.view(B, T, self.num_heads, C // self.num_heads).transpose(1, 2) for t in (q, k, v))
        att = (q @ k.transpose(-2, -1)) / math.sqrt(k.size(-1))
        att = att.masked_fill(self.tril[:T, :T] == 0, float("-inf"))
        att = self.drop(F.softmax(att, dim=-1))
        return self.c_proj((att @ v).transpose(1, 2).contiguous().view(B, T, C))


class Block(nn.Module):
    def __init__(self, d_model, num_heads, d_ff, block_size, dropout):
        super().__init__()
        self.ln1, self.ln2 = nn.LayerNorm(d_model), nn.LayerNorm(d_model)
        self.sa = Head(d_model, num_heads, block_size, dropout)
        self.ff = nn.Sequential(nn.Linear(d_model, d_ff), nn.GELU(), nn.Linear(d_ff, d_model), nn.Dropout(dropout))

    def forward(self, x):
        x = x + self.sa(self.ln1(x))
        return x + self.ff(self.ln2(x))


class TinyTransformerLM(nn.Module):
    def __init__(self, vocab_size, d_model, num_heads, num_layers, d_ff, block_size, dropout=0.0):
        super().__init__()
        self.block_size = block_size
        self.wte = nn.Embedding(vocab_size, d_model)
        self.register_buffer("pe", sinusoids(block_size, d_model))
        self.h = nn.Sequential(*[Block(d_model, num_heads, d_ff, block_size, dropout) for _ in range(num_layers)])
        self.ln_f = nn.LayerNorm(d_model)
        self.lm_head = nn.Linear(d_model, vocab_size)

    def forward(self, idx):
        x = self.wte(idx) + self.pe[: idx.shape[1]].to(self.wte.weight.dtype)
        return self.lm_head(self.ln_f(self.h(x)))

    @torch.no_grad()
    def generate(self, idx, max_new_tokens, temperature=1.0, top_k=None, top_p=None, eos_token_id=None):
        mode = self.training
        self.eval()
        done = torch.zeros(len(idx), dtype=torch.bool)
        for _ in range(max_new_tokens):
            logits = self(idx[:, -self.block_size :])[:, -1, :]
            if temperature == 0:
                nxt = logits.argmax(-1, keepdim=True)
            else:
                logits = logits / temperature
                if top_k is not None:
                    v, _ = torch.topk(logits, min(top_k, logits.size(-1)))
                    logits[logits < v[:, [-1]]] = -float("inf")
                nxt = torch.multinomial(F.softmax(logits, dim=-1), 1)
            if eos_token_id is not None:
                nxt[done] = eos_token_id
                done |= nxt[:, 0] == eos_token_id
            idx = torch.cat((idx, nxt), dim=1)
            if eos_token_id is not None and done.all():
                break
        self.train(mode)
        return idx


def sinusoids(length, d_model):
    position = torch.arange(length, dtype=torch.float64)[:, None]
    rates = torch.exp(torch.arange(0, d_model, 2, dtype=torch.float64) * (-math.log(10000.0) / d_model))
    pe = torch.zeros(length, d_model, dtype=torch.float64)
    pe[:, 0::2] = torch.sin(position * rates)
    pe[:, 1::2] = torch.cos(position * rates[: d_model // 2])
    return pe


def cross_entropy(logits, targets, ignore_index=-100, label_smoothing=0.0):
    return F.cross_entropy(
        logits.reshape(-1, logits.size(-1)),
        targets.reshape(-1),
        ignore_index=ignore_index,
        label_smoothing=label_smoothing,
    )


def perplexity(loss):
    return math.exp(loss)


def bits_per_character(loss, tokens_per_char=1.0):
    return loss * tokens_per_char / math.log(2)


def clip_grad_norm(params, clip):
    return torch.nn.utils.clip_grad_norm_(params, clip)


class AdamW(torch.optim.AdamW):
    pass


def train_step(model, optimizer, xb, yb, grad_clip=None):
    model.train()
    loss = cross_entropy(model(xb), yb)
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    if grad_clip is not None:
        torch.nn.utils.clip_grad_norm_(model.parameters(), grad_clip)
    optimizer.step()
    return loss.item()


def evaluate(model, loader):
    was_training = model.training
    model.eval()
    total, count = 0.0, 0
    with torch.no_grad():
        for xb, yb in loader:
            total += cross_entropy(model(xb), yb).item() * len(yb)  # all rows have block_size targets
            count += len(yb)
    model.train(was_training)
    return total / count


def cosine_schedule(it, learning_rate, min_lr, warmup_iters, lr_decay_iters):
    if it < warmup_iters:
        return learning_rate * (it + 1) / (warmup_iters + 1)
    if it > lr_decay_iters:
        return min_lr
    ratio = (it - warmup_iters) / (lr_decay_iters - warmup_iters)
    return min_lr + 0.5 * (1.0 + math.cos(math.pi * ratio)) * (learning_rate - min_lr)


def save_checkpoint(path, model, optimizer, step):
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "iter_num": step}, path)


def load_checkpoint(path, model, optimizer):
    state = torch.load(path)
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    return state["iter_num"]
