"""The design document's signatures: masks of three axes, weights returned beside the output, decode_step."""

import math

import torch
from torch import nn


class TokenEmbedding(nn.Module):
    def __init__(self, vocab_size, d_model, padding_idx=None):
        super().__init__()
        self.embedding, self.scale = nn.Embedding(vocab_size, d_model, padding_idx=padding_idx), math.sqrt(d_model)

    def forward(self, tokens):
        return self.embedding(tokens) * self.scale


class SinusoidalPositionEncoding(nn.Module):
    def __init__(self, d_model, max_seq_length):
        super().__init__()
        position = torch.arange(max_seq_length, dtype=torch.float64).unsqueeze(1)
        div_term = torch.exp(torch.arange(0, d_model, 2, dtype=torch.float64) * (-math.log(10000.0) / d_model))
        pe = torch.zeros(max_seq_length, d_model, dtype=torch.float64)
        pe[:, 0::2], pe[:, 1::2] = torch.sin(position * div_term), torch.cos(position * div_term)[:, : d_model // 2]
        self.register_buffer("pe", pe.unsqueeze(0))

    def forward(self, x):
        return x + self.pe[:, : x.size(1)].to(x.dtype)


class MultiHeadAttention(nn.Module):
    def __init__(self, d_model, num_heads, dropout=0.1):
        super().__init__()
        self.num_heads, self.d_k = num_heads, d_model // num_heads
        self.w_q, self.w_k, self.w_v, self.w_o = (nn.Linear(d_model, d_model) for _ in range(4))
        self.dropout = nn.Dropout(dropout)

    def forward(self, query, key, value, mask=None):
        batch, heads = query.size(0), lambda x: x.view(query.size(0), -1, self.num_heads, self.d_k).transpose(1, 2)
        q, k, v = heads(self.w_q(query)), heads(self.w_k(key)), heads(self.w_v(value))
        scores = torch.matmul(q, k.transpose(-2, -1)) / math.sqrt(self.d_k)
        if mask is not None:
            assert mask.dim() == 3 and mask.size(1) == query.size(1), "mask must be (batch, queries, keys)"
            scores = scores.masked_fill(mask.unsqueeze(1) == 0, float("-inf"))
        weights = torch.softmax(scores, dim=-1)
        context = torch.matmul(self.dropout(weights), v).transpose(1, 2).contiguous().view(batch, -1, query.size(-1))
        return self.w_o(context), weights


class PositionwiseFeedForward(nn.Module):
    def __init__(self, d_model, d_ff, dropout=0.1):
        super().__init__()
        self.linear1, self.linear2 = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        return self.linear2(self.dropout(torch.relu(self.linear1(x))))


class EncoderLayer(nn.Module):
    def __init__(self, d_model, num_heads, d_ff, dropout=0.1):
        super().__init__()
        self.self_attention = MultiHeadAttention(d_model, num_heads, dropout)
        self.feed_forward = PositionwiseFeedForward(d_model, d_ff, dropout)
        self.norm1, self.norm2, self.dropout = nn.LayerNorm(d_model), nn.LayerNorm(d_model), nn.Dropout(dropout)

    def forward(self, x, mask=None):
        normed = self.norm1(x)
        attended, weights = self.self_attention(normed, normed, normed, mask)
        x = x + self.dropout(attended)
        return x + self.dropout(self.feed_forward(self.norm2(x))), weights


class DecoderLayer(nn.Module):
    def __init__(self, d_model, num_heads, d_ff, dropout=0.1):
        super().__init__()
        self.self_attention = MultiHeadAttention(d_model, num_heads, dropout)
        self.cross_attention = MultiHeadAttention(d_model, num_heads, dropout)
        self.feed_forward = PositionwiseFeedForward(d_model, d_ff, dropout)
        self.norm1, self.norm2, self.norm3 = (nn.LayerNorm(d_model) for _ in range(3))
        self.dropout = nn.Dropout(dropout)

    def forward(self, x, encoder_output, self_attention_mask=None, cross_attention_mask=None):
        normed = self.norm1(x)
        attended, self_weights = self.self_attention(normed, normed, normed, self_attention_mask)
        x = x + self.dropout(attended)
        attended, cross_weights = self.cross_attention(
            self.norm2(x), encoder_output, encoder_output, cross_attention_mask
        )
        x = x + self.dropout(attended)
        return x + self.dropout(self.feed_forward(self.norm3(x))), self_weights, cross_weights


class TransformerEncoder(nn.Module):
    def __init__(self, d_model, num_heads, d_ff, num_layers, dropout=0.1):
        super().__init__()
        self.layers = nn.ModuleList([EncoderLayer(d_model, num_heads, d_ff, dropout) for _ in range(num_layers)])
        self.final_norm = nn.LayerNorm(d_model)

    def forward(self, x, mask=None):
        for layer in self.layers:
            x, _ = layer(x, mask)
        return self.final_norm(x)


class TransformerDecoder(nn.Module):
    def __init__(self, d_model, num_heads, d_ff, num_layers, dropout=0.1):
        super().__init__()
        self.layers = nn.ModuleList([DecoderLayer(d_model, num_heads, d_ff, dropout) for _ in range(num_layers)])
        self.final_norm = nn.LayerNorm(d_model)

    def forward(self, x, memory, tgt_mask=None, memory_mask=None):
        for layer in self.layers:
            x, *_ = layer(x, memory, tgt_mask, memory_mask)
        return self.final_norm(x)


class Transformer(nn.Module):
    def __init__(
        self,
        src_vocab_size,
        tgt_vocab_size,
        d_model,
        num_heads,
        num_encoder_layers,
        num_decoder_layers,
        d_ff,
        max_seq_len,
        dropout=0.1,
        pad_token_id=0,
    ):
        super().__init__()
        self.src_embedding = TokenEmbedding(src_vocab_size, d_model, pad_token_id)
        self.tgt_embedding = TokenEmbedding(tgt_vocab_size, d_model, pad_token_id)
        self.position = SinusoidalPositionEncoding(d_model, max_seq_len)
        self.encoder = TransformerEncoder(d_model, num_heads, d_ff, num_encoder_layers, dropout)
        self.decoder = TransformerDecoder(d_model, num_heads, d_ff, num_decoder_layers, dropout)
        self.output_projection, self.dropout = nn.Linear(d_model, tgt_vocab_size), nn.Dropout(dropout)

    def forward(self, src, tgt, src_mask=None, tgt_mask=None, memory_mask=None):
        return self.decode_step(tgt, self.encode(src, src_mask), tgt_mask, memory_mask)

    def encode(self, src, src_mask=None):
        return self.encoder(self.dropout(self.position(self.src_embedding(src))), src_mask)

    def decode_step(self, tgt, memory, tgt_mask=None, memory_mask=None):
        x = self.dropout(self.position(self.tgt_embedding(tgt)))
        return self.output_projection(self.decoder(x, memory, tgt_mask, memory_mask))
