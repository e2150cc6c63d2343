"""True hides: padding (B, S) and what comes later (T, T) are apart; a single vocabulary and a single depth."""

import math

import torch
from torch import nn


class MultiHeadAttention(nn.Module):
    def __init__(self, embed_dim, heads, dropout=0.0):
        super().__init__()
        self.heads = heads
        self.q_proj, self.k_proj, self.v_proj = (nn.Linear(embed_dim, embed_dim) for _ in range(3))
        self.out_proj = nn.Linear(embed_dim, embed_dim)
        self.dropout = nn.Dropout(dropout)

    def forward(self, q, k, v, pad=None, look_ahead=None):
        b, t, m = q.shape
        q, k, v = (
            proj(x).reshape(b, -1, self.heads, m // self.heads).permute(0, 2, 1, 3)
            for proj, x in ((self.q_proj, q), (self.k_proj, k), (self.v_proj, v))
        )
        scores = q @ k.mT / math.sqrt(m // self.heads)
        if pad is not None:
            scores = scores.masked_fill(pad[:, None, None, :], float("-inf"))
        if look_ahead is not None:
            scores = scores + look_ahead
        y = self.dropout(scores.softmax(-1)) @ v
        return self.out_proj(y.permute(0, 2, 1, 3).flatten(2))


class PositionwiseFeedForward(nn.Module):
    def __init__(self, embed_dim, hidden, dropout=0.0):
        super().__init__()
        self.fc1, self.fc2, self.dropout = (
            nn.Linear(embed_dim, hidden),
            nn.Linear(hidden, embed_dim),
            nn.Dropout(dropout),
        )

    def forward(self, x):
        return self.fc2(self.dropout(nn.functional.gelu(self.fc1(x))))


class EncoderLayer(nn.Module):
    def __init__(self, embed_dim, heads, hidden, dropout=0.0):
        super().__init__()
        self.self_attn = MultiHeadAttention(embed_dim, heads, dropout)
        self.ff = PositionwiseFeedForward(embed_dim, hidden, dropout)
        self.norm_1, self.norm_2 = nn.LayerNorm(embed_dim), nn.LayerNorm(embed_dim)

    def forward(self, x, src_pad=None):
        y = self.norm_1(x)
        x = x + self.self_attn(y, y, y, src_pad)
        return x + self.ff(self.norm_2(x))


class DecoderLayer(nn.Module):
    def __init__(self, embed_dim, heads, hidden, dropout=0.0):
        super().__init__()
        self.self_attn = MultiHeadAttention(embed_dim, heads, dropout)
        self.enc_attn = MultiHeadAttention(embed_dim, heads, dropout)
        self.ff = PositionwiseFeedForward(embed_dim, hidden, dropout)
        self.norm_1, self.norm_2, self.norm_3 = (nn.LayerNorm(embed_dim) for _ in range(3))

    def forward(self, memory, x, src_pad=None, tgt_pad=None, look_ahead=None):  # the memory first
        y = self.norm_1(x)
        x = x + self.self_attn(y, y, y, tgt_pad, look_ahead)
        x = x + self.enc_attn(self.norm_2(x), memory, memory, src_pad)
        return x + self.ff(self.norm_3(x))


class Seq2Seq(nn.Module):
    def __init__(self, vocab_size, embed_dim, heads, hidden, num_layers, max_len, dropout=0.0, pad=0):
        super().__init__()
        self.pad, self.embed_dim = pad, embed_dim
        self.embedding = nn.Embedding(vocab_size, embed_dim)
        self.encoder = nn.ModuleList([EncoderLayer(embed_dim, heads, hidden, dropout) for _ in range(num_layers)])
        self.encoder_norm = nn.LayerNorm(embed_dim)
        self.decoder = nn.ModuleList([DecoderLayer(embed_dim, heads, hidden, dropout) for _ in range(num_layers)])
        self.decoder_norm = nn.LayerNorm(embed_dim)
        self.lm_head = nn.Linear(embed_dim, vocab_size, bias=False)
        self.lm_head.weight = self.embedding.weight
        angles = torch.arange(max_len, dtype=torch.float64)[:, None] * 1e4 ** -(
            torch.arange(0, embed_dim, 2, dtype=torch.float64) / embed_dim
        )
        table = torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)[:, :embed_dim]
        self.register_buffer("table", table, persistent=False)

    def embed(self, ids):
        return self.embedding(ids) * math.sqrt(self.embed_dim) + self.table[: ids.shape[1]].to(self.embedding.weight)

    def encode(self, src, src_pad=None):
        x = self.embed(src)
        for layer in self.encoder:
            x = layer(x, src_pad)
        return self.encoder_norm(x)

    def decode_step(self, tgt, memory, src_pad=None, tgt_pad=None, look_ahead=None):
        x = self.embed(tgt)
        for layer in self.decoder:
            x = layer(memory, x, src_pad, tgt_pad, look_ahead)
        return self.lm_head(self.decoder_norm(x))

    def forward(self, src, tgt, src_pad=None, tgt_pad=None, look_ahead=None):
        return {"logits": self.decode_step(tgt, self.encode(src, src_pad), src_pad, tgt_pad, look_ahead)}

    @torch.no_grad()
    def translate(self, src, max_length, start, end=None, src_pad=None, temperature=0.0, top_k=None):
        was = self.training
        self.eval()
        memory = self.encode(src, src_pad)
        tgt = torch.full((src.shape[0], 1), start)
        ended = torch.zeros(src.shape[0], dtype=torch.bool)
        while tgt.shape[1] < max_length and not ended.all():
            n = tgt.shape[1]
            ahead = torch.zeros(n, n).masked_fill(torch.ones(n, n).triu(1).bool(), float("-inf"))
            logits = self.decode_step(tgt, memory, src_pad, None, ahead)[:, -1]
            if temperature:
                if top_k is not None:
                    values, ids = (logits / temperature).topk(min(top_k, logits.shape[-1]))
                    new = ids.gather(1, values.softmax(-1).multinomial(1))[:, 0]
                else:
                    new = torch.distributions.Categorical(logits=logits / temperature).sample()
            else:
                new = logits.argmax(-1)
            new = new.masked_fill(ended, self.pad)
            if end is not None:
                ended |= new == end
            tgt = torch.cat((tgt, new[:, None]), 1)
        self.train(was)
        return {"sequences": tgt}

    @torch.no_grad()
    def beams(self, src, max_length, start, width, end=None, alpha=0.0, src_pad=None):
        was = self.training
        self.eval()
        sequences, scores = [], []
        for i in range(src.shape[0]):
            pad = None if src_pad is None else src_pad[i : i + 1]
            memory = self.encode(src[i : i + 1], pad)
            hyps = [([start], 0.0)]
            for _ in range(max_length):
                candidates = []
                for seq, score in hyps:
                    if end is not None and seq[-1] == end:
                        candidates.append((seq, score))
                        continue
                    n = len(seq)
                    ahead = torch.zeros(n, n).masked_fill(torch.ones(n, n).triu(1).bool(), float("-inf"))
                    out = self.decode_step(torch.tensor([seq]), memory, pad, None, ahead)[0, -1].log_softmax(-1)
                    candidates += [(seq + [j], score + out[j].item()) for j in range(len(out))]
                hyps = sorted(candidates, key=lambda h: h[1] / max(1, len(h[0]) - 1) ** alpha, reverse=True)[:width]
            hyps += [([start] + [self.pad] * max_length, -math.inf)] * (width - len(hyps))
            sequences.append([seq[1:] + [self.pad] * (max_length + 1 - len(seq)) for seq, _ in hyps])
            scores.append([score / max(1, len(seq) - 1) ** alpha for seq, score in hyps])
        self.train(was)
        return {"sequences": torch.tensor(sequences), "scores": torch.tensor(scores)}
