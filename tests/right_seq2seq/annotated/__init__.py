import copy, math, torch
from torch import nn
import torch.nn.functional as F


def clones(m, n):
    return nn.ModuleList([copy.deepcopy(m) for _ in range(n)])


class LayerNorm(nn.Module):
    def __init__(self, features, eps=1e-6):
        super().__init__()
        self.a_2 = nn.Parameter(torch.ones(features))
        self.b_2 = nn.Parameter(torch.zeros(features))
        self.eps = eps

    def forward(self, x):
        return self.a_2 * (x - x.mean(-1, keepdim=True)) / (x.std(-1, keepdim=True) + self.eps) + self.b_2


class SublayerConnection(nn.Module):
    def __init__(self, size, dropout):
        super().__init__()
        self.norm = LayerNorm(size)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x, sublayer):
        return x + self.dropout(sublayer(self.norm(x)))


def attention(query, key, value, mask=None, dropout=None):
    d_k = query.size(-1)
    scores = torch.matmul(query, key.transpose(-2, -1)) / math.sqrt(d_k)
    if mask is not None:
        scores = scores.masked_fill(mask == 0, -1e9)
    p = scores.softmax(-1)
    if dropout is not None:
        p = dropout(p)
    return p @ value, p


class MultiHeadedAttention(nn.Module):
    def __init__(self, h, d_model, dropout=0.1):
        super().__init__()
        assert d_model % h == 0
        self.d_k = d_model // h
        self.h = h
        self.linears = clones(nn.Linear(d_model, d_model), 4)
        self.attn = None
        self.dropout = nn.Dropout(p=dropout)

    def forward(self, query, key, value, mask=None):
        if mask is not None:
            mask = mask.unsqueeze(1)
        n = query.size(0)
        query, key, value = [
            l(x).view(n, -1, self.h, self.d_k).transpose(1, 2) for l, x in zip(self.linears, (query, key, value))
        ]
        x, self.attn = attention(query, key, value, mask=mask, dropout=self.dropout)
        return self.linears[-1](x.transpose(1, 2).contiguous().view(n, -1, self.h * self.d_k))


class PositionwiseFeedForward(nn.Module):
    def __init__(self, d_model, d_ff, dropout=0.1):
        super().__init__()
        self.w_1 = nn.Linear(d_model, d_ff)
        self.w_2 = nn.Linear(d_ff, d_model)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        return self.w_2(self.dropout(self.w_1(x).relu()))


class EncoderLayer(nn.Module):
    def __init__(self, d_model, h, d_ff, dropout=0.0):
        super().__init__()
        self.self_attn = MultiHeadedAttention(h, d_model, dropout)
        self.feed_forward = PositionwiseFeedForward(d_model, d_ff, dropout)
        self.sublayer = clones(SublayerConnection(d_model, dropout), 2)
        self.size = d_model

    def forward(self, x, mask):
        x = self.sublayer[0](x, lambda x: self.self_attn(x, x, x, mask))
        return self.sublayer[1](x, self.feed_forward)


class Encoder(nn.Module):
    def __init__(self, d_model, h, d_ff, num_layers, dropout=0.0):
        super().__init__()
        self.layers = clones(EncoderLayer(d_model, h, d_ff, dropout), num_layers)
        self.norm = LayerNorm(d_model)

    def forward(self, x, mask):
        for l in self.layers:
            x = l(x, mask)
        return self.norm(x)


class DecoderLayer(nn.Module):
    def __init__(self, d_model, h, d_ff, dropout=0.0):
        super().__init__()
        self.self_attn = MultiHeadedAttention(h, d_model, dropout)
        self.src_attn = MultiHeadedAttention(h, d_model, dropout)
        self.feed_forward = PositionwiseFeedForward(d_model, d_ff, dropout)
        self.sublayer = clones(SublayerConnection(d_model, dropout), 3)

    def forward(self, x, memory, src_mask, tgt_mask):
        m = memory
        x = self.sublayer[0](x, lambda x: self.self_attn(x, x, x, tgt_mask))
        x = self.sublayer[1](x, lambda x: self.src_attn(x, m, m, src_mask))
        return self.sublayer[2](x, self.feed_forward)


class Decoder(nn.Module):
    def __init__(self, d_model, h, d_ff, num_layers, dropout=0.0):
        super().__init__()
        self.layers = clones(DecoderLayer(d_model, h, d_ff, dropout), num_layers)
        self.norm = LayerNorm(d_model)

    def forward(self, x, memory, src_mask, tgt_mask):
        for l in self.layers:
            x = l(x, memory, src_mask, tgt_mask)
        return self.norm(x)


class Embeddings(nn.Module):
    def __init__(self, d_model, vocab):
        super().__init__()
        self.lut = nn.Embedding(vocab, d_model)
        self.d_model = d_model

    def forward(self, x):
        return self.lut(x) * math.sqrt(self.d_model)


class PositionalEncoding(nn.Module):
    def __init__(self, d_model, dropout, max_len=5000):
        super().__init__()
        self.dropout = nn.Dropout(p=dropout)
        pe = torch.zeros(max_len, d_model)
        position = torch.arange(0, max_len).unsqueeze(1)
        div = torch.exp(torch.arange(0, d_model, 2) * -(math.log(10000.0) / d_model))
        pe[:, 0::2] = torch.sin(position * div)
        pe[:, 1::2] = torch.cos(position * div)
        self.register_buffer("pe", pe.unsqueeze(0))

    def forward(self, x):
        return self.dropout(x + self.pe[:, : x.size(1)])


class Generator(nn.Module):
    def __init__(self, d_model, vocab):
        super().__init__()
        self.proj = nn.Linear(d_model, vocab)

    def forward(self, x):
        return self.proj(x)


class EncoderDecoder(nn.Module):
    def __init__(
        self, src_vocab, tgt_vocab, d_model, h, d_ff, num_encoder_layers, num_decoder_layers, max_len, dropout=0.0
    ):
        super().__init__()
        self.encoder = Encoder(d_model, h, d_ff, num_encoder_layers, dropout)
        self.decoder = Decoder(d_model, h, d_ff, num_decoder_layers, dropout)
        self.src_embed = nn.Sequential(Embeddings(d_model, src_vocab), PositionalEncoding(d_model, dropout, max_len))
        self.tgt_embed = nn.Sequential(Embeddings(d_model, tgt_vocab), PositionalEncoding(d_model, dropout, max_len))
        self.generator = Generator(d_model, tgt_vocab)

    def forward(self, src, tgt, src_mask, tgt_mask):
        return self.decode(self.encode(src, src_mask), src_mask, tgt, tgt_mask)

    def encode(self, src, src_mask):
        return self.encoder(self.src_embed(src), src_mask)

    def decode(self, memory, src_mask, tgt, tgt_mask):
        return self.generator(self.decoder(self.tgt_embed(tgt), memory, src_mask, tgt_mask))


def subsequent_mask(size):
    return torch.triu(torch.ones((1, size, size)), diagonal=1).type(torch.uint8) == 0


@torch.no_grad()
def greedy_decode(model, src, src_mask, max_len, start_symbol):
    was_training = model.training
    model.eval()
    memory = model.encode(src, src_mask)
    ys = torch.zeros(src.size(0), 1).fill_(start_symbol).type_as(src.data)
    for i in range(max_len - 1):
        prob = model.decode(memory, src_mask, ys, subsequent_mask(ys.size(1)).type_as(src.data))
        _, next_word = torch.max(prob[:, -1], dim=1)
        ys = torch.cat([ys, next_word.unsqueeze(1).type_as(src.data)], dim=1)
    model.train(was_training)
    return ys


@torch.no_grad()
def beam_search(model, src, src_mask, max_len, bos, k, alpha=0.0, eos=None):
    """All sources at a time; finished beams go on with eos at no cost."""
    mode = model.training
    model.eval()
    b = src.size(0)
    memory = model.encode(src, src_mask)
    memory, src_mask = memory.repeat_interleave(k, 0), src_mask.repeat_interleave(k, 0)
    ids = torch.full((b * k, 1), bos, dtype=torch.long)
    scores = torch.full((b, k), -1e9)
    scores[:, 0] = 0.0
    lengths = torch.zeros(b, k)
    done = torch.zeros(b, k, dtype=torch.bool)
    for _ in range(max_len):
        logp = F.log_softmax(model.decode(memory, src_mask, ids, subsequent_mask(ids.size(1)))[:, -1], -1)
        v = logp.size(-1)
        logp = logp.view(b, k, v)
        if eos is not None:
            frozen = torch.full((v,), -float("inf"))
            frozen[eos] = 0.0
            logp = torch.where(done[:, :, None], frozen, logp)
        totals = scores[:, :, None] + logp
        new_lengths = lengths + (~done).float()
        ranked = (totals / new_lengths.clamp(min=1)[:, :, None] ** alpha).view(b, -1)
        _, index = ranked.topk(k)
        parent, token = index // v, index % v
        scores = totals.view(b, -1).gather(1, index)
        lengths, done = new_lengths.gather(1, parent), done.gather(1, parent)
        rows = (parent + torch.arange(b)[:, None] * k).view(-1)
        ids = torch.cat([ids[rows], token.view(-1, 1)], 1)
        if eos is not None:
            done = done | (token == eos)
            if done.all():
                break
    model.train(mode)
    final, order = (scores / lengths.clamp(min=1) ** alpha).sort(descending=True)
    ids = ids.view(b, k, -1).gather(1, order[:, :, None].expand(-1, -1, ids.size(1)))
    return ids, final
