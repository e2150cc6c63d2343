from dataclasses import dataclass
from typing import Optional, Tuple

import torch
from torch import nn


class Conv1D(nn.Module):
    """A linear layer whose weight is stored transposed, (nx, nf), as in OpenAI's checkpoints."""

    def __init__(self, nf, nx):
        super().__init__()
        self.nf = nf
        self.nx = nx
        self.weight = nn.Parameter(torch.empty(nx, nf))
        self.bias = nn.Parameter(torch.zeros(nf))
        nn.init.normal_(self.weight, std=0.02)

    def forward(self, x):
        size_out = x.size()[:-1] + (self.nf,)
        x = torch.addmm(self.bias, x.reshape(-1, x.size(-1)), self.weight)
        return x.view(size_out)


class GPT2Attention(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.embed_dim = config.n_embd
        self.num_heads = config.n_head
        self.head_dim = self.embed_dim // self.num_heads
        if self.head_dim * self.num_heads != self.embed_dim:
            raise ValueError(f"`embed_dim` must be divisible by num_heads (got {self.embed_dim} and {self.num_heads}).")
        self.c_attn = Conv1D(3 * self.embed_dim, self.embed_dim)
        self.c_proj = Conv1D(self.embed_dim, self.embed_dim)
        self.attn_dropout = nn.Dropout(config.attn_pdrop)
        self.resid_dropout = nn.Dropout(config.resid_pdrop)

    def _split_heads(self, t):
        return t.view(t.size(0), t.size(1), self.num_heads, self.head_dim).permute(0, 2, 1, 3)

    def _merge_heads(self, t):
        t = t.permute(0, 2, 1, 3).contiguous()
        return t.view(t.size(0), t.size(1), self.embed_dim)

    def _attn(self, query, key, value):
        w = torch.matmul(query, key.transpose(-1, -2)) / (value.size(-1) ** 0.5)
        nd, ns = w.size(-2), w.size(-1)
        allowed = torch.ones(nd, ns, dtype=torch.bool, device=w.device).tril(ns - nd)
        w = torch.where(allowed, w, torch.full([], torch.finfo(w.dtype).min, dtype=w.dtype, device=w.device))
        w = nn.functional.softmax(w, dim=-1)
        w = self.attn_dropout(w)
        return torch.matmul(w, value)

    def forward(self, hidden_states, layer_past: Optional[Tuple[torch.Tensor, torch.Tensor]] = None, use_cache=False):
        query, key, value = self.c_attn(hidden_states).split(self.embed_dim, dim=2)
        query, key, value = self._split_heads(query), self._split_heads(key), self._split_heads(value)
        if layer_past is not None:
            key = torch.cat((layer_past[0], key), dim=-2)
            value = torch.cat((layer_past[1], value), dim=-2)
        present = (key, value) if use_cache else None
        out = self._merge_heads(self._attn(query, key, value))
        return self.resid_dropout(self.c_proj(out)), present


class GPT2MLP(nn.Module):
    def __init__(self, intermediate_size, config):
        super().__init__()
        self.c_fc = Conv1D(intermediate_size, config.n_embd)
        self.c_proj = Conv1D(config.n_embd, intermediate_size)
        self.act = nn.GELU(approximate="tanh")
        self.dropout = nn.Dropout(config.resid_pdrop)

    def forward(self, hidden_states):
        return self.dropout(self.c_proj(self.act(self.c_fc(hidden_states))))


class GPT2Block(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.ln_1 = nn.LayerNorm(config.n_embd, eps=config.layer_norm_epsilon)
        self.attn = GPT2Attention(config)
        self.ln_2 = nn.LayerNorm(config.n_embd, eps=config.layer_norm_epsilon)
        self.mlp = GPT2MLP(config.n_inner, config)

    def forward(self, hidden_states, layer_past=None, use_cache=False):
        attn_output, present = self.attn(self.ln_1(hidden_states), layer_past=layer_past, use_cache=use_cache)
        hidden_states = hidden_states + attn_output
        hidden_states = hidden_states + self.mlp(self.ln_2(hidden_states))
        return hidden_states, present


class GPT2Model(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config
        self.wte = nn.Embedding(config.vocab_size, config.n_embd)
        self.wpe = nn.Embedding(config.n_positions, config.n_embd)
        self.drop = nn.Dropout(config.embd_pdrop)
        self.h = nn.ModuleList([GPT2Block(config) for _ in range(config.n_layer)])
        self.ln_f = nn.LayerNorm(config.n_embd, eps=config.layer_norm_epsilon)
        nn.init.normal_(self.wte.weight, std=config.initializer_range)
        nn.init.normal_(self.wpe.weight, std=config.initializer_range)

    def forward(self, input_ids, past_key_values=None, use_cache=False):
        past_length = 0 if past_key_values is None else past_key_values[0][0].size(-2)
        total = past_length + input_ids.size(-1)
        if total > self.config.n_positions:
            raise ValueError(f"{total} positions, the model has {self.config.n_positions}")
        if past_key_values is None:
            past_key_values = [None] * len(self.h)
        position_ids = torch.arange(past_length, total, dtype=torch.long, device=input_ids.device)
        hidden_states = self.drop(self.wte(input_ids) + self.wpe(position_ids))
        presents = []
        for block, layer_past in zip(self.h, past_key_values):
            hidden_states, present = block(hidden_states, layer_past=layer_past, use_cache=use_cache)
            presents.append(present)
        return self.ln_f(hidden_states), (presents if use_cache else None)


@dataclass
class CausalLMOutput:
    logits: torch.Tensor
    loss: Optional[torch.Tensor] = None
    past_key_values: Optional[list] = None


class GPT2LMHeadModel(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.transformer = GPT2Model(config)
        self.lm_head = nn.Linear(config.n_embd, config.vocab_size, bias=False)
        self.lm_head.weight = self.transformer.wte.weight

    def forward(self, input_ids, past_key_values=None, labels=None, use_cache=False):
        hidden_states, presents = self.transformer(input_ids, past_key_values, use_cache)
        lm_logits = self.lm_head(hidden_states)
        loss = None
        if labels is not None:
            shift_logits = lm_logits[..., :-1, :].contiguous()
            shift_labels = labels[..., 1:].contiguous()
            loss = nn.functional.cross_entropy(shift_logits.view(-1, shift_logits.size(-1)), shift_labels.view(-1))
        return CausalLMOutput(logits=lm_logits, loss=loss, past_key_values=presents)
