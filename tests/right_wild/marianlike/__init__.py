"""Marian-like: post-norm, swish, one embedding table for everything, sines and cosines in halves, a bias on the logits."""

import math
from dataclasses import dataclass
from typing import Optional, Tuple

import torch
from torch import nn


@dataclass
class MarianConfig:
    vocab_size: int = 1000
    d_model: int = 128
    encoder_layers: int = 2
    decoder_layers: int = 2
    attention_heads: int = 4
    ffn_dim: int = 256
    max_position_embeddings: int = 128
    dropout: float = 0.1
    scale_embedding: bool = True
    pad_token_id: int = 0
    eos_token_id: int = 1
    decoder_start_token_id: int = 2


@dataclass
class Seq2SeqLMOutput:
    logits: torch.Tensor
    loss: Optional[torch.Tensor] = None
    past_key_values: Optional[list] = None
    encoder_last_hidden_state: Optional[torch.Tensor] = None


class MarianSinusoidalPositionalEmbedding(nn.Module):
    def __init__(self, num_positions, embedding_dim):
        super().__init__()
        half = embedding_dim // 2 + embedding_dim % 2
        position = torch.arange(num_positions, dtype=torch.float64)[:, None]
        angle = position / torch.pow(10000.0, 2 * torch.arange(half, dtype=torch.float64) / embedding_dim)
        self.weight = torch.cat([angle.sin(), angle[:, : embedding_dim // 2].cos()], dim=1)

    def forward(self, x, past_length=0):
        return x + self.weight[past_length : past_length + x.shape[1]].to(x)


class MarianAttention(nn.Module):
    def __init__(self, embed_dim, num_heads, dropout=0.0):
        super().__init__()
        self.num_heads, self.dropout = num_heads, dropout
        self.head_dim = embed_dim // num_heads
        if self.head_dim * num_heads != embed_dim:
            raise ValueError(f"embed_dim must be divisible by num_heads (got {embed_dim} and {num_heads})")
        self.scaling = self.head_dim**-0.5
        self.k_proj = nn.Linear(embed_dim, embed_dim)
        self.v_proj = nn.Linear(embed_dim, embed_dim)
        self.q_proj = nn.Linear(embed_dim, embed_dim)
        self.out_proj = nn.Linear(embed_dim, embed_dim)

    def _shape(self, tensor):
        return tensor.view(tensor.shape[0], -1, self.num_heads, self.head_dim).transpose(1, 2)

    def forward(self, hidden_states, key_value_states=None, attention_mask=None, past_key_value=None):
        """attention_mask is added, (B, 1, T, S). Returns output, and keys and values for the next call."""
        query = self._shape(self.q_proj(hidden_states) * self.scaling)
        if key_value_states is not None and past_key_value is not None:
            key, value = past_key_value  # the memory does not change
        elif key_value_states is not None:
            key, value = self._shape(self.k_proj(key_value_states)), self._shape(self.v_proj(key_value_states))
        else:
            key, value = self._shape(self.k_proj(hidden_states)), self._shape(self.v_proj(hidden_states))
            if past_key_value is not None:
                key = torch.cat([past_key_value[0], key], dim=2)
                value = torch.cat([past_key_value[1], value], dim=2)
        scores = torch.matmul(query, key.transpose(2, 3))
        if attention_mask is not None:
            scores = scores + attention_mask
        probs = nn.functional.softmax(scores, dim=-1)
        probs = nn.functional.dropout(probs, p=self.dropout, training=self.training)
        output = torch.matmul(probs, value).transpose(1, 2).reshape(hidden_states.shape)
        return self.out_proj(output), (key, value)


class MarianEncoderLayer(nn.Module):
    def __init__(self, config: MarianConfig):
        super().__init__()
        self.self_attn = MarianAttention(config.d_model, config.attention_heads, config.dropout)
        self.self_attn_layer_norm = nn.LayerNorm(config.d_model)
        self.fc1 = nn.Linear(config.d_model, config.ffn_dim)
        self.fc2 = nn.Linear(config.ffn_dim, config.d_model)
        self.final_layer_norm = nn.LayerNorm(config.d_model)
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, hidden_states, attention_mask=None):
        attended, _ = self.self_attn(hidden_states, attention_mask=attention_mask)
        hidden_states = self.self_attn_layer_norm(hidden_states + self.dropout(attended))
        widened = self.fc2(nn.functional.silu(self.fc1(hidden_states)))
        return self.final_layer_norm(hidden_states + self.dropout(widened))


class MarianDecoderLayer(nn.Module):
    def __init__(self, config: MarianConfig):
        super().__init__()
        self.self_attn = MarianAttention(config.d_model, config.attention_heads, config.dropout)
        self.self_attn_layer_norm = nn.LayerNorm(config.d_model)
        self.encoder_attn = MarianAttention(config.d_model, config.attention_heads, config.dropout)
        self.encoder_attn_layer_norm = nn.LayerNorm(config.d_model)
        self.fc1 = nn.Linear(config.d_model, config.ffn_dim)
        self.fc2 = nn.Linear(config.ffn_dim, config.d_model)
        self.final_layer_norm = nn.LayerNorm(config.d_model)
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, hidden_states, encoder_hidden_states, attention_mask, encoder_attention_mask, past=None):
        self_past, cross_past = past if past is not None else (None, None)
        attended, self_past = self.self_attn(hidden_states, None, attention_mask, self_past)
        hidden_states = self.self_attn_layer_norm(hidden_states + self.dropout(attended))
        attended, cross_past = self.encoder_attn(
            hidden_states, encoder_hidden_states, encoder_attention_mask, cross_past
        )
        hidden_states = self.encoder_attn_layer_norm(hidden_states + self.dropout(attended))
        widened = self.fc2(nn.functional.silu(self.fc1(hidden_states)))
        hidden_states = self.final_layer_norm(hidden_states + self.dropout(widened))
        return hidden_states, (self_past, cross_past)


def expand_mask(mask, dtype):
    """(B, S), 1 for real tokens -> (B, 1, 1, S) to be added"""
    return torch.zeros(mask.shape, dtype=dtype, device=mask.device).masked_fill(
        mask == 0, torch.finfo(dtype).min
    )[:, None, None, :]


def make_causal_mask(length, past_length, dtype, device):
    allowed = torch.ones(length, past_length + length, dtype=torch.bool, device=device).tril(past_length)
    return torch.zeros(allowed.shape, dtype=dtype, device=device).masked_fill(~allowed, torch.finfo(dtype).min)


class MarianMTModel(nn.Module):
    def __init__(self, config: MarianConfig):
        super().__init__()
        self.config = config
        self.embed_scale = math.sqrt(config.d_model) if config.scale_embedding else 1.0
        self.shared = nn.Embedding(config.vocab_size, config.d_model, padding_idx=config.pad_token_id)
        self.embed_positions = MarianSinusoidalPositionalEmbedding(config.max_position_embeddings, config.d_model)
        self.encoder_layers = nn.ModuleList(MarianEncoderLayer(config) for _ in range(config.encoder_layers))
        self.decoder_layers = nn.ModuleList(MarianDecoderLayer(config) for _ in range(config.decoder_layers))
        self.dropout = nn.Dropout(config.dropout)
        self.final_logits_bias = nn.Parameter(torch.zeros(config.vocab_size))
        nn.init.normal_(self.shared.weight, std=0.02)
        with torch.no_grad():
            self.shared.weight[config.pad_token_id] = 0

    def encode(self, input_ids, attention_mask):
        x = self.dropout(self.embed_positions(self.shared(input_ids) * self.embed_scale))
        mask = expand_mask(attention_mask, x.dtype)
        for layer in self.encoder_layers:
            x = layer(x, mask)
        return x

    def forward(
        self,
        input_ids=None,
        attention_mask=None,
        decoder_input_ids=None,
        labels=None,
        encoder_outputs=None,
        past_key_values: Optional[list] = None,
        use_cache: bool = False,
    ) -> Seq2SeqLMOutput:
        if attention_mask is None:
            attention_mask = (input_ids != self.config.pad_token_id).long()
        if encoder_outputs is None:
            encoder_outputs = self.encode(input_ids, attention_mask)
        if decoder_input_ids is None:
            decoder_input_ids = shift_tokens_right(
                labels, self.config.pad_token_id, self.config.decoder_start_token_id
            )
        past_length = past_key_values[0][0][0].shape[2] if past_key_values else 0
        x = self.shared(decoder_input_ids) * self.embed_scale
        x = self.dropout(self.embed_positions(x, past_length))
        causal = make_causal_mask(decoder_input_ids.shape[1], past_length, x.dtype, x.device)[None, None]
        memory_mask = expand_mask(attention_mask, x.dtype)
        presents = []
        for i, layer in enumerate(self.decoder_layers):
            past: Optional[Tuple] = past_key_values[i] if past_key_values else None
            x, present = layer(x, encoder_outputs, causal, memory_mask, past)
            presents.append(present)
        logits = nn.functional.linear(x, self.shared.weight, self.final_logits_bias)
        loss = None
        if labels is not None:
            loss = nn.functional.cross_entropy(logits.flatten(0, 1), labels.flatten(), ignore_index=-100)
        return Seq2SeqLMOutput(logits, loss, presents if use_cache else None, encoder_outputs)

    @torch.no_grad()
    def generate(self, input_ids, attention_mask=None, max_new_tokens=32):
        """Greedy, with cached keys and values; the start id comes first."""
        mode, cfg = self.training, self.config
        self.eval()
        if attention_mask is None:
            attention_mask = (input_ids != cfg.pad_token_id).long()
        memory = self.encode(input_ids, attention_mask)
        ids = input_ids.new_full((input_ids.shape[0], 1), cfg.decoder_start_token_id)
        unfinished = torch.ones_like(ids[:, 0])
        past, step = None, ids
        for _ in range(max_new_tokens):
            out = self(
                attention_mask=attention_mask,
                decoder_input_ids=step,
                encoder_outputs=memory,
                past_key_values=past,
                use_cache=True,
            )
            past = out.past_key_values
            token = out.logits[:, -1].argmax(-1)
            token = token * unfinished + cfg.pad_token_id * (1 - unfinished)
            step = token[:, None]
            ids = torch.cat([ids, step], dim=-1)
            unfinished = unfinished * (token != cfg.eos_token_id).long()
            if unfinished.max() == 0:
                break
        self.train(mode)
        return ids


def shift_tokens_right(labels, pad_token_id, decoder_start_token_id):
    shifted = labels.new_zeros(labels.shape)
    shifted[:, 1:] = labels[:, :-1].clone()
    shifted[:, 0] = decoder_start_token_id
    return shifted.masked_fill(shifted == -100, pad_token_id)
