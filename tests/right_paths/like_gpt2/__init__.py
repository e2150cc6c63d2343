"""As GPT-2 in transformers: learned positions, a cache of tuples, labels that the model shifts, named results."""

from dataclasses import dataclass
from typing import Any, Optional

import torch
import torch.nn as nn
import torch.nn.functional as F


@dataclass
class Output:
    loss: Optional[torch.Tensor] = None
    logits: Optional[torch.Tensor] = None
    past_key_values: Any = None
    attentions: Any = None


class Attention(nn.Module):
    def __init__(self, n_embd, n_head):
        super().__init__()
        self.n_head = n_head
        self.c_attn = nn.Linear(n_embd, 3 * n_embd)
        self.c_proj = nn.Linear(n_embd, n_embd)

    def forward(self, x, layer_past, bias, output_attentions):
        B, T, C = x.shape
        q, k, v = (t.view(B, T, self.n_head, -1).transpose(1, 2) for t in self.c_attn(x).split(C, dim=2))
        if layer_past is not None:
            k, v = torch.cat([layer_past[0], k], dim=2), torch.cat([layer_past[1], v], dim=2)
        scores = q @ k.transpose(-2, -1) / (q.size(-1) ** 0.5) + bias
        weights = F.softmax(scores, dim=-1)
        y = (weights @ v).transpose(1, 2).reshape(B, T, C)
        return self.c_proj(y), (k, v), weights if output_attentions else None


class Block(nn.Module):
    def __init__(self, n_embd, n_head, n_inner):
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(n_embd), nn.LayerNorm(n_embd)
        self.attn = Attention(n_embd, n_head)
        self.c_fc, self.c_proj = nn.Linear(n_embd, n_inner), nn.Linear(n_inner, n_embd)

    def forward(self, x, past, bias, output_attentions):
        a, present, weights = self.attn(self.ln_1(x), past, bias, output_attentions)
        x = x + a
        return x + self.c_proj(F.gelu(self.c_fc(self.ln_2(x)))), present, weights


class CausalLM(nn.Module):
    def __init__(self, vocab_size, n_embd, n_head, n_layer, n_inner, n_positions):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(vocab_size, n_embd), nn.Embedding(n_positions, n_embd)
        self.h = nn.ModuleList(Block(n_embd, n_head, n_inner) for _ in range(n_layer))
        self.ln_f = nn.LayerNorm(n_embd)
        self.lm_head = nn.Linear(n_embd, vocab_size, bias=False)

    def forward(
        self,
        input_ids,
        past_key_values=None,
        attention_mask=None,
        position_ids=None,
        labels=None,
        use_cache=False,
        output_attentions=False,
    ):
        B, T = input_ids.shape
        past = past_key_values[0][0].size(2) if past_key_values else 0
        if position_ids is None:
            position_ids = torch.arange(past, past + T, device=input_ids.device)[None]
        x = self.wte(input_ids) + self.wpe(position_ids)
        lowest = torch.finfo(x.dtype).min
        bias = torch.zeros(T, past + T, dtype=x.dtype, device=x.device)
        bias = bias.masked_fill(~torch.ones_like(bias, dtype=torch.bool).tril(past), lowest)
        if attention_mask is not None:
            bias = bias.masked_fill((attention_mask == 0)[:, None, None, :], lowest)
        presents, attentions = [], []
        for i, block in enumerate(self.h):
            x, present, weights = block(x, past_key_values[i] if past_key_values else None, bias, output_attentions)
            presents.append(present)
            attentions.append(weights)
        logits = self.lm_head(self.ln_f(x))
        loss = None
        if labels is not None:
            loss = F.cross_entropy(logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten())
        return Output(
            loss, logits, tuple(presents) if use_cache else None, tuple(attentions) if output_attentions else None
        )

    @torch.no_grad()
    def generate(self, input_ids, max_new_tokens, attention_mask=None, do_sample=False, temperature=1.0):
        if attention_mask is not None and (attention_mask[:, -1] == 0).any():
            raise ValueError("pad prompts on the left")
        past, step, position_ids = None, input_ids, None
        for _ in range(max_new_tokens):
            if attention_mask is not None:
                position_ids = (attention_mask.cumsum(-1) - 1).clamp(min=0)[:, -step.size(1) :]
            out = self(step, past, attention_mask, position_ids, use_cache=True)
            scores, past = out.logits[:, -1], out.past_key_values
            if do_sample:
                step = torch.multinomial(F.softmax(scores / temperature, dim=-1), 1)
            else:
                step = scores.argmax(-1, keepdim=True)
            input_ids = torch.cat([input_ids, step], dim=1)
            if attention_mask is not None:
                attention_mask = torch.cat([attention_mask, attention_mask.new_ones(len(step), 1)], dim=1)
        return input_ids
