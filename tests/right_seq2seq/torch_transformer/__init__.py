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

    def decode_step(self, tgt, memory, memory_key_padding_mask=None):
        n = tgt.shape[1]
        later = torch.triu(torch.ones(n, n, dtype=torch.bool, device=tgt.device), 1)
        y = self.t.decoder(
            self.tgt_tok(tgt) + self.pe[:n], memory, tgt_mask=later, memory_key_padding_mask=memory_key_padding_mask
        )
        return self.generator(y[:, -1])

    @torch.inference_mode()
    def generate(
        self, src, sos_idx, eos_idx=None, max_len=20, temperature=1.0, top_k=0, top_p=1.0, src_key_padding_mask=None
    ):
        mode = self.training
        self.eval()
        try:
            memory = self.encode(src, src_key_padding_mask=src_key_padding_mask)
            out = torch.full((src.shape[0], 1), sos_idx, dtype=src.dtype, device=src.device)
            done = torch.zeros(src.shape[0], dtype=torch.bool, device=src.device)
            for _ in range(max_len):
                logits = self.decode_step(out, memory, src_key_padding_mask)
                token = sample(logits, temperature, top_k, top_p)
                if eos_idx is not None:
                    token = torch.where(done, torch.full_like(token, eos_idx), token)
                    done = done | (token == eos_idx)
                out = torch.cat([out, token[:, None]], dim=1)
                if eos_idx is not None and done.all():
                    break
            return out
        finally:
            self.train(mode)


def sample(logits, temperature, top_k, top_p):
    if temperature == 0:
        return logits.argmax(-1)
    logits = logits / temperature
    if top_k > 0:
        kth = logits.topk(min(top_k, logits.shape[-1])).values[:, -1:]
        logits = logits.masked_fill(logits < kth, -float("inf"))
    if top_p < 1.0:
        ordered, index = logits.sort(descending=True)
        cumulative = ordered.softmax(-1).cumsum(-1)
        remove = cumulative > top_p
        remove[:, 1:] = remove[:, :-1].clone()
        remove[:, 0] = False
        logits = logits.masked_fill(remove.scatter(1, index, remove), -float("inf"))
    return torch.multinomial(logits.softmax(-1), 1).squeeze(1)
