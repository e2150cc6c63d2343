import torch
import torch.nn as nn
import torch.nn.functional as F

HEAD_DIM = 8
BASE = 10000
CAP = 30.0


def norm(x):
    return F.rms_norm(x, (x.size(-1),), eps=1e-6)


class Rotary(nn.Module):
    def __init__(self, dim, base=BASE):
        super().__init__()
        self.register_buffer("inv_freq", (1.0 / base) ** (torch.arange(0, dim, 2, dtype=torch.float64) / dim), persistent=False)

    def forward(self, x):
        t = torch.arange(x.shape[1], device=x.device, dtype=self.inv_freq.dtype)
        freqs = torch.outer(t, self.inv_freq)
        return freqs.cos()[None, :, None, :].to(x.dtype), freqs.sin()[None, :, None, :].to(x.dtype)


def apply_rotary_emb(x, cos, sin):
    assert x.ndim == 4  # multihead attention
    d = x.shape[3] // 2
    x1 = x[..., :d]
    x2 = x[..., d:]
    y1 = x1 * cos - x2 * sin
    y2 = x1 * sin + x2 * cos
    return torch.cat([y1, y2], 3)


class CastedLinear(nn.Linear):
    def __init__(self, in_features, out_features):
        super().__init__(in_features, out_features, bias=False)

    def forward(self, x):
        return F.linear(x, self.weight.to(x.dtype))


class CausalSelfAttention(nn.Module):
    def __init__(self, dim):
        super().__init__()
        assert dim % HEAD_DIM == 0
        self.num_heads = dim // HEAD_DIM
        # merged QKV weights
        self.qkv_w = nn.Parameter(torch.empty(3, dim, dim).uniform_(-(3 / dim) ** 0.5 / 2, (3 / dim) ** 0.5 / 2))
        self.rotary = Rotary(HEAD_DIM)
        self.c_proj = CastedLinear(dim, dim)
        self.c_proj.weight.data.zero_()  # zero init suggested by @Grad62304977

    def forward(self, x):
        B, T, _ = x.size()
        q, k, v = F.linear(x, self.qkv_w.flatten(end_dim=1).type_as(x)).view(B, T, 3 * self.num_heads, HEAD_DIM).chunk(3, dim=-2)
        q, k = norm(q), norm(k)  # QK norm @Grad62304977
        cos, sin = self.rotary(x)
        q, k = apply_rotary_emb(q, cos, sin), apply_rotary_emb(k, cos, sin)
        y = F.scaled_dot_product_attention(q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), is_causal=True)
        y = y.transpose(1, 2).contiguous().view_as(x)
        return self.c_proj(y)


class MLP(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.c_fc = CastedLinear(dim, 4 * dim)
        self.c_proj = CastedLinear(4 * dim, dim)
        self.c_proj.weight.data.zero_()

    def forward(self, x):
        x = self.c_fc(x)
        x = F.relu(x).square()  # ReLU² instead of GELU
        return self.c_proj(x)


class Block(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.attn = CausalSelfAttention(dim)
        self.mlp = MLP(dim)

    def forward(self, x):
        x = x + self.attn(norm(x))
        x = x + self.mlp(norm(x))
        return x


class GPT(nn.Module):
    def __init__(self, vocab_size, num_layers, model_dim):
        super().__init__()
        self.embed = nn.Embedding(vocab_size, model_dim)
        self.blocks = nn.ModuleList([Block(model_dim) for _ in range(num_layers)])
        self.lm_head = CastedLinear(model_dim, vocab_size)

    def forward(self, idx, target=None):
        x = norm(self.embed(idx))
        for block in self.blocks:
            x = block(x)
        x = norm(x)
        logits = self.lm_head(x)
        logits = CAP * torch.tanh(logits / CAP)
        if target is None:
            return logits
        return F.cross_entropy(logits.view(-1, logits.size(-1)), target.view(-1))
