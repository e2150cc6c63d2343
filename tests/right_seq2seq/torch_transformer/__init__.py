import torch
from torch import nn


class TransformerEncoderLayer(nn.TransformerEncoderLayer):
    def __init__(self, d_model, nhead, dim_feedforward, dropout=0.0):
        super().__init__(d_model, nhead, dim_feedforward, dropout, activation="gelu", batch_first=True, norm_first=True)

    def forward(self, src, src_mask=None, src_key_padding_mask=None, is_causal=False):
        return super().forward(src, src_mask, src_key_padding_mask, is_causal)


class TransformerDecoderLayer(nn.TransformerDecoderLayer):
    def __init__(self, d_model, nhead, dim_feedforward, dropout=0.0):
        super().__init__(d_model, nhead, dim_feedforward, dropout, activation="gelu", batch_first=True, norm_first=True)

    def forward(
        self,
        tgt,
        memory,
        tgt_mask=None,
        memory_mask=None,
        tgt_key_padding_mask=None,
        memory_key_padding_mask=None,
        tgt_is_causal=False,
        memory_is_causal=False,
    ):
        return super().forward(tgt, memory, tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask)


class CrossAttention(nn.MultiheadAttention):
    def __init__(self, d_model, num_heads, dropout=0.0):
        super().__init__(d_model, num_heads, dropout, batch_first=True)

    def forward(self, query, key, value, key_padding_mask=None, need_weights=False, attn_mask=None):
        return super().forward(query, key, value, key_padding_mask, need_weights, attn_mask)


class Seq2SeqTransformer(nn.Module):
    def __init__(
        self,
        src_vocab_size,
        tgt_vocab_size,
        d_model,
        nhead,
        num_encoder_layers,
        num_decoder_layers,
        dim_feedforward,
        max_len,
        dropout=0.0,
        pad_id=0,
    ):
        super().__init__()
        self.t = nn.Transformer(
            d_model,
            nhead,
            num_encoder_layers,
            num_decoder_layers,
            dim_feedforward,
            dropout,
            activation="gelu",
            batch_first=True,
            norm_first=True,
        )
        self.src_tok = nn.Embedding(src_vocab_size, d_model)
        self.tgt_tok = nn.Embedding(tgt_vocab_size, d_model)
        self.generator = nn.Linear(d_model, tgt_vocab_size)
        p = torch.arange(max_len)[:, None] / 10000 ** (torch.arange(0, d_model, 2, dtype=torch.float64) / d_model)
        pe = torch.zeros(max_len, d_model, dtype=torch.float64)
        pe[:, 0::2] = p.sin()
        pe[:, 1::2] = p.cos()
        self.register_buffer("pe", pe)

    def forward(
        self,
        src,
        tgt,
        src_mask=None,
        tgt_mask=None,
        src_key_padding_mask=None,
        tgt_key_padding_mask=None,
        memory_key_padding_mask=None,
    ):
        s = self.src_tok(src) + self.pe[: src.shape[1]]
        t = self.tgt_tok(tgt) + self.pe[: tgt.shape[1]]
        return self.generator(
            self.t(s, t, src_mask, tgt_mask, None, src_key_padding_mask, tgt_key_padding_mask, memory_key_padding_mask)
        )

    def encode(self, src, src_mask=None, src_key_padding_mask=None):
        return self.t.encoder(self.src_tok(src) + self.pe[: src.shape[1]], src_mask, src_key_padding_mask)
