"""In the manner of a tutorial for another framework: masks of numbers in which 1 hides, each call needs all of them."""

import torch
from torch import nn


def create_padding_mask(ids, pad_id=0):
    return (ids == pad_id).to(torch.get_default_dtype())[:, None, None, :]


def create_look_ahead_mask(size):
    return torch.ones(size, size).triu(1)


def create_masks(source, target, pad_id=0):
    padding, later = create_padding_mask(target, pad_id), create_look_ahead_mask(target.shape[1])
    hidden = create_padding_mask(source, pad_id)
    return hidden, torch.maximum(padding, later.to(padding)), hidden


def attend(q, k, v, hidden):
    scores = q @ k.transpose(-1, -2) / k.shape[-1] ** 0.5
    weights = torch.softmax(scores + hidden.to(scores) * -1e9, -1)
    return weights @ v, weights


class Heads(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        if width % heads:
            raise ValueError(f"a width of {width} cannot be cut into {heads} heads")
        self.heads = heads
        self.wq, self.wk, self.wv, self.dense = (nn.Linear(width, width) for _ in range(4))

    def forward(self, v, k, q, mask):
        q, k, v = (
            m(x).view(len(x), -1, self.heads, m.out_features // self.heads).transpose(1, 2)
            for m, x in ((self.wq, q), (self.wk, k), (self.wv, v))
        )
        mixed, weights = attend(q, k, v, mask)
        return self.dense(mixed.transpose(1, 2).flatten(2)), weights


def network(width, inner):
    return nn.Sequential(nn.Linear(width, inner), nn.ReLU(), nn.Linear(inner, width))


class EncoderLayer(nn.Module):
    def __init__(self, d_model, num_heads, dff, rate=0.1):
        super().__init__()
        self.mha, self.ffn = Heads(d_model, num_heads), network(d_model, dff)
        self.norm1, self.norm2 = (nn.LayerNorm(d_model, eps=1e-6) for _ in range(2))
        self.drop1, self.drop2 = nn.Dropout(rate), nn.Dropout(rate)

    def forward(self, x, mask):
        x = self.norm1(x + self.drop1(self.mha(x, x, x, mask)[0]))
        return self.norm2(x + self.drop2(self.ffn(x)))


class DecoderLayer(nn.Module):
    def __init__(self, d_model, num_heads, dff, rate=0.1):
        super().__init__()
        self.mha1, self.mha2, self.ffn = Heads(d_model, num_heads), Heads(d_model, num_heads), network(d_model, dff)
        self.norm1, self.norm2, self.norm3 = (nn.LayerNorm(d_model, eps=1e-6) for _ in range(3))
        self.drop1, self.drop2, self.drop3 = (nn.Dropout(rate) for _ in range(3))

    def forward(self, x, enc_output, look_ahead_mask, padding_mask):
        mixed, own = self.mha1(x, x, x, look_ahead_mask)
        x = self.norm1(x + self.drop1(mixed))
        mixed, other = self.mha2(enc_output, enc_output, x, padding_mask)
        x = self.norm2(x + self.drop2(mixed))
        return self.norm3(x + self.drop3(self.ffn(x))), own, other


class Side(nn.Module):
    def __init__(self, layer, depth, width, heads, inner, symbols, longest, rate):
        super().__init__()
        self.embedding = nn.Embedding(symbols, width)
        place, channel = torch.arange(longest).double()[:, None], torch.arange(width)[None]
        angles = place / 10000.0 ** ((2 * (channel // 2)).double() / width)
        self.register_buffer("places", torch.where(channel % 2 == 0, angles.sin(), angles.cos()), persistent=False)
        self.layers = nn.ModuleList(layer(width, heads, inner, rate) for _ in range(depth))
        self.drop = nn.Dropout(rate)

    def begin(self, ids):
        if ids.shape[1] > len(self.places):
            raise ValueError(f"{ids.shape[1]} ids, at most {len(self.places)}")
        x = self.embedding(ids) * self.embedding.embedding_dim**0.5
        return self.drop(x + self.places[: ids.shape[1]].to(x.dtype))


class Transformer(nn.Module):
    def __init__(
        self, num_layers, d_model, num_heads, dff, input_vocab_size, target_vocab_size, pe_input, pe_target, rate=0.1
    ):
        super().__init__()
        self.encoder = Side(EncoderLayer, num_layers, d_model, num_heads, dff, input_vocab_size, pe_input, rate)
        self.decoder = Side(DecoderLayer, num_layers, d_model, num_heads, dff, target_vocab_size, pe_target, rate)
        self.final = nn.Linear(d_model, target_vocab_size)

    def forward(self, inp, tar, enc_padding_mask, look_ahead_mask, dec_padding_mask):
        memory = self.encoder.begin(inp)
        for layer in self.encoder.layers:
            memory = layer(memory, enc_padding_mask)
        x, weights = self.decoder.begin(tar), {}
        for place, layer in enumerate(self.decoder.layers):
            x, own, other = layer(x, memory, look_ahead_mask, dec_padding_mask)
            weights[f"layer{place + 1}"] = own, other
        return self.final(x), weights
