"""nn.Transformer with batch_first, masks built from the pad id inside of the model, learned positions."""

from dataclasses import dataclass

import torch
import torch.nn as nn


@dataclass
class Seq2SeqConfig:
    src_vocab: int
    tgt_vocab: int
    hidden: int = 256
    heads: int = 8
    enc_layers: int = 3
    dec_layers: int = 3
    ffn: int = 512
    max_len: int = 128
    dropout: float = 0.1
    pad_idx: int = 0
    bos_idx: int = 1
    eos_idx: int = 2


class PositionEmbedding(nn.Module):
    def __init__(self, max_len, hidden):
        super().__init__()
        self.table = nn.Embedding(max_len, hidden)
        self.max_len = max_len

    def forward(self, x):
        length = x.size(1)
        if length > self.max_len:
            raise ValueError(f"sequence of {length}, the model was built for {self.max_len}")
        return x + self.table(torch.arange(length, device=x.device))


class TranslationTransformer(nn.Module):
    def __init__(self, config: Seq2SeqConfig):
        super().__init__()
        self.config = config
        self.src_embed = nn.Embedding(config.src_vocab, config.hidden, padding_idx=config.pad_idx)
        self.tgt_embed = nn.Embedding(config.tgt_vocab, config.hidden, padding_idx=config.pad_idx)
        self.src_pos = PositionEmbedding(config.max_len, config.hidden)
        self.tgt_pos = PositionEmbedding(config.max_len, config.hidden)
        self.drop = nn.Dropout(config.dropout)
        self.core = nn.Transformer(
            config.hidden,
            config.heads,
            config.enc_layers,
            config.dec_layers,
            config.ffn,
            config.dropout,
            activation="gelu",
            batch_first=True,
            norm_first=True,
        )
        self.lm_head = nn.Linear(config.hidden, config.tgt_vocab)

    def encode(self, src):
        """src (B, S) -> memory (B, S, D), padding (B, S) with True for padding"""
        padding = src == self.config.pad_idx
        x = self.drop(self.src_pos(self.src_embed(src)))
        return self.core.encoder(x, src_key_padding_mask=padding), padding

    def decode(self, tgt, memory, memory_padding):
        length = tgt.size(1)
        future = torch.ones(length, length, dtype=torch.bool, device=tgt.device).triu(diagonal=1)
        x = self.drop(self.tgt_pos(self.tgt_embed(tgt)))
        x = self.core.decoder(
            x,
            memory,
            tgt_mask=future,
            tgt_key_padding_mask=tgt == self.config.pad_idx,
            memory_key_padding_mask=memory_padding,
        )
        return self.lm_head(x)

    def forward(self, src, tgt):
        return self.decode(tgt, *self.encode(src))

    @torch.inference_mode()
    def translate(self, src, max_new_tokens=None):
        """Greedy: (B, n) new ids; rows that have ended are padded."""
        was_training, cfg = self.training, self.config
        self.eval()
        memory, padding = self.encode(src)
        ids = torch.full((src.size(0), 1), cfg.bos_idx, dtype=torch.long, device=src.device)
        ended = torch.zeros(src.size(0), dtype=torch.bool, device=src.device)
        for _ in range(cfg.max_len - 1 if max_new_tokens is None else max_new_tokens):
            best = self.decode(ids, memory, padding)[:, -1].argmax(-1)
            best = best.masked_fill(ended, cfg.pad_idx)
            ids = torch.cat((ids, best.unsqueeze(1)), dim=1)
            ended = ended | (best == cfg.eos_idx)
            if ended.all():
                break
        self.train(was_training)
        return ids[:, 1:]


def seq2seq_loss(model, src, tgt):
    """tgt (B, T) begins with bos and ends with eos; the model reads all but the last and predicts all but the first."""
    logits = model(src, tgt[:, :-1])
    return nn.functional.cross_entropy(
        logits.flatten(0, 1), tgt[:, 1:].flatten(), ignore_index=model.config.pad_idx
    )
