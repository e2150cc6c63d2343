"""GPT-2's published layout: Conv1D kernels (in, out), an output object, do_sample=False for greedy decoding."""

import math
from types import SimpleNamespace
from typing import NamedTuple, Optional

import torch
from torch import Tensor, nn


class Output(NamedTuple):
    loss: Optional[Tensor]
    logits: Tensor
    attentions: tuple


class Conv1D(nn.Module):
    def __init__(self, nf, nx):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(nx, nf) * 0.02)
        self.bias = nn.Parameter(torch.zeros(nf))

    def forward(self, x):
        out = x.size()[:-1] + self.bias.size()
        return torch.addmm(self.bias, x.reshape(-1, x.size(-1)), self.weight).view(out)


def new_gelu(x):
    return 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * torch.pow(x, 3))))


class Attention(nn.Module):
    def __init__(self, config):
        super().__init__()
        if config.n_embd % config.n_head:
            raise ValueError(f"embed_dim {config.n_embd} is not divisible by num_heads {config.n_head}")
        self.num_heads, self.is_causal = config.n_head, config.is_causal
        self.c_attn = Conv1D(3 * config.n_embd, config.n_embd)
        self.c_proj = Conv1D(config.n_embd, config.n_embd)
        self.dropout = nn.Dropout(config.resid_pdrop)

    @staticmethod
    def attend(query, key, value, attention_mask=None):
        w = torch.matmul(query, key.transpose(-1, -2)) / value.new_tensor(key.size(-1)).sqrt()
        lowest = torch.finfo(w.dtype).min
        if attention_mask is not None:
            if attention_mask.dtype == torch.bool:
                w = torch.where(attention_mask.expand_as(w), w, lowest)
            elif attention_mask.is_floating_point():
                w = torch.clamp(w + attention_mask.to(w.dtype).expand_as(w), min=lowest)
            else:
                raise ValueError("attention_mask must be boolean or float")
        w = nn.functional.softmax(w, dim=-1)
        return torch.matmul(w, value), w

    def forward(self, hidden_states):
        shape = (*hidden_states.shape[:-1], self.num_heads, -1)
        q, k, v = (t.view(shape).transpose(1, 2) for t in self.c_attn(hidden_states).chunk(3, dim=-1))
        n = hidden_states.shape[1]
        keep = torch.ones(1, 1, n, n, dtype=torch.bool, device=q.device)
        a, w = self.attend(q, k, v, keep.tril() if self.is_causal else keep)
        return self.dropout(self.c_proj(a.transpose(1, 2).flatten(2))), w


class MLP(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.c_fc, self.c_proj = Conv1D(config.n_inner, config.n_embd), Conv1D(config.n_embd, config.n_inner)
        self.dropout = nn.Dropout(config.resid_pdrop)

    def forward(self, x):
        return self.dropout(self.c_proj(new_gelu(self.c_fc(x))))


class Block(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(config.n_embd), nn.LayerNorm(config.n_embd)
        self.attn, self.mlp = Attention(config), MLP(config)

    def forward(self, x):
        attended, weights = self.attn(self.ln_1(x))
        x = x + attended
        return x + self.mlp(self.ln_2(x)), weights


class Model(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config
        self.wte, self.wpe = (
            nn.Embedding(config.vocab_size, config.n_embd),
            nn.Embedding(config.n_positions, config.n_embd),
        )
        nn.init.normal_(self.wte.weight, std=0.02)
        nn.init.normal_(self.wpe.weight, std=0.01)
        self.h = nn.ModuleList([Block(config) for _ in range(config.n_layer)])
        self.ln_f = nn.LayerNorm(config.n_embd)

    def forward(self, input_ids, attention_mask=None, labels=None):
        if input_ids.size(-1) > self.config.n_positions:
            raise ValueError(f"{input_ids.size(-1)} tokens, {self.config.n_positions} positions")
        position_ids = torch.arange(input_ids.size(-1), device=input_ids.device)[None]
        x, attentions = self.wte(input_ids) + self.wpe(position_ids), ()
        for block in self.h:
            x, weights = block(x)
            attentions += (weights,)
        return Output(None, nn.functional.linear(self.ln_f(x), self.wte.weight), attentions)

    @torch.no_grad()
    def generate(self, input_ids, max_new_tokens=20, do_sample=True, temperature=1.0, top_k=None, top_p=None):
        if max_new_tokens < 0 or input_ids.size(1) == 0 or not temperature > 0:
            raise ValueError("`max_new_tokens` must be >= 0, the prompt non-empty, `temperature` > 0")
        if (top_k is not None and top_k <= 0) or (top_p is not None and not 0 < top_p <= 1):
            raise ValueError("`top_k` must be positive and `top_p` in (0, 1]")
        state = {m: m.training for m in self.modules()}
        self.eval()
        try:
            for _ in range(max_new_tokens):
                scores = self(input_ids[:, -self.config.n_positions :]).logits[:, -1]
                scores = self.warp(scores / temperature, top_k, top_p)
                chosen = torch.multinomial(scores.softmax(-1), 1) if do_sample else scores.argmax(-1)[:, None]
                input_ids = torch.cat([input_ids, chosen.to(input_ids.dtype)], dim=-1)
        finally:
            for m, was in state.items():
                m.training = was
        return input_ids

    @staticmethod
    def warp(scores, top_k, top_p):
        if top_k is not None:
            scores = scores.masked_fill(scores < scores.topk(min(top_k, scores.size(-1)))[0][..., -1:], -torch.inf)
        if top_p is not None and top_p < 1:
            ascending, indices = scores.sort()
            below = ascending.softmax(-1).cumsum(-1) <= 1 - top_p  # what the tail may lose
            below[..., -1:] = False
            scores = scores.masked_fill(below.scatter(1, indices, below), -torch.inf)
        return scores


def config(hidden_size, heads=1, inner=4, layers=1, positions=8, vocab=8, p=0.0, is_causal=True):
    for value in (hidden_size, heads, inner, positions, vocab):
        if value < 1:
            raise ValueError(f"sizes must be positive: {hidden_size=} {heads=} {inner=} {positions=} {vocab=}")
    return SimpleNamespace(
        n_embd=hidden_size, n_head=heads, n_inner=inner, n_layer=layers, n_positions=positions, vocab_size=vocab,
        resid_pdrop=p, is_causal=is_causal,
    )  # fmt: skip
