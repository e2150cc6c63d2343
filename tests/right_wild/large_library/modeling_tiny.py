from dataclasses import dataclass
from typing import List, Optional, Tuple

import torch
import torch.nn.functional as F
from torch import nn

from .configuration_tiny import TinyConfig

ACT2FN = {"silu": F.silu, "gelu": F.gelu, "relu": F.relu}


@dataclass
class BaseModelOutputWithPast:
    last_hidden_state: torch.Tensor = None
    past_key_values: Optional[List[Tuple[torch.Tensor, torch.Tensor]]] = None
    attentions: Optional[Tuple[torch.Tensor, ...]] = None


@dataclass
class CausalLMOutputWithPast:
    loss: Optional[torch.Tensor] = None
    logits: torch.Tensor = None
    past_key_values: Optional[List[Tuple[torch.Tensor, torch.Tensor]]] = None
    attentions: Optional[Tuple[torch.Tensor, ...]] = None


class TinyRMSNorm(nn.Module):
    def __init__(self, hidden_size, eps=1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(hidden_size))
        self.variance_epsilon = eps

    def forward(self, hidden_states):
        variance = hidden_states.pow(2).mean(-1, keepdim=True)
        hidden_states = hidden_states * torch.rsqrt(variance + self.variance_epsilon)
        return self.weight * hidden_states


class TinyRotaryEmbedding(nn.Module):
    def __init__(self, config: TinyConfig):
        super().__init__()
        self.dim = config.hidden_size // config.num_attention_heads
        self.base = config.rope_theta

    @torch.no_grad()
    def forward(self, x, position_ids):
        inv_freq = 1.0 / self.base ** (
            torch.arange(0, self.dim, 2, dtype=torch.float64, device=x.device) / self.dim
        )
        freqs = position_ids[:, :, None].to(torch.float64) * inv_freq
        emb = torch.cat((freqs, freqs), dim=-1)
        return emb.cos().to(x.dtype), emb.sin().to(x.dtype)


def rotate_half(x):
    """Rotates half the hidden dims of the input."""
    x1 = x[..., : x.shape[-1] // 2]
    x2 = x[..., x.shape[-1] // 2 :]
    return torch.cat((-x2, x1), dim=-1)


def apply_rotary_pos_emb(q, k, cos, sin, unsqueeze_dim=1):
    cos = cos.unsqueeze(unsqueeze_dim)
    sin = sin.unsqueeze(unsqueeze_dim)
    q_embed = (q * cos) + (rotate_half(q) * sin)
    k_embed = (k * cos) + (rotate_half(k) * sin)
    return q_embed, k_embed


def repeat_kv(hidden_states, n_rep):
    batch, num_key_value_heads, slen, head_dim = hidden_states.shape
    if n_rep == 1:
        return hidden_states
    hidden_states = hidden_states[:, :, None, :, :].expand(batch, num_key_value_heads, n_rep, slen, head_dim)
    return hidden_states.reshape(batch, num_key_value_heads * n_rep, slen, head_dim)


class TinyAttention(nn.Module):
    def __init__(self, config: TinyConfig, layer_idx: int):
        super().__init__()
        if config.hidden_size % config.num_attention_heads != 0:
            raise ValueError(
                f"hidden_size must be divisible by num_heads (got {config.hidden_size} and {config.num_attention_heads})."
            )
        self.layer_idx = layer_idx
        self.attention_dropout = config.attention_dropout
        self.num_heads = config.num_attention_heads
        self.head_dim = config.hidden_size // self.num_heads
        self.num_key_value_heads = config.num_key_value_heads
        self.num_key_value_groups = self.num_heads // self.num_key_value_heads
        self.scaling = self.head_dim**-0.5
        self.q_proj = nn.Linear(config.hidden_size, self.num_heads * self.head_dim, bias=False)
        self.k_proj = nn.Linear(config.hidden_size, self.num_key_value_heads * self.head_dim, bias=False)
        self.v_proj = nn.Linear(config.hidden_size, self.num_key_value_heads * self.head_dim, bias=False)
        self.o_proj = nn.Linear(self.num_heads * self.head_dim, config.hidden_size, bias=False)

    def forward(
        self,
        hidden_states: torch.Tensor,
        position_embeddings: Tuple[torch.Tensor, torch.Tensor],
        attention_mask: Optional[torch.Tensor] = None,
        past_key_value: Optional[Tuple[torch.Tensor, torch.Tensor]] = None,
    ):
        bsz, q_len, _ = hidden_states.size()
        query_states = self.q_proj(hidden_states).view(bsz, q_len, -1, self.head_dim).transpose(1, 2)
        key_states = self.k_proj(hidden_states).view(bsz, q_len, -1, self.head_dim).transpose(1, 2)
        value_states = self.v_proj(hidden_states).view(bsz, q_len, -1, self.head_dim).transpose(1, 2)

        cos, sin = position_embeddings
        query_states, key_states = apply_rotary_pos_emb(query_states, key_states, cos, sin)

        if past_key_value is not None:
            key_states = torch.cat([past_key_value[0], key_states], dim=2)
            value_states = torch.cat([past_key_value[1], value_states], dim=2)
        present = (key_states, value_states)

        key_states = repeat_kv(key_states, self.num_key_value_groups)
        value_states = repeat_kv(value_states, self.num_key_value_groups)

        attn_weights = torch.matmul(query_states, key_states.transpose(2, 3)) * self.scaling
        if attention_mask is not None:
            attn_weights = attn_weights + attention_mask
        attn_weights = F.softmax(attn_weights, dim=-1)
        attn_probs = F.dropout(attn_weights, p=self.attention_dropout, training=self.training)
        attn_output = torch.matmul(attn_probs, value_states)
        attn_output = attn_output.transpose(1, 2).reshape(bsz, q_len, -1)
        return self.o_proj(attn_output), attn_weights, present


class TinyMLP(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.gate_proj = nn.Linear(config.hidden_size, config.intermediate_size, bias=False)
        self.up_proj = nn.Linear(config.hidden_size, config.intermediate_size, bias=False)
        self.down_proj = nn.Linear(config.intermediate_size, config.hidden_size, bias=False)
        self.act_fn = ACT2FN[config.hidden_act]

    def forward(self, x):
        return self.down_proj(self.act_fn(self.gate_proj(x)) * self.up_proj(x))


class TinyDecoderLayer(nn.Module):
    def __init__(self, config: TinyConfig, layer_idx: int):
        super().__init__()
        self.self_attn = TinyAttention(config, layer_idx)
        self.mlp = TinyMLP(config)
        self.input_layernorm = TinyRMSNorm(config.hidden_size, eps=config.rms_norm_eps)
        self.post_attention_layernorm = TinyRMSNorm(config.hidden_size, eps=config.rms_norm_eps)

    def forward(self, hidden_states, position_embeddings, attention_mask=None, past_key_value=None):
        residual = hidden_states
        hidden_states = self.input_layernorm(hidden_states)
        hidden_states, weights, present = self.self_attn(
            hidden_states, position_embeddings, attention_mask, past_key_value
        )
        hidden_states = residual + hidden_states

        residual = hidden_states
        hidden_states = self.post_attention_layernorm(hidden_states)
        hidden_states = self.mlp(hidden_states)
        hidden_states = residual + hidden_states
        return hidden_states, weights, present


class TinyPreTrainedModel(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config

    def post_init(self):
        self.apply(self._init_weights)

    def _init_weights(self, module):
        std = self.config.initializer_range
        if isinstance(module, (nn.Linear, nn.Embedding)):
            module.weight.data.normal_(mean=0.0, std=std)


class TinyModel(TinyPreTrainedModel):
    def __init__(self, config: TinyConfig):
        super().__init__(config)
        self.embed_tokens = nn.Embedding(config.vocab_size, config.hidden_size)
        self.layers = nn.ModuleList([TinyDecoderLayer(config, i) for i in range(config.num_hidden_layers)])
        self.norm = TinyRMSNorm(config.hidden_size, eps=config.rms_norm_eps)
        self.rotary_emb = TinyRotaryEmbedding(config)
        self.post_init()

    def _update_causal_mask(self, attention_mask, inputs_embeds, past_length):
        bsz, q_len, _ = inputs_embeds.shape
        kv_len = past_length + q_len
        dtype, device = inputs_embeds.dtype, inputs_embeds.device
        rows = torch.arange(past_length, kv_len, device=device)[:, None]
        allowed = (torch.arange(kv_len, device=device)[None, :] <= rows)[None, None]
        if attention_mask is not None:
            allowed = allowed & attention_mask[:, None, None, :].bool()
        mask = torch.zeros(allowed.shape, dtype=dtype, device=device)
        return mask.masked_fill(~allowed, torch.finfo(dtype).min)

    def forward(
        self,
        input_ids: torch.LongTensor,
        attention_mask: Optional[torch.Tensor] = None,
        position_ids: Optional[torch.LongTensor] = None,
        past_key_values: Optional[List[Tuple[torch.Tensor, torch.Tensor]]] = None,
        use_cache: Optional[bool] = None,
        output_attentions: bool = False,
    ):
        use_cache = use_cache if use_cache is not None else self.config.use_cache
        past_length = past_key_values[0][0].shape[2] if past_key_values is not None else 0
        if past_length + input_ids.shape[1] > self.config.max_position_embeddings:
            raise ValueError("sequence is longer than max_position_embeddings")
        hidden_states = self.embed_tokens(input_ids)
        if position_ids is None:
            if attention_mask is not None:
                position_ids = (attention_mask.long().cumsum(-1) - 1).clamp(min=0)[:, past_length:]
            else:
                position_ids = torch.arange(
                    past_length, past_length + input_ids.shape[1], device=input_ids.device
                ).unsqueeze(0)
        causal_mask = self._update_causal_mask(attention_mask, hidden_states, past_length)
        position_embeddings = self.rotary_emb(hidden_states, position_ids)

        presents, attentions = [], []
        for i, layer in enumerate(self.layers):
            past = past_key_values[i] if past_key_values is not None else None
            hidden_states, weights, present = layer(hidden_states, position_embeddings, causal_mask, past)
            presents.append(present)
            attentions.append(weights)
        return BaseModelOutputWithPast(
            last_hidden_state=self.norm(hidden_states),
            past_key_values=presents if use_cache else None,
            attentions=tuple(attentions) if output_attentions else None,
        )


class TinyForCausalLM(TinyPreTrainedModel):
    def __init__(self, config):
        super().__init__(config)
        self.model = TinyModel(config)
        self.lm_head = nn.Linear(config.hidden_size, config.vocab_size, bias=False)
        self.post_init()

    def forward(
        self,
        input_ids: torch.LongTensor,
        attention_mask: Optional[torch.Tensor] = None,
        position_ids: Optional[torch.LongTensor] = None,
        past_key_values: Optional[List[Tuple[torch.Tensor, torch.Tensor]]] = None,
        labels: Optional[torch.LongTensor] = None,
        use_cache: Optional[bool] = None,
        output_attentions: bool = False,
    ) -> CausalLMOutputWithPast:
        outputs = self.model(
            input_ids, attention_mask, position_ids, past_key_values, use_cache, output_attentions
        )
        logits = self.lm_head(outputs.last_hidden_state)
        loss = None
        if labels is not None:
            # Shift so that tokens < n predict n
            shift_logits = logits[..., :-1, :].contiguous()
            shift_labels = labels[..., 1:].contiguous()
            loss = F.cross_entropy(shift_logits.view(-1, shift_logits.size(-1)), shift_labels.view(-1))
        return CausalLMOutputWithPast(loss, logits, outputs.past_key_values, outputs.attentions)

    @torch.no_grad()
    def generate(self, input_ids, max_new_tokens=20, do_sample=False, temperature=1.0, top_k=None, top_p=None, eos_token_id=None):
        past = None
        finished = torch.zeros(input_ids.shape[0], dtype=torch.bool, device=input_ids.device)
        step = input_ids
        for _ in range(max_new_tokens):
            out = self(step, past_key_values=past, use_cache=True)
            past = out.past_key_values
            scores = out.logits[:, -1, :]
            if do_sample:
                scores = scores / temperature
                if top_k is not None:
                    kth = torch.topk(scores, min(top_k, scores.size(-1)))[0][..., -1, None]
                    scores = scores.masked_fill(scores < kth, float("-inf"))
                if top_p is not None and top_p < 1.0:
                    sorted_logits, sorted_indices = torch.sort(scores, descending=True)
                    cumulative = sorted_logits.softmax(dim=-1).cumsum(dim=-1)
                    remove = cumulative > top_p
                    # shift to keep also the first token above the threshold
                    remove[..., 1:] = remove[..., :-1].clone()
                    remove[..., 0] = False
                    scores = scores.masked_fill(remove.scatter(1, sorted_indices, remove), float("-inf"))
                next_tokens = torch.multinomial(F.softmax(scores, dim=-1), num_samples=1)
            else:
                next_tokens = scores.argmax(dim=-1, keepdim=True)
            if eos_token_id is not None:
                next_tokens = next_tokens.masked_fill(finished[:, None], eos_token_id)
                finished = finished | (next_tokens[:, 0] == eos_token_id)
            input_ids = torch.cat([input_ids, next_tokens], dim=-1)
            step = next_tokens
            if finished.all():
                break
        return input_ids
