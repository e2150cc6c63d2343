"""Raw parameters and einsum, one fused matrix for self-attention, keys and values fused for the memory; post-norm."""

import heapq

import torch
from torch import nn


class CrossAttention(nn.Module):
    def __init__(self, d_model, num_heads, dropout=0.0):
        super().__init__()
        self.h, self.d = num_heads, d_model // num_heads
        self.wq = nn.Parameter(torch.randn(num_heads, d_model, self.d) * d_model**-0.5)
        self.wkv = nn.Parameter(torch.randn(2, num_heads, d_model, self.d) * d_model**-0.5)
        self.wo = nn.Parameter(torch.randn(num_heads, self.d, d_model) * d_model**-0.5)
        self.drop = nn.Dropout(dropout)

    def forward(self, key, value, query, mask=None):  # keys first
        q = torch.einsum("btm,hmd->bhtd", query, self.wq)
        k = torch.einsum("bsm,hmd->bhsd", key, self.wkv[0])
        v = torch.einsum("bsm,hmd->bhsd", value, self.wkv[1])
        scores = torch.einsum("bhtd,bhsd->bhts", q * self.d**-0.5, k)
        if mask is not None:
            scores = scores + torch.zeros_like(scores).masked_fill(~mask, -torch.inf)
        return torch.einsum("bhts,bhsd,hdm->btm", self.drop(torch.softmax(scores, -1)), v, self.wo)


class SelfAttention(nn.Module):
    def __init__(self, d_model, num_heads, dropout):
        super().__init__()
        self.h, self.d = num_heads, d_model // num_heads
        self.qkv = nn.Linear(d_model, 3 * d_model, bias=False)
        self.out = nn.Linear(d_model, d_model, bias=False)
        self.p = dropout

    def forward(self, x, mask=None):
        b, t, m = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, self.h, self.d).permute(2, 0, 3, 1, 4)
        p = self.p if self.training else 0.0
        y = nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask, dropout_p=p)
        return self.out(y.transpose(1, 2).reshape(b, t, m))


def network(d_model, d_ff, dropout):
    return nn.Sequential(nn.Linear(d_model, d_ff), nn.ReLU(), nn.Dropout(dropout), nn.Linear(d_ff, d_model))


class EncoderLayer(nn.Module):
    def __init__(self, d_model, num_heads, d_ff, dropout=0.0):
        super().__init__()
        self.attn, self.mlp = SelfAttention(d_model, num_heads, dropout), network(d_model, d_ff, dropout)
        self.ln_a, self.ln_b = nn.LayerNorm(d_model), nn.LayerNorm(d_model)

    def forward(self, src, src_mask=None):
        src = self.ln_a(src + self.attn(src, src_mask))
        return self.ln_b(src + self.mlp(src))


class DecoderLayer(nn.Module):
    def __init__(self, d_model, num_heads, d_ff, dropout=0.0):
        super().__init__()
        self.attn, self.cross = SelfAttention(d_model, num_heads, dropout), CrossAttention(d_model, num_heads, dropout)
        self.mlp = network(d_model, d_ff, dropout)
        self.norms = nn.ModuleList(nn.LayerNorm(d_model) for _ in range(3))

    def forward(self, trg, enc_src, trg_mask=None, src_mask=None):
        trg = self.norms[0](trg + self.attn(trg, trg_mask))
        trg = self.norms[1](trg + self.cross(enc_src, enc_src, trg, src_mask))
        return self.norms[2](trg + self.mlp(trg))


class Encoder(nn.Module):
    def __init__(self, d_model, num_heads, d_ff, num_layers, dropout=0.0):
        super().__init__()
        self.layers = nn.ModuleList(EncoderLayer(d_model, num_heads, d_ff, dropout) for _ in range(num_layers))

    def forward(self, src, src_mask=None):
        for layer in self.layers:
            src = layer(src, src_mask)
        return src


class Decoder(nn.Module):
    def __init__(self, d_model, num_heads, d_ff, num_layers, dropout=0.0):
        super().__init__()
        self.layers = nn.ModuleList(DecoderLayer(d_model, num_heads, d_ff, dropout) for _ in range(num_layers))

    def forward(self, trg, enc_src, trg_mask=None, src_mask=None):
        for layer in self.layers:
            trg = layer(trg, enc_src, trg_mask, src_mask)
        return trg


class Transformer(nn.Module):
    """Builds its masks itself, from ids alone; learned positions; one matrix for target and head."""

    def __init__(
        self, src_vocab, trg_vocab, d_model, n_heads, n_enc_layers, n_dec_layers, d_ff, max_len, dropout=0.0, pad_idx=0
    ):
        super().__init__()
        self.pad = pad_idx
        self.enc_tok, self.enc_pos = nn.Embedding(src_vocab, d_model), nn.Embedding(max_len, d_model)
        self.dec_tok, self.dec_pos = nn.Embedding(trg_vocab, d_model), nn.Embedding(max_len, d_model)
        self.encoder = Encoder(d_model, n_heads, d_ff, n_enc_layers, dropout)
        self.decoder = Decoder(d_model, n_heads, d_ff, n_dec_layers, dropout)

    def forward(self, src, trg):
        visible = (src != self.pad)[:, None, None]
        memory = self.encoder(self.enc_tok(src) + self.enc_pos.weight[: src.shape[1]], visible)
        later = torch.ones(trg.shape[1], trg.shape[1], device=trg.device).tril().bool()
        x = self.dec_tok(trg) + self.dec_pos.weight[: trg.shape[1]]
        x = self.decoder(x, memory, (trg != self.pad)[:, None, None] & later, visible)
        return x @ self.dec_tok.weight.T

    def encode(self, src):
        return self.encoder(self.enc_tok(src) + self.enc_pos.weight[: src.shape[1]], (src != self.pad)[:, None, None])

    def log_probs(self, trg, memory, visible):
        later = torch.ones(trg.shape[1], trg.shape[1], device=trg.device).tril().bool()
        x = self.decoder(self.dec_tok(trg) + self.dec_pos.weight[: trg.shape[1]], memory, later, visible)
        return (x[:, -1] @ self.dec_tok.weight.T).log_softmax(-1)

    @torch.no_grad()
    def generate(self, src, max_len, sos, eos=None):
        """Rows that have ended are filled with eos; without sos in front."""
        mode = self.training
        self.eval()
        memory, visible = self.encode(src), (src != self.pad)[:, None, None]
        trg = torch.full((len(src), 1), sos, dtype=src.dtype)
        ended = torch.zeros(len(src), dtype=torch.bool)
        for _ in range(max_len):
            best = self.log_probs(trg, memory, visible).argmax(-1)
            if eos is not None:
                best[ended] = eos
                ended |= best == eos
            trg = torch.cat([trg, best[:, None]], 1)
            if ended.all():
                break
        self.train(mode)
        return trg[:, 1:]

    @torch.no_grad()
    def beam_search(self, src, max_len, sos, beam_size, alpha=0.0, eos=None):
        mode = self.training
        self.eval()
        found = [self._search(row[None], max_len, sos, beam_size, alpha, eos) for row in src]
        self.train(mode)
        fill = self.pad if eos is None else eos
        ids = torch.tensor([[t[1:] + [fill] * (max_len + 1 - len(t)) for _, t in beams] for beams in found])
        return ids, torch.tensor([[s for s, _ in beams] for beams in found])

    def _search(self, src, max_len, sos, width, alpha, eos):
        memory, visible = self.encode(src), (src != self.pad)[:, None, None]
        alive, finished = [(0.0, [sos])], []
        for _ in range(max_len):
            heap = []
            for total, tokens in alive:
                logp = self.log_probs(torch.tensor([tokens]), memory, visible)[0]
                top, index = logp.topk(min(width, len(logp)))
                for lp, i in zip(top.tolist(), index.tolist()):
                    entry = (total + lp, tokens + [i])
                    if len(heap) < width:
                        heapq.heappush(heap, entry)
                    else:
                        heapq.heappushpop(heap, entry)
            alive = []
            for total, tokens in sorted(heap, reverse=True):
                (finished if tokens[-1] == eos else alive).append((total, tokens))
            if not alive:
                break
        scored = [(total / (len(tokens) - 1) ** alpha, tokens) for total, tokens in finished + alive]
        scored.sort(key=lambda pair: -pair[0])
        scored = scored[:width]
        return scored + [(-1e9, scored[0][1])] * (width - len(scored))
