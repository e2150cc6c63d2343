from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple, Optional

import torch
import torch.nn.functional as F
from torch import nn


@dataclass(frozen=True)
class AttentionConfig:
    dim: int = 64
    heads: int = 4
    dropout: float = 0.0


@dataclass(frozen=True)
class MLPConfig:
    dim: int = 64
    hidden: int = 256
    dropout: float = 0.0


@dataclass(frozen=True)
class ModelConfig:
    vocab: int = 100
    context: int = 128
    depth: int = 2
    attention: AttentionConfig = field(default_factory=AttentionConfig)
    mlp: MLPConfig = field(default_factory=MLPConfig)


class AttentionOutput(NamedTuple):
    hidden: torch.Tensor
    weights: torch.Tensor


@dataclass
class LMOutput:
    loss: Optional[torch.Tensor]
    logits: torch.Tensor
    hidden_states: tuple


class Attention(nn.Module):
    def __init__(self, cfg: AttentionConfig):
        super().__init__()
        if cfg.dim % cfg.heads:
            raise ValueError(f"dim={cfg.dim} must be a multiple of heads={cfg.heads}")
        self.cfg = cfg
        self.wq = nn.Linear(cfg.dim, cfg.dim)
        self.wk = nn.Linear(cfg.dim, cfg.dim)
        self.wv = nn.Linear(cfg.dim, cfg.dim)
        self.wo = nn.Linear(cfg.dim, cfg.dim)

    def forward(self, x):
        b, t, _ = x.shape
        split = lambda y: y.unflatten(-1, (self.cfg.heads, -1)).transpose(1, 2)
        q, k, v = split(self.wq(x)), split(self.wk(x)), split(self.wv(x))
        s = torch.einsum("bhid,bhjd->bhij", q, k) * q.shape[-1] ** -0.5
        i = torch.arange(t, device=x.device)
        s = s.masked_fill(i[None, :] > i[:, None], float("-inf"))
        w = F.dropout(s.softmax(-1), self.cfg.dropout, self.training)
        y = torch.einsum("bhij,bhjd->bihd", w, v).flatten(2)
        return AttentionOutput(self.wo(y), w)


class MLP(nn.Module):
    def __init__(self, cfg: MLPConfig):
        super().__init__()
        self.fc_in = nn.Linear(cfg.dim, cfg.hidden)
        self.fc_out = nn.Linear(cfg.hidden, cfg.dim)
        self.drop = nn.Dropout(cfg.dropout)

    def forward(self, x):
        return self.drop(self.fc_out(F.silu(self.fc_in(x))))


class Layer(nn.Module):
    def __init__(self, cfg: ModelConfig):
        super().__init__()
        self.ln_attn = nn.LayerNorm(cfg.attention.dim)
        self.attn = Attention(cfg.attention)
        self.ln_mlp = nn.LayerNorm(cfg.mlp.dim)
        self.mlp = MLP(cfg.mlp)

    def forward(self, x):
        a = self.attn(self.ln_attn(x))
        x = x + a.hidden
        return x + self.mlp(self.ln_mlp(x)), a.weights


class LanguageModel(nn.Module):
    def __init__(self, cfg: ModelConfig):
        super().__init__()
        self.cfg = cfg
        dim = cfg.attention.dim
        self.tok = nn.Embedding(cfg.vocab, dim)
        self.pos = nn.Embedding(cfg.context, dim)
        self.layers = nn.ModuleList([Layer(cfg) for _ in range(cfg.depth)])
        self.norm = nn.LayerNorm(dim)
        self.lm_head = nn.Linear(dim, cfg.vocab)

    def forward(self, input_ids, labels=None) -> LMOutput:
        t = input_ids.shape[1]
        if t > self.cfg.context:
            raise ValueError(f"{t} tokens do not fit into a context of {self.cfg.context}")
        x = self.tok(input_ids) + self.pos(torch.arange(t, device=input_ids.device))
        states = [x]
        for layer in self.layers:
            x, _ = layer(x)
            states.append(x)
        logits = self.lm_head(self.norm(x))
        loss = None
        if labels is not None:
            loss = F.cross_entropy(logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten())
        return LMOutput(loss, logits, tuple(states))

    @torch.inference_mode()
    def generate(self, input_ids, max_new_tokens, temperature=1.0, top_p=1.0):
        for _ in range(max_new_tokens):
            logits = self(input_ids[:, -self.cfg.context:]).logits[:, -1]
            if temperature == 0:
                nxt = logits.argmax(-1, keepdim=True)
            else:
                probs = (logits / temperature).softmax(-1)
                ps, ix = probs.sort(-1, descending=True)
                keep = ps.cumsum(-1) - ps < top_p
                ps = ps * keep
                nxt = ix.gather(-1, torch.multinomial(ps / ps.sum(-1, keepdim=True), 1))
            input_ids = torch.cat([input_ids, nxt], 1)
        return input_ids
