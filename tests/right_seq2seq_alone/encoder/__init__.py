"""An encoder alone: layers after a post-norm, a stack, ids hidden for it to guess; a mask of 1 and 0 (B, S)."""

import torch
from torch import nn
from torch.nn import functional as F


class BertSelfAttention(nn.Module):
    def __init__(self, hidden, heads, dropout=0.0):
        super().__init__()
        self.heads = heads
        self.query, self.key, self.value = (nn.Linear(hidden, hidden) for _ in range(3))
        self.dense = nn.Linear(hidden, hidden)
        self.dropout = dropout

    def forward(self, x, attention_mask=None):
        q, k, v = (f(x).unflatten(-1, (self.heads, -1)).transpose(1, 2) for f in (self.query, self.key, self.value))
        mask = None if attention_mask is None else attention_mask[:, None, None, :].bool()
        y = F.scaled_dot_product_attention(q, k, v, mask, self.dropout if self.training else 0.0)
        return self.dense(y.transpose(1, 2).flatten(2))


class BertLayer(nn.Module):
    def __init__(self, hidden, heads, intermediate, dropout=0.0):
        super().__init__()
        self.attention = BertSelfAttention(hidden, heads, dropout)
        self.attention_norm = nn.LayerNorm(hidden, eps=1e-12)
        self.intermediate = nn.Linear(hidden, intermediate)
        self.output = nn.Linear(intermediate, hidden)
        self.output_norm = nn.LayerNorm(hidden, eps=1e-12)
        self.dropout = nn.Dropout(dropout)

    def forward(self, hidden_states, attention_mask=None):
        x = self.attention_norm(hidden_states + self.dropout(self.attention(hidden_states, attention_mask)))
        return self.output_norm(x + self.dropout(self.output(F.gelu(self.intermediate(x)))))


class BertEncoder(nn.Module):
    def __init__(self, hidden, heads, intermediate, layers, dropout=0.0):
        super().__init__()
        self.layer = nn.ModuleList([BertLayer(hidden, heads, intermediate, dropout) for _ in range(layers)])

    def forward(self, hidden_states, attention_mask=None):
        for layer in self.layer:
            hidden_states = layer(hidden_states, attention_mask)
        return hidden_states


def mask_tokens(ids, mask_id, vocab_size, special_ids, probability=0.15):
    labels = ids.clone()
    chance = torch.full(ids.shape, probability)
    chance.masked_fill_(torch.isin(ids, torch.tensor(list(special_ids))), 0.0)
    chosen = torch.bernoulli(chance).bool()
    labels[~chosen] = -100
    ids = ids.clone()
    replaced = torch.bernoulli(torch.full(ids.shape, 0.8)).bool() & chosen
    ids[replaced] = mask_id
    random = torch.bernoulli(torch.full(ids.shape, 0.5)).bool() & chosen & ~replaced
    ids[random] = torch.randint(vocab_size, ids.shape)[random]
    return ids, labels
