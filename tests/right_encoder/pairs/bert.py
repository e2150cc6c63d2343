import math

import torch
import torch.nn.functional as F
from torch import nn


class BERTEmbedding(nn.Module):
    def __init__(self, vocab_size, embed_size, max_len, n_segments=2, dropout=0.1):
        super().__init__()
        self.token = nn.Embedding(vocab_size, embed_size, padding_idx=0)
        self.position = nn.Embedding(max_len, embed_size)
        self.segment = nn.Embedding(n_segments, embed_size)
        self.ln = nn.LayerNorm(embed_size, eps=1e-12)
        self.drop = nn.Dropout(dropout)

    def forward(self, sequence, segment_label):
        where = torch.arange(sequence.size(1), device=sequence.device).unsqueeze(0)
        return self.drop(self.ln(self.token(sequence) + self.position(where) + self.segment(segment_label)))


class Attention(nn.Module):
    def __init__(self, d, h, p):
        super().__init__()
        assert d % h == 0
        self.h, self.w = h, d // h
        self.linear_layers = nn.ModuleList([nn.Linear(d, d) for _ in range(3)])
        self.output_linear = nn.Linear(d, d)
        self.dropout = nn.Dropout(p)

    def forward(self, x, hide):
        b, t, _ = x.shape
        q, k, v = (layer(x).view(b, t, self.h, self.w).transpose(1, 2) for layer in self.linear_layers)
        scores = q @ k.transpose(-1, -2) / math.sqrt(self.w)
        weights = self.dropout(F.softmax(scores.masked_fill(hide, float("-inf")), dim=-1))
        return self.output_linear((weights @ v).transpose(1, 2).contiguous().view(b, t, -1))


class Block(nn.Module):
    def __init__(self, d, h, inner, p):
        super().__init__()
        self.attention = Attention(d, h, p)
        self.norm_attention = nn.LayerNorm(d, eps=1e-12)
        self.w_1, self.w_2 = nn.Linear(d, inner), nn.Linear(inner, d)
        self.norm_feed_forward = nn.LayerNorm(d, eps=1e-12)
        self.dropout = nn.Dropout(p)

    def forward(self, x, hide):
        x = self.norm_attention(x + self.dropout(self.attention(x, hide)))
        return self.norm_feed_forward(x + self.dropout(self.w_2(F.gelu(self.w_1(x)))))


class BERT(nn.Module):
    def __init__(self, vocab_size, hidden, n_layers, attn_heads, ff_hidden, max_len, n_segments=2, dropout=0.1):
        super().__init__()
        self.embedding = BERTEmbedding(vocab_size, hidden, max_len, n_segments, dropout)
        self.transformer_blocks = nn.ModuleList(
            [Block(hidden, attn_heads, ff_hidden, dropout) for _ in range(n_layers)]
        )

    def forward(self, x, segment_info):
        hide = (x == 0)[:, None, None, :]
        h = self.embedding(x, segment_info)
        for block in self.transformer_blocks:
            h = block(h, hide)
        return h


class BERTLM(nn.Module):
    def __init__(self, vocab_size, hidden, n_layers, attn_heads, ff_hidden, max_len, n_segments=2, dropout=0.1):
        super().__init__()
        self.bert = BERT(vocab_size, hidden, n_layers, attn_heads, ff_hidden, max_len, n_segments, dropout)
        self.mlm_dense = nn.Linear(hidden, hidden)
        self.mlm_norm = nn.LayerNorm(hidden, eps=1e-12)
        self.bias = nn.Parameter(torch.zeros(vocab_size))
        self.pooler = nn.Linear(hidden, hidden)
        self.nsp = nn.Linear(hidden, 2)

    def forward(self, x, segment_info):
        h = self.bert(x, segment_info)
        words = self.mlm_norm(F.gelu(self.mlm_dense(h))) @ self.bert.embedding.token.weight.t() + self.bias
        return words, self.nsp(torch.tanh(self.pooler(h[:, 0])))
