"""RMSNorm in float32, SwiGLU, rotary positions in halves with a float32 table, grouped key/value heads, no biases."""

import torch
import torch.nn.functional as F
from torch import nn


def repeat_kv(x, n_rep):
    b, heads, t, d = x.shape
    return x[:, :, None].expand(b, heads, n_rep, t, d).reshape(b, heads * n_rep, t, d)


def rotate_half(x):
    x1, x2 = x.chunk(2, dim=-1)
    return torch.cat((-x2, x1), dim=-1)


def eager_attention(query, key, value, attention_mask=None):
    scores = torch.matmul(query, key.transpose(-1, -2)) * key.shape[-1] ** -0.5
    if attention_mask is not None:
        assert attention_mask.is_floating_point(), "attention_mask is added to the scores"
        scores = scores + attention_mask.expand(scores.shape)
    probs = torch.softmax(scores, dim=-1, dtype=torch.float32).to(query.dtype)
    return torch.matmul(probs, value)


class RMSNorm(nn.Module):
    def __init__(self, hidden_size, eps=1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(hidden_size))
        self.variance_epsilon = eps

    def forward(self, hidden_states):
        dtype = hidden_states.dtype
        hidden_states = hidden_states.to(torch.float32)
        variance = hidden_states.pow(2).mean(-1, keepdim=True)
        hidden_states = hidden_states * torch.rsqrt(variance + self.variance_epsilon)
        return self.weight * hidden_states.to(dtype)


class Attention(nn.Module):
    def __init__(self, hidden_size, num_heads, is_causal=True):
        super().__init__()
        if num_heads % 2 or hidden_size % (2 * num_heads):
            raise ValueError(f"hidden_size {hidden_size} and num_heads {num_heads} do not fit")
        self.num_heads, self.num_kv_heads, self.head_dim = num_heads, num_heads // 2, hidden_size // num_heads
        self.is_causal = is_causal
        self.q_proj = nn.Linear(hidden_size, num_heads * self.head_dim, bias=False)
        self.k_proj = nn.Linear(hidden_size, self.num_kv_heads * self.head_dim, bias=False)
        self.v_proj = nn.Linear(hidden_size, self.num_kv_heads * self.head_dim, bias=False)
        self.o_proj = nn.Linear(num_heads * self.head_dim, hidden_size, bias=False)
        inv_freq = 1.0 / (500000.0 ** (torch.arange(0, self.head_dim, 2).float() / self.head_dim))
        self.register_buffer("inv_freq", inv_freq, persistent=False)

    def rope(self, t):
        freqs = torch.outer(torch.arange(t, device=self.inv_freq.device).float(), self.inv_freq.float())
        emb = torch.cat((freqs, freqs), dim=-1)
        return emb.cos(), emb.sin()

    def forward(self, hidden_states):
        b, t, _ = hidden_states.shape
        q = self.q_proj(hidden_states).view(b, t, -1, self.head_dim).transpose(1, 2)
        k = self.k_proj(hidden_states).view(b, t, -1, self.head_dim).transpose(1, 2)
        v = self.v_proj(hidden_states).view(b, t, -1, self.head_dim).transpose(1, 2)
        cos, sin = (table.to(q.dtype) for table in self.rope(t))
        q, k = (x * cos + rotate_half(x) * sin for x in (q, k))
        groups = self.num_heads // self.num_kv_heads
        mask = torch.full((t, t), float("-inf"), device=q.device, dtype=q.dtype).triu(1)
        y = eager_attention(q, repeat_kv(k, groups), repeat_kv(v, groups), mask if self.is_causal else None)
        return self.o_proj(y.transpose(1, 2).reshape(b, t, -1))


class MLP(nn.Module):
    def __init__(self, hidden_size, intermediate_size):
        super().__init__()
        if intermediate_size < 1:
            raise ValueError(f"intermediate_size is {intermediate_size}")
        self.gate_up_proj = nn.Linear(hidden_size, 2 * intermediate_size, bias=False)
        self.down_proj = nn.Linear(intermediate_size, hidden_size, bias=False)

    def forward(self, x):
        gate, up = self.gate_up_proj(x).chunk(2, dim=-1)
        return self.down_proj(F.silu(gate) * up)


class DecoderLayer(nn.Module):
    def __init__(self, hidden_size, num_heads, intermediate_size, is_causal=True):
        super().__init__()
        self.self_attn = Attention(hidden_size, num_heads, is_causal)
        self.mlp = MLP(hidden_size, intermediate_size)
        self.input_layernorm = RMSNorm(hidden_size)
        self.post_attention_layernorm = RMSNorm(hidden_size)

    def forward(self, hidden_states):
        hidden_states = hidden_states + self.self_attn(self.input_layernorm(hidden_states))
        return hidden_states + self.mlp(self.post_attention_layernorm(hidden_states))


class ForCausalLM(nn.Module):
    def __init__(self, vocab_size, hidden_size, num_heads, num_layers, intermediate_size, max_position_embeddings):
        super().__init__()
        self.context = max_position_embeddings
        self.embed_tokens = nn.Embedding(vocab_size, hidden_size)
        self.layers = nn.ModuleList(DecoderLayer(hidden_size, num_heads, intermediate_size) for _ in range(num_layers))
        self.norm = RMSNorm(hidden_size)
        self.lm_head = nn.Linear(hidden_size, vocab_size, bias=False)

    def forward(self, input_ids):
        if input_ids.shape[1] > self.context:
            raise ValueError(f"{input_ids.shape[1]} ids, max_position_embeddings {self.context}")
        hidden_states = self.embed_tokens(input_ids)
        for layer in self.layers:
            hidden_states = layer(hidden_states)
        return {"logits": self.lm_head(self.norm(hidden_states))}

    @torch.inference_mode()
    def generate(self, prompt, max_gen_len, temperature=0.6, top_p=0.9):
        if max_gen_len < 0 or prompt.shape[1] == 0 or not temperature >= 0 or not 0 < top_p <= 1:
            raise ValueError(f"{max_gen_len=} {temperature=} {top_p=}, prompt {tuple(prompt.shape)}")
        tokens = prompt
        for _ in range(max_gen_len):
            logits = self(tokens[:, -self.context :])["logits"][:, -1]
            if temperature > 0:
                probs = torch.softmax(logits / temperature, dim=-1)
                probs_sort, probs_idx = torch.sort(probs, dim=-1, descending=True)
                probs_sum = torch.cumsum(probs_sort, dim=-1)
                probs_sort[probs_sum - probs_sort >= top_p] = 0.0
                next_token = torch.gather(probs_idx, -1, torch.multinomial(probs_sort, num_samples=1))
            else:
                next_token = torch.argmax(logits, dim=-1, keepdim=True)
            tokens = torch.cat([tokens, next_token.to(tokens.dtype)], dim=1)
        return tokens
