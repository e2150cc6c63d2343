import torch
import torch.nn.functional as F
from torch import nn


class EncoderBlock(nn.Module):
    def __init__(self, dim, n_heads, mlp_dim, p):
        super().__init__()
        self.n_heads, self.p = n_heads, p
        self.to_q, self.to_k, self.to_v = (nn.Linear(dim, dim) for _ in range(3))
        self.to_out = nn.Linear(dim, dim)
        self.fc1, self.fc2 = nn.Linear(dim, mlp_dim), nn.Linear(mlp_dim, dim)
        self.attn_ln, self.mlp_ln = nn.LayerNorm(dim, 1e-12), nn.LayerNorm(dim, 1e-12)
        self.drop = nn.Dropout(p)

    def forward(self, x, attn_mask):
        q, k, v = (f(x).unflatten(-1, (self.n_heads, -1)).transpose(1, 2) for f in (self.to_q, self.to_k, self.to_v))
        y = F.scaled_dot_product_attention(q, k, v, attn_mask, self.p if self.training else 0.0)
        x = self.attn_ln(x + self.drop(self.to_out(y.transpose(1, 2).flatten(2))))
        return self.mlp_ln(x + self.drop(self.fc2(F.gelu(self.fc1(x)))))


class BertForMaskedLM(nn.Module):
    def __init__(self, vocab_size, dim, n_heads, depth, mlp_dim, max_len, dropout=0.0, pad_id=0):
        super().__init__()
        self.pad_id = pad_id
        self.tok = nn.Embedding(vocab_size, dim)
        self.pos = nn.Embedding(max_len, dim)
        self.emb_ln = nn.LayerNorm(dim, 1e-12)
        self.emb_drop = nn.Dropout(dropout)
        self.blocks = nn.ModuleList([EncoderBlock(dim, n_heads, mlp_dim, dropout) for _ in range(depth)])
        self.lm_dense = nn.Linear(dim, dim)
        self.lm_norm = nn.LayerNorm(dim, 1e-12)
        self.lm_head = nn.Linear(dim, vocab_size)
        self.lm_head.weight = self.tok.weight

    def forward(self, input_ids):
        mask = input_ids.ne(self.pad_id)[:, None, None, :]
        x = self.tok(input_ids) + self.pos.weight[: input_ids.size(1)]
        x = self.emb_drop(self.emb_ln(x))
        for block in self.blocks:
            x = block(x, mask)
        return self.lm_head(self.lm_norm(F.gelu(self.lm_dense(x))))
