"""One class for both kinds of layer, `read` and `write`, masks that hide where True and are built inside, two lists of tables."""

import torch
from torch import nn
from torch.nn import functional as F


def pad_bias(ids, pad):
    return torch.where(ids == pad, float("-inf"), 0.0).to(torch.get_default_dtype())


class Attn(nn.Module):
    def __init__(self, n_embd, n_head, dropout=0.0):
        super().__init__()
        if n_embd % n_head:
            raise ValueError(f"n_embd = {n_embd} must be divisible by n_head = {n_head}")
        self.n_head, self.p = n_head, dropout
        self.q_proj, self.k_proj, self.v_proj, self.o_proj = (nn.Linear(n_embd, n_embd, bias=False) for _ in range(4))

    def forward(self, hidden, source=None, hide=None):
        """`hide` is True where nothing may be read, (B, S) or (B, T, S)."""
        source = hidden if source is None else source
        q, k, v = self.q_proj(hidden), self.k_proj(source), self.v_proj(source)
        q, k, v = (z.unflatten(-1, (self.n_head, -1)).movedim(-2, 1) for z in (q, k, v))
        mask = None
        if hide is not None:
            mask = ~(hide[:, None, None] if hide.dim() == 2 else hide[:, None])
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, dropout_p=self.p if self.training else 0.0)
        return self.o_proj(y.movedim(1, -2).flatten(-2))


class Layer(nn.Module):
    def __init__(self, n_embd, n_head, d_inner, dropout=0.0, cross=False):
        super().__init__()
        self.attn_norm, self.self_attn = nn.LayerNorm(n_embd), Attn(n_embd, n_head, dropout)
        if cross:
            self.cross_norm, self.cross_attn = nn.LayerNorm(n_embd), Attn(n_embd, n_head, dropout)
        self.ff_norm, self.fc1, self.fc2 = nn.LayerNorm(n_embd), nn.Linear(n_embd, d_inner), nn.Linear(d_inner, n_embd)
        self.cross, self.drop = cross, nn.Dropout(dropout)

    def run(self, x, hide, memory=None, memory_hide=None):
        x = x + self.drop(self.self_attn(self.attn_norm(x), hide=hide))
        if self.cross:
            x = x + self.drop(self.cross_attn(self.cross_norm(x), memory, memory_hide))
        return x + self.drop(self.fc2(self.drop(F.gelu(self.fc1(self.ff_norm(x))))))


class EncoderLayer(Layer):
    def forward(self, x, hide=None):
        return self.run(x, hide)


class DecoderLayer(Layer):
    def __init__(self, n_embd, n_head, d_inner, dropout=0.0):
        super().__init__(n_embd, n_head, d_inner, dropout, cross=True)

    def forward(self, x, memory, hide=None, memory_hide=None):
        return self.run(x, hide, memory, memory_hide)


class Model(nn.Module):
    def __init__(self, vocab_in, vocab_out, n_embd, n_head, depth_in, depth_out, d_inner, longest, dropout=0.0, pad=0):
        super().__init__()
        self.pad = pad
        self.tables = nn.ModuleList([nn.Embedding(vocab_in, n_embd), nn.Embedding(vocab_out, n_embd)])
        self.places = nn.ParameterList([nn.Parameter(0.02 * torch.randn(longest, n_embd)) for _ in range(2)])
        self.reader = nn.ModuleList([EncoderLayer(n_embd, n_head, d_inner, dropout) for _ in range(depth_in)])
        self.writer = nn.ModuleList([DecoderLayer(n_embd, n_head, d_inner, dropout) for _ in range(depth_out)])
        self.reader_norm, self.writer_norm = nn.LayerNorm(n_embd), nn.LayerNorm(n_embd)
        self.to_words = nn.Linear(n_embd, vocab_out)
        self.drop = nn.Dropout(dropout)

    def begin(self, side, ids):
        return self.drop(self.tables[side](ids) + self.places[side][: ids.shape[1]])

    def read(self, src, hide=None):
        hide = src == self.pad if hide is None else hide
        x = self.begin(0, src)
        for layer in self.reader:
            x = layer(x, hide)
        return self.reader_norm(x)

    def write(self, tgt, memory, memory_hide=None):
        later = torch.ones(tgt.shape[1], tgt.shape[1], dtype=torch.bool, device=tgt.device).triu(1)
        hide = later | (tgt == self.pad)[:, None]
        x = self.begin(1, tgt)
        for layer in self.writer:
            x = layer(x, memory, hide, memory_hide)
        return self.to_words(self.writer_norm(x))

    def forward(self, src, tgt):
        hide = src == self.pad
        return self.write(tgt, self.read(src, hide), hide)
