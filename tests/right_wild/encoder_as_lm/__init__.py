"""A language model from nn.TransformerEncoder with a causal mask, sequence first; sampling is a function besides it."""

import math

import torch
from torch import nn


class PositionalEncoding(nn.Module):
    def __init__(self, d_model, dropout=0.0, max_len=512):
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        position = torch.arange(max_len).unsqueeze(1)
        div_term = torch.exp(torch.arange(0, d_model, 2) * (-math.log(10000.0) / d_model))
        pe = torch.zeros(max_len, 1, d_model)
        pe[:, 0, 0::2] = torch.sin(position * div_term)
        pe[:, 0, 1::2] = torch.cos(position * div_term[: d_model // 2])
        self.register_buffer("pe", pe)

    def forward(self, x):
        """x: (T, B, D)"""
        return self.dropout(x + self.pe[: x.size(0)])


class TransformerModel(nn.Module):
    def __init__(self, ntoken, d_model, nhead, d_hid, nlayers, dropout=0.5, max_len=512):
        super().__init__()
        self.pos_encoder = PositionalEncoding(d_model, dropout, max_len)
        layer = nn.TransformerEncoderLayer(d_model, nhead, d_hid, dropout)
        self.transformer_encoder = nn.TransformerEncoder(layer, nlayers, enable_nested_tensor=False)
        self.embedding = nn.Embedding(ntoken, d_model)
        self.d_model, self.max_len = d_model, max_len
        self.linear = nn.Linear(d_model, ntoken)
        self.init_weights()

    def init_weights(self):
        initrange = 0.1
        self.embedding.weight.data.uniform_(-initrange, initrange)
        self.linear.bias.data.zero_()
        self.linear.weight.data.uniform_(-initrange, initrange)

    def forward(self, src):
        """src (T, B) -> (T, B, ntoken)"""
        src_mask = nn.Transformer.generate_square_subsequent_mask(len(src), device=src.device)
        x = self.pos_encoder(self.embedding(src) * math.sqrt(self.d_model))
        return self.linear(self.transformer_encoder(x, src_mask.to(x.dtype)))


def top_k_top_p_filtering(logits, top_k=0, top_p=1.0):
    """logits (B, V); what is filtered out becomes -inf, at least one id stays"""
    if top_k > 0:
        kth = logits.topk(min(top_k, logits.size(-1)), dim=-1).values[:, -1:]
        logits = logits.masked_fill(logits < kth, float("-inf"))
    if top_p < 1.0:
        ranked, order = logits.sort(dim=-1, descending=True)
        probs = ranked.softmax(dim=-1)
        drop = probs.cumsum(dim=-1) - probs >= top_p
        logits = logits.masked_fill(torch.zeros_like(drop).scatter(-1, order, drop), float("-inf"))
    return logits


@torch.no_grad()
def sample(model, prompt, length, temperature=1.0, top_k=0, top_p=1.0):
    """prompt (T, B) -> (T + length, B)"""
    training = model.training
    model.eval()
    out = prompt
    for _ in range(length):
        logits = model(out[-model.max_len :])[-1]
        if temperature == 0:
            chosen = logits.argmax(dim=-1)
        else:
            probs = top_k_top_p_filtering(logits / temperature, top_k, top_p).softmax(dim=-1)
            chosen = torch.multinomial(probs, 1).squeeze(1)
        out = torch.cat([out, chosen.unsqueeze(0)], dim=0)
    model.train(training)
    return out


def batchify(data, bsz):
    """Cut a stream of ids (N,) into bsz columns: (N // bsz, bsz)"""
    seq_len = data.size(0) // bsz
    return data[: seq_len * bsz].view(bsz, seq_len).t().contiguous()


def get_batch(source, i, bptt):
    """data (T, B) and the flat targets, one ahead"""
    seq_len = min(bptt, len(source) - 1 - i)
    return source[i : i + seq_len], source[i + 1 : i + 1 + seq_len].reshape(-1)


@torch.no_grad()
def evaluate(model, eval_data, bptt):
    """Mean loss per token and perplexity."""
    model.eval()
    total, count = 0.0, 0
    for i in range(0, eval_data.size(0) - 1, bptt):
        data, targets = get_batch(eval_data, i, bptt)
        logits = model(data)
        total += nn.functional.cross_entropy(logits.view(-1, logits.size(-1)), targets, reduction="sum").item()
        count += targets.numel()
    return total / count, math.exp(total / count)
