"""As Llama: rotary positions, grouped heads, RMSNorm, a declared cache of fixed size, masks as booleans."""

import torch
import torch.nn as nn
import torch.nn.functional as F


class Cache:
    """Room for `length` positions of each layer, filled from the front."""

    def __init__(self, layers, rows, length, heads, width):
        self.keys = [torch.zeros(rows, heads, length, width) for _ in range(layers)]
        self.values = [torch.zeros(rows, heads, length, width) for _ in range(layers)]
        self.count = 0

    def update(self, layer, k, v):
        end = self.count + k.size(2)
        if self.keys[layer].dtype != k.dtype:
            self.keys[layer], self.values[layer] = self.keys[layer].to(k.dtype), self.values[layer].to(v.dtype)
        self.keys[layer][:, :, self.count : end] = k
        self.values[layer][:, :, self.count : end] = v
        return self.keys[layer][:, :, :end], self.values[layer][:, :, :end]

    def rewind(self, count):
        self.count = count

    def clear(self):
        self.count = 0

    def pick(self, rows):
        self.keys = [k[rows] for k in self.keys]
        self.values = [v[rows] for v in self.values]


def turned(x, places):
    half = x.size(-1) // 2
    angle = places[:, None, :, None].to(torch.float64) * 10000.0 ** (-torch.arange(half, dtype=torch.float64) / half)
    cos, sin = angle.cos().to(x.dtype), angle.sin().to(x.dtype)
    a, b = x[..., :half], x[..., half:]
    return torch.cat([a * cos - b * sin, b * cos + a * sin], dim=-1)


class Layer(nn.Module):
    def __init__(self, number, dim, heads, kv_heads, hidden):
        super().__init__()
        self.number, self.heads, self.kv_heads = number, heads, kv_heads
        width = dim // heads
        self.wq = nn.Linear(dim, heads * width, bias=False)
        self.wk = nn.Linear(dim, kv_heads * width, bias=False)
        self.wv = nn.Linear(dim, kv_heads * width, bias=False)
        self.wo = nn.Linear(dim, dim, bias=False)
        self.w1 = nn.Linear(dim, hidden, bias=False)
        self.w2 = nn.Linear(hidden, dim, bias=False)
        self.w3 = nn.Linear(dim, hidden, bias=False)
        self.before_attention, self.before_ffn = nn.RMSNorm(dim, eps=1e-5), nn.RMSNorm(dim, eps=1e-5)

    def forward(self, x, places, seen, memory):
        B, T, C = x.shape
        h = self.before_attention(x)
        q = turned(self.wq(h).view(B, T, self.heads, -1).transpose(1, 2), places)
        k = turned(self.wk(h).view(B, T, self.kv_heads, -1).transpose(1, 2), places)
        v = self.wv(h).view(B, T, self.kv_heads, -1).transpose(1, 2)
        if memory is not None:
            k, v = memory.update(self.number, k, v)
        k = k.repeat_interleave(self.heads // self.kv_heads, dim=1)
        v = v.repeat_interleave(self.heads // self.kv_heads, dim=1)
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=seen)
        x = x + self.wo(y.transpose(1, 2).reshape(B, T, C))
        h = self.before_ffn(x)
        return x + self.w2(F.silu(self.w1(h)) * self.w3(h))


class TinyTransformerLM(nn.Module):
    def __init__(self, vocab_size, dim, n_heads, n_layers, hidden_dim, max_seq_len, kv_heads):
        super().__init__()
        self.tok = nn.Embedding(vocab_size, dim)
        self.layers = nn.ModuleList(Layer(i, dim, n_heads, kv_heads, hidden_dim) for i in range(n_layers))
        self.norm = nn.RMSNorm(dim, eps=1e-5)
        self.output = nn.Linear(dim, vocab_size, bias=False)

    def forward(self, tokens, keep=None, where=None, memory=None, texts=None):
        B, T = tokens.shape
        done = memory.count if memory is not None else 0
        if where is None:
            where = torch.arange(done, done + T)[None].expand(B, T)
        seen = torch.ones(T, done + T, dtype=torch.bool).tril(done)[None, None].expand(B, 1, T, done + T)
        if keep is not None:
            seen = seen & keep[:, None, None, :]
        if texts is not None:
            seen = seen & (texts[:, None, -T:, None] == texts[:, None, None, :])
        seen = seen | torch.eye(done + T, dtype=torch.bool)[done:]  # a query that is padding sees itself
        x = self.tok(tokens)
        for layer in self.layers:
            x = layer(x, where, seen, memory)
        if memory is not None:
            memory.count = done + T
        return self.output(self.norm(x))

    @torch.no_grad()
    def generate(self, tokens, max_new_tokens, lengths=None, temperature=0.0):
        B, T = tokens.shape
        ends = torch.full((B,), T) if lengths is None else lengths
        text = torch.cat([tokens, tokens.new_zeros(B, max_new_tokens)], dim=1)
        for step in range(max_new_tokens):
            logits = self(text[:, : int(ends.max()) + step])[torch.arange(B), ends + step - 1]
            if temperature > 0:
                new = torch.multinomial(torch.softmax(logits / temperature, dim=-1), 1)[:, 0]
            else:
                new = logits.argmax(dim=-1)
            text[torch.arange(B), ends + step] = new
        return text
