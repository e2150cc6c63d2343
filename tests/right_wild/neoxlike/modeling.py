import dataclasses
import math

import torch
from torch import nn


@dataclasses.dataclass
class NeoConfig:
    vocab_size: int = 256
    hidden_size: int = 64
    num_layers: int = 2
    num_attention_heads: int = 4
    intermediate_size: int = 256
    rotary_pct: float = 0.25
    rotary_emb_base: int = 10000
    max_position_embeddings: int = 128
    layer_norm_eps: float = 1e-5
    use_parallel_residual: bool = True


class RotaryEmbedding(nn.Module):
    def __init__(self, dim, base=10000):
        super().__init__()
        self.dim, self.base = dim, base

    def forward(self, x, seq_len):
        inv_freq = 1.0 / (self.base ** (torch.arange(0, self.dim, 2, device=x.device, dtype=torch.float64) / self.dim))
        freqs = torch.einsum("i,j->ij", torch.arange(seq_len, device=x.device, dtype=torch.float64), inv_freq)
        emb = torch.cat((freqs, freqs), dim=-1)[None, None]
        return emb.cos().to(x.dtype), emb.sin().to(x.dtype)


def rotate_half(x):
    x1, x2 = x.chunk(2, dim=-1)
    return torch.cat((-x2, x1), dim=-1)


class NeoAttention(nn.Module):
    def __init__(self, config):
        super().__init__()
        if config.hidden_size % config.num_attention_heads:
            raise ValueError("hidden_size must be divisible by num_attention_heads")
        self.num_attention_heads = config.num_attention_heads
        self.head_size = config.hidden_size // config.num_attention_heads
        self.rotary_ndims = int(self.head_size * config.rotary_pct) // 2 * 2
        self.rotary_emb = RotaryEmbedding(self.rotary_ndims, config.rotary_emb_base) if self.rotary_ndims else None
        self.query_key_value = nn.Linear(config.hidden_size, 3 * config.hidden_size)
        self.dense = nn.Linear(config.hidden_size, config.hidden_size)

    def forward(self, hidden_states):
        # [batch, seq_len, num_heads * 3 * head_size] --> [batch, num_heads, seq_len, 3 * head_size]
        qkv = self.query_key_value(hidden_states)
        qkv = qkv.view(*qkv.shape[:2], self.num_attention_heads, 3 * self.head_size).transpose(1, 2)
        query, key, value = qkv.chunk(3, dim=-1)
        length = query.shape[2]
        if self.rotary_emb is not None:
            cos, sin = self.rotary_emb(value, length)
            query, key = self._rotate(query, cos, sin), self._rotate(key, cos, sin)
        scores = torch.matmul(query, key.transpose(-1, -2)) / math.sqrt(self.head_size)
        causal = torch.tril(torch.ones(length, length, dtype=torch.bool, device=scores.device))
        scores = torch.where(causal, scores, torch.tensor(float("-inf"), dtype=scores.dtype, device=scores.device))
        out = torch.matmul(torch.softmax(scores, dim=-1), value)
        return self.dense(out.transpose(1, 2).flatten(2))

    def _rotate(self, x, cos, sin):
        turned, kept = x[..., : self.rotary_ndims], x[..., self.rotary_ndims :]
        return torch.cat((turned * cos + rotate_half(turned) * sin, kept), dim=-1)


class NeoMLP(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.dense_h_to_4h = nn.Linear(config.hidden_size, config.intermediate_size)
        self.dense_4h_to_h = nn.Linear(config.intermediate_size, config.hidden_size)
        self.act = nn.GELU()

    def forward(self, hidden_states):
        return self.dense_4h_to_h(self.act(self.dense_h_to_4h(hidden_states)))


class NeoLayer(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.use_parallel_residual = config.use_parallel_residual
        self.input_layernorm = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)
        self.post_attention_layernorm = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)
        self.attention = NeoAttention(config)
        self.mlp = NeoMLP(config)

    def forward(self, x):
        attention = self.attention(self.input_layernorm(x))
        if self.use_parallel_residual:
            # x = x + attn(ln1(x)) + mlp(ln2(x))
            return x + attention + self.mlp(self.post_attention_layernorm(x))
        x = x + attention
        return x + self.mlp(self.post_attention_layernorm(x))


class NeoForCausalLM(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config
        self.embed_in = nn.Embedding(config.vocab_size, config.hidden_size)
        self.layers = nn.ModuleList([NeoLayer(config) for _ in range(config.num_layers)])
        self.final_layer_norm = nn.LayerNorm(config.hidden_size, eps=config.layer_norm_eps)
        self.embed_out = nn.Linear(config.hidden_size, config.vocab_size, bias=False)

    def forward(self, input_ids):
        if input_ids.shape[1] > self.config.max_position_embeddings:
            raise ValueError("input is longer than max_position_embeddings")
        x = self.embed_in(input_ids)
        for layer in self.layers:
            x = layer(x)
        return self.embed_out(self.final_layer_norm(x))

    @torch.no_grad()
    def generate(self, input_ids, max_new_tokens, temperature=1.0, top_p=None):
        for _ in range(max_new_tokens):
            logits = self(input_ids[:, -self.config.max_position_embeddings :])[:, -1, :]
            if temperature == 0:
                next_id = torch.argmax(logits, dim=-1, keepdim=True)
            else:
                probs = torch.softmax(logits / temperature, dim=-1)
                if top_p is not None:
                    values, indices = probs.sort(dim=-1, descending=True)
                    drop = values.cumsum(-1) - values >= top_p
                    drop[..., 0] = False
                    probs = torch.zeros_like(probs).scatter(-1, indices, values.masked_fill(drop, 0.0))
                next_id = torch.multinomial(probs, 1)
            input_ids = torch.cat([input_ids, next_id], dim=-1)
        return input_ids
