import math
import torch
import torch.nn as nn
import torch.nn.functional as F


class BertEmbeddings(nn.Module):
    def __init__(self, vocab_size, hidden, max_len=512, type_vocab=2, dropout=0.1):
        super().__init__()
        self.word = nn.Embedding(vocab_size, hidden, padding_idx=0)
        self.position = nn.Embedding(max_len, hidden)
        self.token_type = nn.Embedding(type_vocab, hidden)
        self.norm = nn.LayerNorm(hidden, eps=1e-12)
        self.dropout = nn.Dropout(dropout)

    def forward(self, input_ids, token_type_ids=None):
        if token_type_ids is None:
            token_type_ids = torch.zeros_like(input_ids)
        pos = torch.arange(input_ids.size(1), device=input_ids.device)
        e = self.word(input_ids) + self.position(pos)[None] + self.token_type(token_type_ids)
        return self.dropout(self.norm(e))


class BertSelfAttention(nn.Module):
    def __init__(self, hidden, heads, dropout=0.1):
        super().__init__()
        if hidden % heads:
            raise ValueError(f"hidden size {hidden} is not a multiple of the number of heads {heads}")
        self.h = heads
        self.query = nn.Linear(hidden, hidden)
        self.key = nn.Linear(hidden, hidden)
        self.value = nn.Linear(hidden, hidden)
        self.dense = nn.Linear(hidden, hidden)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x, attention_mask=None):
        B, T, D = x.shape
        q = self.query(x).view(B, T, self.h, -1).transpose(1, 2)
        k = self.key(x).view(B, T, self.h, -1).transpose(1, 2)
        v = self.value(x).view(B, T, self.h, -1).transpose(1, 2)
        scores = q @ k.transpose(-1, -2) / math.sqrt(D // self.h)
        if attention_mask is not None:
            scores = scores + (1.0 - attention_mask[:, None, None, :].to(scores.dtype)) * torch.finfo(scores.dtype).min
        probs = self.dropout(F.softmax(scores, dim=-1))
        ctx = (probs @ v).transpose(1, 2).reshape(B, T, D)
        return self.dense(ctx)


class BertLayer(nn.Module):
    def __init__(self, hidden, heads, intermediate, dropout=0.1):
        super().__init__()
        self.attention = BertSelfAttention(hidden, heads, dropout)
        self.attention_norm = nn.LayerNorm(hidden, eps=1e-12)
        self.intermediate = nn.Linear(hidden, intermediate)
        self.output = nn.Linear(intermediate, hidden)
        self.output_norm = nn.LayerNorm(hidden, eps=1e-12)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x, attention_mask=None):
        x = self.attention_norm(x + self.dropout(self.attention(x, attention_mask)))
        return self.output_norm(x + self.dropout(self.output(F.gelu(self.intermediate(x)))))


class BertModel(nn.Module):
    def __init__(self, vocab_size, hidden=768, layers=12, heads=12, intermediate=3072, max_len=512, dropout=0.1):
        super().__init__()
        self.embeddings = BertEmbeddings(vocab_size, hidden, max_len, dropout=dropout)
        self.layers = nn.ModuleList(BertLayer(hidden, heads, intermediate, dropout) for _ in range(layers))
        self.pooler = nn.Linear(hidden, hidden)

    def forward(self, input_ids, token_type_ids=None, attention_mask=None):
        if attention_mask is None:
            attention_mask = torch.ones_like(input_ids)
        x = self.embeddings(input_ids, token_type_ids)
        for layer in self.layers:
            x = layer(x, attention_mask)
        return x, torch.tanh(self.pooler(x[:, 0]))


class BertForMaskedLM(nn.Module):
    def __init__(self, vocab_size, hidden=768, layers=12, heads=12, intermediate=3072, max_len=512, dropout=0.1):
        super().__init__()
        self.bert = BertModel(vocab_size, hidden, layers, heads, intermediate, max_len, dropout)
        self.transform = nn.Linear(hidden, hidden)
        self.transform_norm = nn.LayerNorm(hidden, eps=1e-12)
        self.decoder = nn.Linear(hidden, vocab_size)
        self.decoder.weight = self.bert.embeddings.word.weight

    def forward(self, input_ids, token_type_ids=None, attention_mask=None, labels=None):
        x, _ = self.bert(input_ids, token_type_ids, attention_mask)
        logits = self.decoder(self.transform_norm(F.gelu(self.transform(x))))
        if labels is None:
            return logits
        loss = F.cross_entropy(logits.view(-1, logits.size(-1)), labels.view(-1), ignore_index=-100)
        return loss, logits
