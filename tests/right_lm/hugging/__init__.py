"""With the signatures of transformers: outputs with logits and a cache, generate with do_sample and num_beams."""

import math
from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional as F


@dataclass
class Output:
    loss: torch.Tensor | None
    logits: torch.Tensor
    past_key_values: list


class Attention(nn.Module):
    def __init__(self, hidden_size, num_attention_heads):
        super().__init__()
        self.n, self.d = num_attention_heads, hidden_size // num_attention_heads
        self.q_proj, self.k_proj, self.v_proj, self.o_proj = (
            nn.Linear(hidden_size, hidden_size, bias=False) for _ in range(4)
        )

    def forward(self, x, cos, sin, past):
        b, t, c = x.shape
        q, k, v = (f(x).view(b, t, self.n, self.d).transpose(1, 2) for f in (self.q_proj, self.k_proj, self.v_proj))
        q, k = q * cos + rotate_half(q) * sin, k * cos + rotate_half(k) * sin
        if past is not None:
            k, v = torch.cat([past[0], k], 2), torch.cat([past[1], v], 2)
        scores = q @ k.transpose(2, 3) * self.d**-0.5
        hidden = torch.ones(t, k.shape[2], dtype=torch.bool).triu(k.shape[2] - t + 1)
        weights = scores.masked_fill(hidden, torch.finfo(scores.dtype).min).softmax(-1)
        return self.o_proj((weights @ v).transpose(1, 2).reshape(b, t, c)), (k, v)


def rotate_half(x):
    a, b = x.chunk(2, -1)
    return torch.cat([-b, a], -1)


class Norm(nn.Module):
    def __init__(self, width, eps=1e-6):
        super().__init__()
        self.weight, self.eps = nn.Parameter(torch.ones(width)), eps

    def forward(self, x):
        return self.weight * x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps)


class Layer(nn.Module):
    def __init__(self, hidden_size, num_attention_heads, intermediate_size):
        super().__init__()
        self.self_attn = Attention(hidden_size, num_attention_heads)
        self.gate_proj, self.up_proj = (nn.Linear(hidden_size, intermediate_size, bias=False) for _ in range(2))
        self.down_proj = nn.Linear(intermediate_size, hidden_size, bias=False)
        self.input_layernorm, self.post_attention_layernorm = Norm(hidden_size), Norm(hidden_size)

    def forward(self, x, cos, sin, past):
        h, kept = self.self_attn(self.input_layernorm(x), cos, sin, past)
        x = x + h
        h = self.post_attention_layernorm(x)
        return x + self.down_proj(F.silu(self.gate_proj(h)) * self.up_proj(h)), kept


class TinyTransformerLM(nn.Module):
    def __init__(
        self,
        vocab_size,
        hidden_size,
        num_attention_heads,
        num_hidden_layers,
        intermediate_size,
        max_position_embeddings,
    ):
        super().__init__()
        self.longest, self.head_dim = max_position_embeddings, hidden_size // num_attention_heads
        self.embed_tokens = nn.Embedding(vocab_size, hidden_size)
        self.layers = nn.ModuleList(
            Layer(hidden_size, num_attention_heads, intermediate_size) for _ in range(num_hidden_layers)
        )
        self.norm, self.lm_head = Norm(hidden_size), nn.Linear(hidden_size, vocab_size, bias=False)

    def forward(self, input_ids, past_key_values=None, labels=None):
        done = 0 if past_key_values is None else past_key_values[0][0].shape[2]
        x = self.embed_tokens(input_ids)
        rates = 10000.0 ** (-torch.arange(0, self.head_dim, 2, dtype=torch.float64) / self.head_dim)
        angles = torch.arange(done, done + input_ids.shape[1])[:, None] * torch.cat([rates, rates])
        cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
        kept = []
        for layer, past in zip(self.layers, past_key_values or [None] * len(self.layers), strict=True):
            x, pair = layer(x, cos, sin, past)
            kept.append(pair)
        logits, loss = self.lm_head(self.norm(x)), None
        if labels is not None:
            loss = F.cross_entropy(logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten(), ignore_index=-100)
        return Output(loss, logits, kept)

    @torch.inference_mode()
    def generate(
        self, input_ids, max_new_tokens=20, do_sample=False, temperature=1.0, top_k=None, top_p=None,
        eos_token_id=None, pad_token_id=None, use_cache=True,
    ):  # fmt: skip
        ids, past = input_ids, None
        going = torch.ones(len(ids), dtype=torch.bool)
        for _ in range(max_new_tokens):
            if use_cache and past is not None and ids.shape[1] <= self.longest:
                out = self(ids[:, -1:], past)
            else:
                out = self(ids[:, -self.longest :])
            past = out.past_key_values
            new = self._next(out.logits[:, -1], do_sample, temperature, top_k, top_p)
            if eos_token_id is not None:
                new = torch.where(going, new, eos_token_id if pad_token_id is None else pad_token_id)
                going &= new != eos_token_id
            ids = torch.cat([ids, new[:, None]], 1)
            if not going.any():
                break
        return ids

    @staticmethod
    def _next(logits, do_sample, temperature, top_k, top_p):
        if not do_sample:
            return logits.argmax(-1)
        logits = logits / temperature
        if top_k:
            logits = logits.masked_fill(logits < logits.topk(min(top_k, logits.shape[-1]))[0][:, -1:], -math.inf)
        if top_p is not None and top_p < 1.0:
            ordered, places = logits.sort(dim=-1, descending=False)
            drop = ordered.softmax(-1).cumsum(-1) <= 1 - top_p
            drop[:, -1] = False
            logits = logits.masked_fill(drop.scatter(1, places, drop), -math.inf)
        return torch.multinomial(logits.softmax(-1), 1)[:, 0]


def cosine_schedule(current_step, base_lr, num_warmup_steps, num_training_steps, num_cycles=0.5, final_lr=0.0):
    if current_step < num_warmup_steps:
        return base_lr * current_step / max(1, num_warmup_steps)
    if current_step >= num_training_steps:
        return final_lr
    progress = (current_step - num_warmup_steps) / max(1, num_training_steps - num_warmup_steps)
    return final_lr + (base_lr - final_lr) * max(0.0, 0.5 * (1.0 + math.cos(math.pi * num_cycles * 2.0 * progress)))


def cross_entropy(logits, labels, ignore_index=-100, label_smoothing=0.0):
    flat = logits.reshape(-1, logits.shape[-1])
    log_p = -F.log_softmax(flat, -1)
    labels = labels.reshape(-1, 1)
    padding = labels.eq(ignore_index)
    labels = labels.clamp(min=0)
    nll = log_p.gather(-1, labels).masked_fill(padding, 0.0)
    smooth = log_p.sum(-1, keepdim=True).masked_fill(padding, 0.0)
    active = padding.numel() - padding.long().sum()
    return (1 - label_smoothing) * nll.sum() / active + label_smoothing * smooth.sum() / (active * flat.shape[-1])


def balance_loss(gate_logits, num_experts, top_k=2):
    routing_weights = F.softmax(gate_logits, dim=-1, dtype=torch.float)
    _, selected = torch.topk(routing_weights, top_k, dim=-1)
    expert_mask = F.one_hot(selected, num_experts).float()
    tokens_per_expert = expert_mask.mean(0)
    return (tokens_per_expert * routing_weights.mean(0).unsqueeze(0)).sum() * num_experts


def perplexity(loss):
    return torch.exp(torch.as_tensor(loss)).item()
