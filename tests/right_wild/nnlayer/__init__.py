import math

import torch
import torch.nn as nn
from torch.nn import TransformerEncoder, TransformerEncoderLayer


class CausalLayer(TransformerEncoderLayer):
    """PyTorch's encoder layer, made causal, batch first, pre-norm by default."""

    def __init__(self, d_model, nhead, dim_feedforward=2048, dropout=0.1, norm_first=True):
        super().__init__(d_model, nhead, dim_feedforward, dropout, activation='gelu', batch_first=True,
                         norm_first=norm_first)

    def forward(self, src, src_mask=None, src_key_padding_mask=None, is_causal=False):
        if src_mask is None:
            src_mask = torch.ones(src.size(1), src.size(1), dtype=torch.bool, device=src.device).triu(1)
        return super().forward(src, src_mask=src_mask, src_key_padding_mask=src_key_padding_mask)


class CausalAttention(nn.MultiheadAttention):
    def __init__(self, embed_dim, num_heads, dropout=0.0):
        super().__init__(embed_dim, num_heads, dropout=dropout, batch_first=True)

    def forward(self, x):
        mask = torch.ones(x.size(1), x.size(1), dtype=torch.bool, device=x.device).triu(1)
        return super().forward(x, x, x, attn_mask=mask, need_weights=False)[0]


class PositionalEncoding(nn.Module):

    def __init__(self, d_model, dropout=0.1, max_len=5000):
        super().__init__()
        self.dropout = nn.Dropout(p=dropout)
        position = torch.arange(max_len).unsqueeze(1)
        div_term = torch.exp(torch.arange(0, d_model, 2) * (-math.log(10000.0) / d_model))
        pe = torch.zeros(1, max_len, d_model)
        pe[0, :, 0::2] = torch.sin(position * div_term)
        pe[0, :, 1::2] = torch.cos(position * div_term)[:, :d_model // 2]
        self.register_buffer('pe', pe)

    def forward(self, x):
        """
        Arguments:
            x: Tensor, shape ``[batch_size, seq_len, embedding_dim]``
        """
        if x.size(1) > self.pe.size(1):
            raise ValueError('sequence is longer than max_len')
        return self.dropout(x + self.pe[:, :x.size(1)])


class FeedForward(nn.Sequential):
    def __init__(self, d_model, d_hid, dropout=0.1):
        super().__init__(nn.Linear(d_model, d_hid), nn.GELU(), nn.Dropout(dropout), nn.Linear(d_hid, d_model),
                         nn.Dropout(dropout))


class TransformerModel(nn.Module):

    def __init__(self, ntoken, d_model, nhead, d_hid, nlayers, dropout=0.5, max_len=5000):
        super().__init__()
        self.model_type = 'Transformer'
        self.pos_encoder = PositionalEncoding(d_model, dropout, max_len)
        self.transformer_encoder = TransformerEncoder(CausalLayer(d_model, nhead, d_hid, dropout), nlayers,
                                                      norm=nn.LayerNorm(d_model), enable_nested_tensor=False)
        self.embedding = nn.Embedding(ntoken, d_model)
        self.d_model = d_model
        self.linear = nn.Linear(d_model, ntoken)
        self.init_weights()

    def init_weights(self):
        initrange = 0.1
        self.embedding.weight.data.uniform_(-initrange, initrange)
        self.linear.bias.data.zero_()
        self.linear.weight.data.uniform_(-initrange, initrange)

    def forward(self, src, src_mask=None):
        src = self.embedding(src) * math.sqrt(self.d_model)
        src = self.pos_encoder(src)
        if src_mask is None:
            src_mask = nn.Transformer.generate_square_subsequent_mask(src.size(1), device=src.device, dtype=src.dtype)
        output = self.transformer_encoder(src, src_mask)
        return self.linear(output)
