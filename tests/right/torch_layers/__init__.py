"""nn.MultiheadAttention and nn.TransformerEncoderLayer themselves: post-norm, ReLU, biases, a mask at the call."""

import math

import torch
from torch import nn


def attention(q, k, v, attn_mask=None):
    """True in attn_mask hides, as in nn.MultiheadAttention."""
    if attn_mask is not None:
        scores = q @ k.transpose(-2, -1)
        attn_mask = attn_mask.expand(scores.shape)
        if attn_mask.dtype == torch.bool:
            attn_mask = torch.zeros_like(scores).masked_fill(attn_mask, float("-inf"))
        attn_mask = attn_mask.to(q.dtype)
    return nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=attn_mask)


class Attention(nn.MultiheadAttention):
    def forward(self, query, key, value, attn_mask=None):
        output, _ = super().forward(query, key, value, attn_mask=attn_mask, need_weights=False)
        return output


class FeedForward(nn.Module):
    def __init__(self, d_model, dim_feedforward, dropout=0.0):
        super().__init__()
        self.linear1 = nn.Linear(d_model, dim_feedforward)
        self.linear2 = nn.Linear(dim_feedforward, d_model)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        return self.linear2(self.dropout(self.linear1(x).relu()))


class PositionalEncoding(nn.Module):
    def __init__(self, d_model: int, max_len: int, dropout: float = 0.0):
        super().__init__()
        self.dropout = nn.Dropout(p=dropout)
        position = torch.arange(max_len).unsqueeze(1)
        div_term = torch.exp(torch.arange(0, d_model, 2) * (-math.log(10000.0) / d_model))
        pe = torch.zeros(1, max_len, d_model)
        pe[0, :, 0::2] = torch.sin(position * div_term)
        pe[0, :, 1::2] = torch.cos(position * div_term)
        self.register_buffer("pe", pe)

    def forward(self, x):
        if x.size(1) > self.pe.size(1) or x.size(2) != self.pe.size(2):
            raise ValueError(f"x is {tuple(x.shape)}, the table {tuple(self.pe.shape)}")
        return self.dropout(x + self.pe[:, : x.size(1)])


class Layer(nn.TransformerEncoderLayer):
    def __init__(self, d_model, nhead, dim_feedforward, dropout=0.0):
        super().__init__(d_model, nhead, dim_feedforward, dropout, batch_first=True)


class LanguageModel(nn.Module):
    def __init__(self, ntoken, d_model, nhead, nlayers, d_hid, max_len, dropout=0.0):
        super().__init__()
        self.max_len, self.d_model = max_len, d_model
        self.embedding = nn.Embedding(ntoken, d_model)
        nn.init.uniform_(self.embedding.weight, -0.1, 0.1)
        self.pos_encoder = PositionalEncoding(d_model, max_len, dropout)
        self.layers = nn.ModuleList([Layer(d_model, nhead, d_hid, dropout) for _ in range(nlayers)])
        self.linear = nn.Linear(d_model, ntoken)

    def forward(self, src):
        x = self.pos_encoder(self.embedding(src) * math.sqrt(self.d_model))
        mask = nn.Transformer.generate_square_subsequent_mask(src.size(1), device=x.device, dtype=x.dtype)
        for layer in self.layers:
            x = layer(x, src_mask=mask)
        return self.linear(x)


def sample(model, prompt, steps, temperature=1.0):
    """Greedy when temperature is 0."""
    if not temperature >= 0 or steps < 0 or prompt.size(1) == 0:
        raise ValueError(f"temperature {temperature}, steps {steps}, prompt of {prompt.size(1)}")
    was = {module: module.training for module in model.modules()}
    model.eval()
    try:
        with torch.no_grad():
            for _ in range(steps):
                logits = model(prompt[:, -model.max_len :])[:, -1]
                if temperature:
                    best = torch.distributions.Categorical(logits=logits / temperature).sample()
                else:
                    best = logits.argmax(-1)
                prompt = torch.cat([prompt, best[:, None].to(prompt.dtype)], dim=1)
    finally:
        for module, training in was.items():
            module.training = training
    return prompt
