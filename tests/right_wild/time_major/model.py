import math

import torch
import torch.nn as nn

from .layers import Attention, DecoderLayer, EncoderLayer, FFN


class PositionalEncoding(nn.Module):
    def __init__(self, emb_size, dropout, maxlen=2000):
        super().__init__()
        den = torch.exp(-torch.arange(0, emb_size, 2) * math.log(10000) / emb_size)
        pos = torch.arange(0, maxlen).reshape(maxlen, 1)
        pos_embedding = torch.zeros((maxlen, emb_size))
        pos_embedding[:, 0::2] = torch.sin(pos * den)
        pos_embedding[:, 1::2] = torch.cos(pos * den)
        pos_embedding = pos_embedding.unsqueeze(-2)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer('pos_embedding', pos_embedding)

    def forward(self, token_embedding):
        return self.dropout(token_embedding + self.pos_embedding[:token_embedding.size(0), :])


class TokenEmbedding(nn.Module):
    def __init__(self, vocab_size, emb_size):
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, emb_size)
        self.emb_size = emb_size

    def forward(self, tokens):
        return self.embedding(tokens.long()) * math.sqrt(self.emb_size)


def generate_square_subsequent_mask(sz, device=None):
    return torch.triu(torch.full((sz, sz), float('-inf'), device=device), diagonal=1)


class Seq2SeqTransformer(nn.Module):
    """src (S, B), tgt (T, B) -> logits (T, B, V)"""

    def __init__(self, num_encoder_layers, num_decoder_layers, emb_size, nhead, src_vocab_size, tgt_vocab_size,
                 dim_feedforward=512, dropout=0.1, pad_idx=1):
        super().__init__()
        self.pad_idx = pad_idx
        self.src_tok_emb = TokenEmbedding(src_vocab_size, emb_size)
        self.tgt_tok_emb = TokenEmbedding(tgt_vocab_size, emb_size)
        self.positional_encoding = PositionalEncoding(emb_size, dropout)
        self.encoder = nn.ModuleList([EncoderLayer(emb_size, nhead, dim_feedforward, dropout) for _ in range(num_encoder_layers)])
        self.decoder = nn.ModuleList([DecoderLayer(emb_size, nhead, dim_feedforward, dropout) for _ in range(num_decoder_layers)])
        self.generator = nn.Linear(emb_size, tgt_vocab_size)

    def encode(self, src):
        pad = (src == self.pad_idx).transpose(0, 1)
        x = self.positional_encoding(self.src_tok_emb(src))
        for layer in self.encoder:
            x = layer(x, pad)
        return x

    def decode(self, tgt, memory, src):
        mask = generate_square_subsequent_mask(tgt.size(0), tgt.device).to(memory.dtype)
        x = self.positional_encoding(self.tgt_tok_emb(tgt))
        for layer in self.decoder:
            x = layer(x, memory, mask, (tgt == self.pad_idx).transpose(0, 1), (src == self.pad_idx).transpose(0, 1))
        return x

    def forward(self, src, tgt):
        return self.generator(self.decode(tgt, self.encode(src), src))
