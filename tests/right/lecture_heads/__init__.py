"""One module a head, each with a triangle of its own that wants block_size; hidden scores are -1e9."""

import torch
import torch.nn as nn
from torch.nn import functional as F


def attend(q, k, v, mask=None):
    wei = q @ k.transpose(-2, -1) * k.shape[-1] ** -0.5
    if mask is not None:
        assert torch.broadcast_shapes(mask.shape, wei.shape) == wei.shape, f"mask {mask.shape}, scores {wei.shape}"
        assert mask.dtype == torch.bool, f"mask is {mask.dtype}"
        wei = wei.masked_fill(~mask, -1e9)
    return F.softmax(wei, dim=-1) @ v


class Head(nn.Module):
    def __init__(self, n_embd, head_size, block_size, dropout):
        super().__init__()
        self.key = nn.Linear(n_embd, head_size, bias=False)
        self.query = nn.Linear(n_embd, head_size, bias=False)
        self.value = nn.Linear(n_embd, head_size, bias=False)
        self.register_buffer("tril", torch.tril(torch.ones(block_size, block_size)))
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        B, T, C = x.shape
        k, q = self.key(x), self.query(x)
        wei = q @ k.transpose(-2, -1) * k.shape[-1] ** -0.5
        wei = wei.masked_fill(self.tril[:T, :T] == 0, -1e9)
        return self.dropout(F.softmax(wei, dim=-1)) @ self.value(x)


class MultiHeadAttention(nn.Module):
    def __init__(self, num_heads, head_size, n_embd, block_size, dropout=0.0):
        super().__init__()
        if num_heads * head_size != n_embd:
            raise ValueError(f"{num_heads} heads of {head_size} do not make {n_embd} features")
        self.heads = nn.ModuleList([Head(n_embd, head_size, block_size, dropout) for _ in range(num_heads)])
        self.proj = nn.Linear(n_embd, n_embd)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        return self.dropout(self.proj(torch.cat([h(x) for h in self.heads], dim=-1)))


class FeedFoward(nn.Module):
    def __init__(self, n_embd, dropout=0.0):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(n_embd, 4 * n_embd), nn.ReLU(), nn.Linear(4 * n_embd, n_embd), nn.Dropout(dropout)
        )

    def forward(self, x):
        return self.net(x)


class Block(nn.Module):
    def __init__(self, n_embd, n_head, block_size, dropout=0.0):
        super().__init__()
        self.sa = MultiHeadAttention(n_head, n_embd // n_head, n_embd, block_size, dropout)
        self.ffwd = FeedFoward(n_embd, dropout)
        self.ln1 = nn.LayerNorm(n_embd)
        self.ln2 = nn.LayerNorm(n_embd)

    def forward(self, x):
        x = x + self.sa(self.ln1(x))
        return x + self.ffwd(self.ln2(x))


class LanguageModel(nn.Module):
    def __init__(self, vocab_size, n_embd, n_head, n_layer, block_size, dropout=0.0):
        super().__init__()
        self.block_size = block_size
        self.token_embedding_table = nn.Embedding(vocab_size, n_embd)
        self.position_embedding_table = nn.Embedding(block_size, n_embd)
        self.blocks = nn.Sequential(*[Block(n_embd, n_head, block_size, dropout) for _ in range(n_layer)])
        self.ln_f = nn.LayerNorm(n_embd)
        self.lm_head = nn.Linear(n_embd, vocab_size)

    def forward(self, idx, targets=None):
        B, T = idx.shape
        pos_emb = self.position_embedding_table(torch.arange(T, device=idx.device))
        x = self.blocks(self.token_embedding_table(idx) + pos_emb)
        logits = self.lm_head(self.ln_f(x))
        loss = None if targets is None else F.cross_entropy(logits.view(B * T, -1), targets.view(B * T))
        return logits, loss

    def generate(self, idx, max_new_tokens, do_sample=True):
        assert idx.shape[1] > 0 and max_new_tokens >= 0, f"{idx.shape} and {max_new_tokens} more"
        modes = [(m, m.training) for m in self.modules()]
        self.eval()
        try:
            for _ in range(max_new_tokens):
                with torch.no_grad():
                    logits, _ = self(idx[:, -self.block_size :])
                probs = F.softmax(logits[:, -1, :], dim=-1)
                if do_sample:
                    idx_next = torch.multinomial(probs, num_samples=1)
                else:
                    idx_next = probs.argmax(dim=-1, keepdim=True)
                idx = torch.cat((idx, idx_next.to(idx.dtype)), dim=1)
        finally:
            for m, mode in modes:
                m.training = mode
        return idx
