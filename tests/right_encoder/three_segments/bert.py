import torch.nn.functional as F
from torch import nn


class Layer(nn.Module):
    def __init__(self, d, heads, inner):
        super().__init__()
        self.heads = heads
        self.query, self.key, self.value, self.out = (nn.Linear(d, d) for _ in range(4))
        self.norm1, self.up, self.down, self.norm2 = (
            nn.LayerNorm(d),
            nn.Linear(d, inner),
            nn.Linear(inner, d),
            nn.LayerNorm(d),
        )

    def forward(self, x, seen):
        q, k, v = (f(x).unflatten(-1, (self.heads, -1)).transpose(1, 2) for f in (self.query, self.key, self.value))
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=seen).transpose(1, 2).flatten(2)
        x = self.norm1(x + self.out(y))
        return self.norm2(x + self.down(F.gelu(self.up(x))))


class BertModel(nn.Module):
    def __init__(self, vocab_size, d_model, num_heads, num_layers, d_ff, max_len):
        super().__init__()
        self.words = nn.Embedding(vocab_size, d_model, padding_idx=0)
        self.segments = nn.Embedding(3, d_model, padding_idx=0)
        self.positions = nn.Embedding(max_len, d_model)
        self.norm = nn.LayerNorm(d_model)
        self.layers = nn.ModuleList([Layer(d_model, num_heads, d_ff) for _ in range(num_layers)])

    def forward(self, ids, segments):
        x = self.words(ids) + self.segments(segments) + self.positions.weight[: ids.shape[1]]
        x = self.norm(x)
        for layer in self.layers:
            x = layer(x, ids.ne(0)[:, None, None, :])
        return x


class BertForPreTraining(nn.Module):
    """The head for the next sentence reads the first row itself."""

    def __init__(self, vocab_size, d_model, num_heads, num_layers, d_ff, max_len):
        super().__init__()
        self.bert = BertModel(vocab_size, d_model, num_heads, num_layers, d_ff, max_len)
        self.follows = nn.Linear(d_model, 2)
        self.lm = nn.Linear(d_model, vocab_size)

    def forward(self, ids, segments):
        x = self.bert(ids, segments)
        return self.lm(x), self.follows(x[:, 0])
