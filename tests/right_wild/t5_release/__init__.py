import math
from dataclasses import dataclass

import torch
from torch import nn
import torch.nn.functional as F


@dataclass
class T5Config:
    vocab_size: int = 32128
    d_model: int = 512
    d_kv: int = 64
    d_ff: int = 2048
    num_layers: int = 6
    num_heads: int = 8
    relative_attention_num_buckets: int = 32
    relative_attention_max_distance: int = 128
    dropout_rate: float = 0.1
    layer_norm_epsilon: float = 1e-6
    pad_token_id: int = 0
    decoder_start_token_id: int = 0


class T5LayerNorm(nn.Module):
    def __init__(self, hidden_size, eps=1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(hidden_size))
        self.variance_epsilon = eps

    def forward(self, hidden_states):
        variance = hidden_states.pow(2).mean(-1, keepdim=True)
        return self.weight * hidden_states * torch.rsqrt(variance + self.variance_epsilon)


class T5DenseReluDense(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.wi = nn.Linear(config.d_model, config.d_ff, bias=False)
        self.wo = nn.Linear(config.d_ff, config.d_model, bias=False)
        self.dropout = nn.Dropout(config.dropout_rate)

    def forward(self, hidden_states):
        return self.wo(self.dropout(F.relu(self.wi(hidden_states))))


class T5Attention(nn.Module):
    def __init__(self, config, is_decoder=False, has_relative_attention_bias=False):
        super().__init__()
        self.is_decoder = is_decoder
        self.has_relative_attention_bias = has_relative_attention_bias
        self.num_buckets = config.relative_attention_num_buckets
        self.max_distance = config.relative_attention_max_distance
        self.n_heads = config.num_heads
        self.d_kv = config.d_kv
        self.inner_dim = self.n_heads * self.d_kv
        self.q = nn.Linear(config.d_model, self.inner_dim, bias=False)
        self.k = nn.Linear(config.d_model, self.inner_dim, bias=False)
        self.v = nn.Linear(config.d_model, self.inner_dim, bias=False)
        self.o = nn.Linear(self.inner_dim, config.d_model, bias=False)
        self.dropout = config.dropout_rate
        if has_relative_attention_bias:
            self.relative_attention_bias = nn.Embedding(self.num_buckets, self.n_heads)

    @staticmethod
    def _relative_position_bucket(relative_position, bidirectional=True, num_buckets=32, max_distance=128):
        relative_buckets = 0
        if bidirectional:
            num_buckets //= 2
            relative_buckets += (relative_position > 0).to(torch.long) * num_buckets
            relative_position = torch.abs(relative_position)
        else:
            relative_position = -torch.min(relative_position, torch.zeros_like(relative_position))
        max_exact = num_buckets // 2
        is_small = relative_position < max_exact
        if_large = max_exact + (
            torch.log(relative_position.float() / max_exact) / math.log(max_distance / max_exact) * (num_buckets - max_exact)
        ).to(torch.long)
        if_large = torch.min(if_large, torch.full_like(if_large, num_buckets - 1))
        relative_buckets += torch.where(is_small, relative_position, if_large)
        return relative_buckets

    def compute_bias(self, query_length, key_length, device):
        context_position = torch.arange(query_length, device=device)[:, None]
        memory_position = torch.arange(key_length, device=device)[None, :]
        bucket = self._relative_position_bucket(
            memory_position - context_position, bidirectional=not self.is_decoder,
            num_buckets=self.num_buckets, max_distance=self.max_distance)
        return self.relative_attention_bias(bucket).permute(2, 0, 1).unsqueeze(0)

    def forward(self, hidden_states, mask=None, key_value_states=None, position_bias=None):
        B, T, _ = hidden_states.shape
        kv = hidden_states if key_value_states is None else key_value_states
        S = kv.shape[1]

        def shape(states):
            return states.view(B, -1, self.n_heads, self.d_kv).transpose(1, 2)

        q, k, v = shape(self.q(hidden_states)), shape(self.k(kv)), shape(self.v(kv))
        scores = torch.matmul(q, k.transpose(3, 2))
        if position_bias is None:
            if self.has_relative_attention_bias:
                position_bias = self.compute_bias(T, S, scores.device)
            else:
                position_bias = torch.zeros((1, self.n_heads, T, S), device=scores.device, dtype=scores.dtype)
            if mask is not None:
                position_bias = position_bias + mask
        scores = scores + position_bias
        weights = F.dropout(F.softmax(scores.float(), dim=-1).type_as(scores), p=self.dropout, training=self.training)
        out = torch.matmul(weights, v).transpose(1, 2).contiguous().view(B, -1, self.inner_dim)
        return self.o(out), position_bias


class T5Block(nn.Module):
    def __init__(self, config, is_decoder, has_relative_attention_bias=False):
        super().__init__()
        self.is_decoder = is_decoder
        self.self_attention = T5Attention(config, is_decoder, has_relative_attention_bias)
        self.self_attention_norm = T5LayerNorm(config.d_model, config.layer_norm_epsilon)
        if is_decoder:
            self.cross_attention = T5Attention(config, is_decoder)
            self.cross_attention_norm = T5LayerNorm(config.d_model, config.layer_norm_epsilon)
        self.ff = T5DenseReluDense(config)
        self.ff_norm = T5LayerNorm(config.d_model, config.layer_norm_epsilon)
        self.dropout = nn.Dropout(config.dropout_rate)

    def forward(self, x, mask, position_bias=None, memory=None, memory_mask=None, cross_bias=None):
        a, position_bias = self.self_attention(self.self_attention_norm(x), mask=mask, position_bias=position_bias)
        x = x + self.dropout(a)
        if self.is_decoder:
            a, cross_bias = self.cross_attention(
                self.cross_attention_norm(x), mask=memory_mask, key_value_states=memory, position_bias=cross_bias)
            x = x + self.dropout(a)
        x = x + self.dropout(self.ff(self.ff_norm(x)))
        return x, position_bias, cross_bias


class T5Stack(nn.Module):
    def __init__(self, config, embed_tokens, is_decoder):
        super().__init__()
        self.is_decoder = is_decoder
        self.embed_tokens = embed_tokens
        self.block = nn.ModuleList(
            [T5Block(config, is_decoder, has_relative_attention_bias=(i == 0)) for i in range(config.num_layers)])
        self.final_layer_norm = T5LayerNorm(config.d_model, config.layer_norm_epsilon)
        self.dropout = nn.Dropout(config.dropout_rate)

    def forward(self, input_ids, attention_mask=None, memory=None, memory_mask=None):
        x = self.dropout(self.embed_tokens(input_ids))
        B, T = input_ids.shape
        low = torch.finfo(x.dtype).min
        if attention_mask is None:
            attention_mask = torch.ones(B, T, device=x.device, dtype=x.dtype)
        visible = attention_mask[:, None, None, :].bool()
        if self.is_decoder:
            visible = visible & torch.ones(T, T, dtype=torch.bool, device=x.device).tril()
        mask = torch.zeros(visible.shape, dtype=x.dtype, device=x.device).masked_fill(~visible, low)
        if memory is not None and memory_mask is None:
            memory_mask = torch.ones(memory.shape[:2], device=x.device, dtype=x.dtype)
        if memory_mask is not None:
            memory_mask = (1.0 - memory_mask[:, None, None, :].to(x.dtype)) * low
        bias = cross_bias = None
        for layer in self.block:
            x, bias, cross_bias = layer(x, mask, bias, memory, memory_mask, cross_bias)
        return self.dropout(self.final_layer_norm(x))


class T5ForConditionalGeneration(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config
        self.model_dim = config.d_model
        self.shared = nn.Embedding(config.vocab_size, config.d_model)
        self.encoder = T5Stack(config, self.shared, is_decoder=False)
        self.decoder = T5Stack(config, self.shared, is_decoder=True)
        self.lm_head = nn.Linear(config.d_model, config.vocab_size, bias=False)
        self.lm_head.weight = self.shared.weight

    def _shift_right(self, labels):
        shifted = labels.new_zeros(labels.shape)
        shifted[..., 1:] = labels[..., :-1].clone()
        shifted[..., 0] = self.config.decoder_start_token_id
        return shifted.masked_fill_(shifted == -100, self.config.pad_token_id)

    def forward(self, input_ids, attention_mask=None, decoder_input_ids=None, labels=None):
        memory = self.encoder(input_ids, attention_mask)
        if labels is not None and decoder_input_ids is None:
            decoder_input_ids = self._shift_right(labels)
        x = self.decoder(decoder_input_ids, memory=memory, memory_mask=attention_mask)
        x = x * (self.model_dim**-0.5)
        logits = self.lm_head(x)
        if labels is not None:
            return F.cross_entropy(logits.view(-1, logits.size(-1)), labels.view(-1), ignore_index=-100), logits
        return logits
