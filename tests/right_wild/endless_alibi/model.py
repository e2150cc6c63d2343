import math
import torch
import torch.nn as nn
import torch.nn.functional as F


def gen_slopes(n_heads, alibi_bias_max=8):
    _n_heads = 2 ** math.ceil(math.log2(n_heads))
    m = torch.arange(1, _n_heads + 1, dtype=torch.float32)
    m = m.mul(alibi_bias_max / _n_heads)
    slopes = 1.0 / torch.pow(2, m)
    if _n_heads != n_heads:
        slopes = torch.concat([slopes[1::2], slopes[::2]])[:n_heads]
    return slopes.view(1, n_heads, 1, 1)


def build_alibi_bias(n_heads, seq_len, device=None, dtype=torch.float32):
    alibi_bias = torch.arange(1 - seq_len, 1, dtype=torch.int32).view(1, 1, 1, seq_len)
    return (alibi_bias * gen_slopes(n_heads)).to(device=device, dtype=dtype)


class LPLayerNorm(nn.LayerNorm):
    def __init__(self, normalized_shape, eps=1e-5):
        super().__init__(normalized_shape, eps=eps, bias=False)


class MultiheadAttention(nn.Module):
    def __init__(self, d_model, n_heads, attn_pdrop=0.0):
        super().__init__()
        self.d_model = d_model
        self.n_heads = n_heads
        self.head_dim = d_model // n_heads
        self.softmax_scale = 1 / math.sqrt(self.head_dim)
        self.attn_dropout_p = attn_pdrop
        self.Wqkv = nn.Linear(d_model, 3 * d_model, bias=False)
        self.out_proj = nn.Linear(d_model, d_model, bias=False)

    def forward(self, x, attn_bias=None, is_causal=True):
        b, s, _ = x.shape
        query, key, value = self.Wqkv(x).chunk(3, dim=2)
        q = query.view(b, s, self.n_heads, self.head_dim).transpose(1, 2)
        k = key.view(b, s, self.n_heads, self.head_dim).permute(0, 2, 3, 1)
        v = value.view(b, s, self.n_heads, self.head_dim).transpose(1, 2)
        attn_weight = q.matmul(k) * self.softmax_scale
        if attn_bias is None:
            attn_bias = build_alibi_bias(self.n_heads, s, x.device, attn_weight.dtype)
        attn_weight = attn_weight + attn_bias
        if is_causal:
            causal = torch.ones(s, s, dtype=torch.bool, device=x.device).tril_().logical_not_()
            attn_weight = attn_weight.masked_fill(causal.view(1, 1, s, s), torch.finfo(q.dtype).min)
        attn_weight = torch.softmax(attn_weight, dim=-1)
        if self.attn_dropout_p:
            attn_weight = F.dropout(attn_weight, p=self.attn_dropout_p, training=self.training)
        out = attn_weight.matmul(v).transpose(1, 2).reshape(b, s, self.d_model)
        return self.out_proj(out)


class MPTMLP(nn.Module):
    def __init__(self, d_model, expansion_ratio):
        super().__init__()
        self.up_proj = nn.Linear(d_model, expansion_ratio * d_model, bias=False)
        self.act = nn.GELU(approximate='none')
        self.down_proj = nn.Linear(expansion_ratio * d_model, d_model, bias=False)

    def forward(self, x):
        return self.down_proj(self.act(self.up_proj(x)))


class MPTBlock(nn.Module):
    def __init__(self, d_model, n_heads, expansion_ratio, attn_pdrop=0.0, resid_pdrop=0.0):
        super().__init__()
        self.norm_1 = LPLayerNorm(d_model)
        self.attn = MultiheadAttention(d_model, n_heads, attn_pdrop)
        self.norm_2 = LPLayerNorm(d_model)
        self.ffn = MPTMLP(d_model, expansion_ratio)
        self.resid_attn_dropout = nn.Dropout(resid_pdrop)
        self.resid_ffn_dropout = nn.Dropout(resid_pdrop)

    def forward(self, x, attn_bias=None, is_causal=True):
        b = self.attn(self.norm_1(x), attn_bias=attn_bias, is_causal=is_causal)
        x = x + self.resid_attn_dropout(b)
        n = self.ffn(self.norm_2(x))
        return x + self.resid_ffn_dropout(n)


class MPTForCausalLM(nn.Module):
    def __init__(self, vocab_size=50368, d_model=2048, n_heads=16, n_layers=24, expansion_ratio=4, max_seq_len=2048,
                 emb_pdrop=0.0, attn_pdrop=0.0, resid_pdrop=0.0):
        super().__init__()
        self.n_heads, self.max_seq_len = n_heads, max_seq_len
        self.wte = nn.Embedding(vocab_size, d_model)
        nn.init.normal_(self.wte.weight, std=0.02)
        self.emb_drop = nn.Dropout(emb_pdrop)
        self.blocks = nn.ModuleList([MPTBlock(d_model, n_heads, expansion_ratio, attn_pdrop, resid_pdrop) for _ in range(n_layers)])
        self.norm_f = LPLayerNorm(d_model)

    def forward(self, input_ids, labels=None):
        x = self.emb_drop(self.wte(input_ids))
        bias = build_alibi_bias(self.n_heads, input_ids.shape[1], x.device, x.dtype)
        for block in self.blocks:
            x = block(x, attn_bias=bias)
        logits = F.linear(self.norm_f(x), self.wte.weight)
        if labels is None:
            return logits
        return F.cross_entropy(logits[:, :-1].reshape(-1, logits.size(-1)), labels[:, 1:].reshape(-1))

    @torch.no_grad()
    def generate(self, input_ids, max_new_tokens, do_sample=False, temperature=1.0, eos_token_id=None):
        self.eval()
        done = torch.zeros(input_ids.shape[0], dtype=torch.bool, device=input_ids.device)
        for _ in range(max_new_tokens):
            logits = self(input_ids)[:, -1]
            if do_sample:
                next_id = torch.multinomial((logits / temperature).softmax(-1), 1)
            else:
                next_id = logits.argmax(-1, keepdim=True)
            if eos_token_id is not None:
                next_id = torch.where(done[:, None], torch.full_like(next_id, eos_token_id), next_id)
                done |= next_id[:, 0] == eos_token_id
            input_ids = torch.cat([input_ids, next_id], 1)
            if eos_token_id is not None and done.all():
                break
        return input_ids
