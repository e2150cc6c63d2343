"""GPT-2 as a large library writes it: Conv1D, past_key_values, an output object, generate with do_sample."""

from dataclasses import dataclass
from typing import Optional, Tuple

import torch
from torch import nn


class GPT2Config:
    def __init__(self, vocab_size=256, n_positions=128, n_embd=64, n_layer=2, n_head=4, n_inner=None, dropout=0.1,
                 layer_norm_epsilon=1e-5, initializer_range=0.02, eos_token_id=None):  # fmt: skip
        self.vocab_size = vocab_size
        self.n_positions = n_positions
        self.n_embd = n_embd
        self.n_layer = n_layer
        self.n_head = n_head
        self.n_inner = n_inner if n_inner is not None else 4 * n_embd
        self.dropout = dropout
        self.layer_norm_epsilon = layer_norm_epsilon
        self.initializer_range = initializer_range
        self.eos_token_id = eos_token_id


@dataclass
class CausalLMOutput:
    loss: Optional[torch.Tensor]
    logits: torch.Tensor
    past_key_values: Optional[Tuple] = None


class Conv1D(nn.Module):
    """A linear map that stores its weight as (in, out)."""

    def __init__(self, nf, nx):
        super().__init__()
        self.nf = nf
        self.weight = nn.Parameter(torch.empty(nx, nf))
        self.bias = nn.Parameter(torch.zeros(nf))
        nn.init.normal_(self.weight, std=0.02)

    def forward(self, x):
        size_out = x.size()[:-1] + (self.nf,)
        return torch.addmm(self.bias, x.reshape(-1, x.size(-1)), self.weight).view(size_out)


class GPT2Attention(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.embed_dim = config.n_embd
        self.num_heads = config.n_head
        self.head_dim = self.embed_dim // self.num_heads
        if self.head_dim * self.num_heads != self.embed_dim:
            raise ValueError(f"embed_dim {self.embed_dim} is no multiple of num_heads {self.num_heads}")
        self.register_buffer(
            "bias",
            torch.tril(torch.ones((config.n_positions, config.n_positions), dtype=torch.bool)).view(
                1, 1, config.n_positions, config.n_positions
            ),
            persistent=False,
        )
        self.c_attn = Conv1D(3 * self.embed_dim, self.embed_dim)
        self.c_proj = Conv1D(self.embed_dim, self.embed_dim)
        self.attn_dropout = nn.Dropout(config.dropout)
        self.resid_dropout = nn.Dropout(config.dropout)

    def _split_heads(self, tensor):
        new_shape = tensor.size()[:-1] + (self.num_heads, self.head_dim)
        return tensor.view(new_shape).permute(0, 2, 1, 3)

    def forward(self, hidden_states, layer_past=None, attention_mask=None, use_cache=False):
        query, key, value = self.c_attn(hidden_states).split(self.embed_dim, dim=2)
        query, key, value = self._split_heads(query), self._split_heads(key), self._split_heads(value)
        if layer_past is not None:
            key = torch.cat((layer_past[0], key), dim=-2)
            value = torch.cat((layer_past[1], value), dim=-2)
        present = (key, value) if use_cache else None
        attn_weights = torch.matmul(query, key.transpose(-1, -2)) / value.size(-1) ** 0.5
        query_length, key_length = query.size(-2), key.size(-2)
        causal = self.bias[:, :, key_length - query_length : key_length, :key_length]
        mask_value = torch.finfo(attn_weights.dtype).min
        attn_weights = attn_weights.masked_fill(~causal, mask_value)
        if attention_mask is not None:
            attn_weights = attn_weights.masked_fill(~attention_mask.bool()[:, None, None, :], mask_value)
        attn_weights = self.attn_dropout(nn.functional.softmax(attn_weights, dim=-1))
        attn_output = torch.matmul(attn_weights, value)
        attn_output = attn_output.permute(0, 2, 1, 3).contiguous().view(hidden_states.size())
        return self.resid_dropout(self.c_proj(attn_output)), present


class GPT2MLP(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.c_fc = Conv1D(config.n_inner, config.n_embd)
        self.c_proj = Conv1D(config.n_embd, config.n_inner)
        self.act = nn.GELU(approximate="tanh")
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, hidden_states):
        return self.dropout(self.c_proj(self.act(self.c_fc(hidden_states))))


class GPT2Block(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.ln_1 = nn.LayerNorm(config.n_embd, eps=config.layer_norm_epsilon)
        self.attn = GPT2Attention(config)
        self.ln_2 = nn.LayerNorm(config.n_embd, eps=config.layer_norm_epsilon)
        self.mlp = GPT2MLP(config)

    def forward(self, hidden_states, layer_past=None, attention_mask=None, use_cache=False):
        attn_output, present = self.attn(self.ln_1(hidden_states), layer_past, attention_mask, use_cache)
        hidden_states = hidden_states + attn_output
        hidden_states = hidden_states + self.mlp(self.ln_2(hidden_states))
        return hidden_states, present


class GPT2LMHeadModel(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config
        self.wte = nn.Embedding(config.vocab_size, config.n_embd)
        self.wpe = nn.Embedding(config.n_positions, config.n_embd)
        self.drop = nn.Dropout(config.dropout)
        self.h = nn.ModuleList([GPT2Block(config) for _ in range(config.n_layer)])
        self.ln_f = nn.LayerNorm(config.n_embd, eps=config.layer_norm_epsilon)
        self.lm_head = nn.Linear(config.n_embd, config.vocab_size, bias=False)
        self.lm_head.weight = self.wte.weight
        nn.init.normal_(self.wte.weight, std=config.initializer_range)
        nn.init.normal_(self.wpe.weight, std=config.initializer_range)

    def forward(self, input_ids, past_key_values=None, attention_mask=None, labels=None, use_cache=False):
        past_length = 0 if past_key_values is None else past_key_values[0][0].size(-2)
        if past_length + input_ids.size(1) > self.config.n_positions:
            raise ValueError("more positions than n_positions")
        position_ids = torch.arange(past_length, past_length + input_ids.size(1), device=input_ids.device)
        hidden_states = self.drop(self.wte(input_ids) + self.wpe(position_ids))
        presents = []
        for i, block in enumerate(self.h):
            layer_past = None if past_key_values is None else past_key_values[i]
            hidden_states, present = block(hidden_states, layer_past, attention_mask, use_cache)
            presents.append(present)
        logits = self.lm_head(self.ln_f(hidden_states))
        loss = None
        if labels is not None:
            shift_logits = logits[..., :-1, :].contiguous()
            shift_labels = labels[..., 1:].contiguous()
            loss = nn.functional.cross_entropy(shift_logits.view(-1, shift_logits.size(-1)), shift_labels.view(-1))
        return CausalLMOutput(loss, logits, tuple(presents) if use_cache else None)

    @torch.no_grad()
    def generate(self, input_ids, max_new_tokens=20, do_sample=False, temperature=1.0, top_k=None, top_p=None,
                 eos_token_id=None, use_cache=True):  # fmt: skip
        was_training = self.training
        self.eval()
        eos_token_id = self.config.eos_token_id if eos_token_id is None else eos_token_id
        unfinished = torch.ones(input_ids.size(0), dtype=torch.bool, device=input_ids.device)
        past = None
        for _ in range(max_new_tokens):
            if use_cache and len(self.h) and input_ids.size(1) <= self.config.n_positions:
                fed = input_ids if past is None else input_ids[:, -1:]
                output = self(fed, past_key_values=past, use_cache=True)
                past = output.past_key_values
            else:
                output = self(input_ids[:, -self.config.n_positions :])
            scores = output.logits[:, -1, :]
            if do_sample:
                scores = process_logits(scores, temperature, top_k, top_p)
                next_tokens = torch.multinomial(nn.functional.softmax(scores, dim=-1), num_samples=1).squeeze(1)
            else:
                next_tokens = scores.argmax(dim=-1)
            if eos_token_id is not None:
                next_tokens = next_tokens.masked_fill(~unfinished, eos_token_id)
                unfinished = unfinished & (next_tokens != eos_token_id)
            input_ids = torch.cat([input_ids, next_tokens[:, None]], dim=-1)
            if not unfinished.any():
                break
        self.train(was_training)
        return input_ids


def process_logits(scores, temperature=1.0, top_k=None, top_p=None):
    """Temperature, then top-k, then top-p among what is left."""
    scores = scores / temperature
    if top_k is not None:
        threshold = torch.topk(scores, min(top_k, scores.size(-1)))[0][..., -1, None]
        scores = scores.masked_fill(scores < threshold, -float("inf"))
    if top_p is not None and top_p < 1.0:
        sorted_logits, sorted_indices = torch.sort(scores, descending=True)
        cumulative = sorted_logits.softmax(dim=-1).cumsum(dim=-1)
        remove = cumulative > top_p
        remove[..., 1:] = remove[..., :-1].clone()  # the token that crosses the threshold stays
        remove[..., 0] = False
        scores = scores.masked_fill(remove.scatter(1, sorted_indices, remove), -float("inf"))
    return scores
