"""A config object, masks of 1 and 0, a dataclass back, one table for everything, caches as past_key_values."""

from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional as F


@dataclass
class Config:
    vocab_size: int
    d_model: int = 64
    heads: int = 4
    encoder_layers: int = 2
    decoder_layers: int = 2
    ffn_dim: int = 128
    max_positions: int = 128
    dropout: float = 0.0
    pad_token_id: int = 0


@dataclass
class Seq2SeqOutput:
    logits: torch.Tensor
    encoder_last_hidden_state: torch.Tensor
    past_key_values: tuple | None = None


def expand_mask(mask, dtype):
    """(B, S) of 1 for tokens -> (B, 1, 1, S) to be added."""
    inverted = 1.0 - mask[:, None, None, :].to(dtype)
    return inverted.masked_fill(inverted.bool(), torch.finfo(dtype).min)


def make_causal_mask(length, past, dtype, device):
    full = torch.full((length, length + past), torch.finfo(dtype).min, dtype=dtype, device=device)
    return torch.triu(full, diagonal=past + 1)[None, None]


def shift_tokens_right(labels, decoder_start_token_id):
    shifted = labels.new_zeros(labels.shape)
    shifted[:, 1:] = labels[:, :-1].clone()
    shifted[:, 0] = decoder_start_token_id
    return shifted


class Attention(nn.Module):
    def __init__(self, embed_dim, num_heads, dropout=0.0):
        super().__init__()
        self.num_heads = num_heads
        self.head_dim = embed_dim // num_heads
        self.scaling = self.head_dim**-0.5
        self.dropout = dropout
        self.k_proj = nn.Linear(embed_dim, embed_dim)
        self.v_proj = nn.Linear(embed_dim, embed_dim)
        self.q_proj = nn.Linear(embed_dim, embed_dim)
        self.out_proj = nn.Linear(embed_dim, embed_dim)

    def shape(self, x):
        return x.view(x.shape[0], -1, self.num_heads, self.head_dim).transpose(1, 2)

    def forward(self, hidden_states, key_value_states=None, past_key_value=None, attention_mask=None):
        query = self.shape(self.q_proj(hidden_states) * self.scaling)
        if key_value_states is not None and past_key_value is not None:
            key, value = past_key_value
        elif key_value_states is not None:
            key = self.shape(self.k_proj(key_value_states))
            value = self.shape(self.v_proj(key_value_states))
        else:
            key = self.shape(self.k_proj(hidden_states))
            value = self.shape(self.v_proj(hidden_states))
            if past_key_value is not None:
                key = torch.cat([past_key_value[0], key], dim=2)
                value = torch.cat([past_key_value[1], value], dim=2)
        scores = query @ key.transpose(2, 3)
        if attention_mask is not None:
            scores = scores + attention_mask
        probs = F.dropout(scores.softmax(-1), self.dropout, self.training)
        out = (probs @ value).transpose(1, 2).flatten(2)
        return self.out_proj(out), (key, value)


class EncoderLayer(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.self_attn = Attention(config.d_model, config.heads, config.dropout)
        self.self_attn_layer_norm = nn.LayerNorm(config.d_model)
        self.fc1 = nn.Linear(config.d_model, config.ffn_dim)
        self.fc2 = nn.Linear(config.ffn_dim, config.d_model)
        self.final_layer_norm = nn.LayerNorm(config.d_model)
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, hidden_states, attention_mask=None):
        residual = hidden_states
        hidden_states, _ = self.self_attn(hidden_states, attention_mask=attention_mask)
        hidden_states = self.self_attn_layer_norm(residual + self.dropout(hidden_states))
        residual = hidden_states
        hidden_states = self.fc2(F.gelu(self.fc1(hidden_states)))
        return self.final_layer_norm(residual + self.dropout(hidden_states))


class DecoderLayer(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.self_attn = Attention(config.d_model, config.heads, config.dropout)
        self.self_attn_layer_norm = nn.LayerNorm(config.d_model)
        self.encoder_attn = Attention(config.d_model, config.heads, config.dropout)
        self.encoder_attn_layer_norm = nn.LayerNorm(config.d_model)
        self.fc1 = nn.Linear(config.d_model, config.ffn_dim)
        self.fc2 = nn.Linear(config.ffn_dim, config.d_model)
        self.final_layer_norm = nn.LayerNorm(config.d_model)
        self.dropout = nn.Dropout(config.dropout)

    def forward(
        self,
        hidden_states,
        encoder_hidden_states,
        attention_mask=None,
        encoder_attention_mask=None,
        past_key_value=None,
    ):
        past_self = past_key_value[:2] if past_key_value is not None else None
        residual = hidden_states
        hidden_states, present = self.self_attn(hidden_states, past_key_value=past_self, attention_mask=attention_mask)
        hidden_states = self.self_attn_layer_norm(residual + self.dropout(hidden_states))
        past_cross = past_key_value[2:] if past_key_value is not None else None
        residual = hidden_states
        hidden_states, cross = self.encoder_attn(
            hidden_states,
            key_value_states=encoder_hidden_states,
            past_key_value=past_cross,
            attention_mask=encoder_attention_mask,
        )
        hidden_states = self.encoder_attn_layer_norm(residual + self.dropout(hidden_states))
        residual = hidden_states
        hidden_states = self.fc2(F.gelu(self.fc1(hidden_states)))
        hidden_states = self.final_layer_norm(residual + self.dropout(hidden_states))
        return hidden_states, present + cross


class Model(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config
        self.shared = nn.Embedding(config.vocab_size, config.d_model, padding_idx=config.pad_token_id)
        self.encoder_positions = nn.Embedding(config.max_positions, config.d_model)
        self.decoder_positions = nn.Embedding(config.max_positions, config.d_model)
        self.encoder_layernorm_embedding = nn.LayerNorm(config.d_model)
        self.decoder_layernorm_embedding = nn.LayerNorm(config.d_model)
        self.encoder_layers = nn.ModuleList([EncoderLayer(config) for _ in range(config.encoder_layers)])
        self.decoder_layers = nn.ModuleList([DecoderLayer(config) for _ in range(config.decoder_layers)])
        self.lm_head = nn.Linear(config.d_model, config.vocab_size, bias=False)
        self.apply(self._init_weights)
        self.lm_head.weight = self.shared.weight

    def _init_weights(self, module):
        if isinstance(module, nn.Linear):
            nn.init.normal_(module.weight, std=0.02)
            if module.bias is not None:
                nn.init.zeros_(module.bias)
        elif isinstance(module, nn.Embedding):
            nn.init.normal_(module.weight, std=0.02)
            if module.padding_idx is not None:
                module.weight.data[module.padding_idx].zero_()

    def encode(self, input_ids, attention_mask=None):
        if attention_mask is None:
            attention_mask = (input_ids != self.config.pad_token_id).long()
        x = self.shared(input_ids)
        x = x + self.encoder_positions(torch.arange(input_ids.shape[1], device=input_ids.device))
        x = self.encoder_layernorm_embedding(x)
        mask = expand_mask(attention_mask, x.dtype)
        for layer in self.encoder_layers:
            x = layer(x, mask)
        return x

    def decode(self, decoder_input_ids, encoder_hidden_states, encoder_attention_mask=None, past_key_values=None):
        past = past_key_values[0][0].shape[2] if past_key_values is not None else 0
        length = decoder_input_ids.shape[1]
        x = self.shared(decoder_input_ids)
        x = x + self.decoder_positions(torch.arange(past, past + length, device=x.device))
        x = self.decoder_layernorm_embedding(x)
        causal = make_causal_mask(length, past, x.dtype, x.device)
        cross = expand_mask(encoder_attention_mask, x.dtype) if encoder_attention_mask is not None else None
        presents = []
        for i, layer in enumerate(self.decoder_layers):
            past_layer = past_key_values[i] if past_key_values is not None else None
            x, present = layer(x, encoder_hidden_states, causal, cross, past_layer)
            presents.append(present)
        return self.lm_head(x), tuple(presents)

    def forward(self, input_ids, decoder_input_ids, attention_mask=None):
        if attention_mask is None:
            attention_mask = (input_ids != self.config.pad_token_id).long()
        memory = self.encode(input_ids, attention_mask)
        logits, past = self.decode(decoder_input_ids, memory, attention_mask)
        return Seq2SeqOutput(logits, memory, past)

    @torch.no_grad()
    def generate(
        self, input_ids, max_new_tokens, decoder_start_token_id, eos_token_id=None, attention_mask=None, use_cache=True
    ):
        was = self.training
        self.eval()
        if attention_mask is None:
            attention_mask = (input_ids != self.config.pad_token_id).long()
        memory = self.encode(input_ids, attention_mask)
        ids = input_ids.new_full((input_ids.shape[0], 1), decoder_start_token_id)
        unfinished = ids.new_ones(ids.shape[0])
        past = None
        for _ in range(max_new_tokens):
            step = ids[:, -1:] if use_cache else ids
            logits, present = self.decode(step, memory, attention_mask, past)
            past = present if use_cache else None
            token = logits[:, -1].argmax(-1)
            token = token * unfinished + self.config.pad_token_id * (1 - unfinished)
            ids = torch.cat([ids, token[:, None]], 1)
            if eos_token_id is not None:
                unfinished = unfinished * (token != eos_token_id).long()
                if unfinished.max() == 0:
                    break
        self.train(was)
        return ids[:, 1:]

    @torch.no_grad()
    def beam_search(
        self,
        input_ids,
        max_new_tokens,
        decoder_start_token_id,
        num_beams,
        length_penalty=0.0,
        eos_token_id=None,
        attention_mask=None,
    ):
        if attention_mask is None:
            attention_mask = (input_ids != self.config.pad_token_id).long()
        texts, totals = [], []
        was = self.training
        self.eval()
        memory = self.encode(input_ids, attention_mask)
        for row in range(input_ids.shape[0]):
            ids, scores = self._beams(
                memory[row : row + 1],
                attention_mask[row : row + 1],
                max_new_tokens,
                decoder_start_token_id,
                num_beams,
                length_penalty,
                eos_token_id,
            )
            texts.append(ids)
            totals.append(scores)
        self.train(was)
        longest = max(ids.shape[1] for ids in texts)
        texts = [F.pad(ids, (0, longest - ids.shape[1]), value=self.config.pad_token_id) for ids in texts]
        return torch.stack(texts), torch.stack(totals)

    def _beams(self, memory, mask, steps, start, width, penalty, eos):
        ids = torch.full((1, 1), start, dtype=torch.long)
        scores = torch.zeros(1, dtype=memory.dtype)
        ended = torch.zeros(1, dtype=torch.bool)
        lengths = torch.zeros(1, dtype=torch.long)
        past = None
        vocab = self.config.vocab_size
        for _ in range(steps):
            n = ids.shape[0]
            logits, past = self.decode(ids[:, -1:], memory.expand(n, -1, -1), mask.expand(n, -1), past)
            logp = logits[:, -1].log_softmax(-1)
            still = torch.full_like(logp, float("-inf"))
            still[:, self.config.pad_token_id] = 0.0
            logp = torch.where(ended[:, None], still, logp)
            total = (scores[:, None] + logp).flatten()
            grown = (lengths + (~ended).long())[:, None].expand(n, vocab).flatten()
            ranked = total / grown.to(total.dtype) ** penalty
            keep = min(width, int((total > float("-inf")).sum()))
            best = ranked.topk(keep).indices
            beam, token = best // vocab, best % vocab
            ids = torch.cat([ids[beam], token[:, None]], 1)
            scores, lengths = total[best], grown[best]
            ended = ended[beam]
            if eos is not None:
                ended = ended | (token == eos)
            past = tuple(tuple(t[beam] for t in layer) for layer in past)
            if bool(ended.all()):
                break
        final = scores / lengths.to(scores.dtype) ** penalty
        order = final.argsort(descending=True)
        return ids[order, 1:], final[order]


def collate(features, pad_token_id, decoder_start_token_id, eos_token_id):
    sources = [list(s) + [eos_token_id] for s, _ in features]
    labels = [list(t) + [eos_token_id] for _, t in features]
    src = pad(sources, pad_token_id)
    out = pad(labels, pad_token_id)
    return src, shift_tokens_right(out, decoder_start_token_id), out


def pad(rows, value):
    longest = max(len(r) for r in rows)
    return torch.tensor([r + [value] * (longest - len(r)) for r in rows])
