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
        self.pad_token_id = pad_token_id
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

    def _embed_at(self, tokens, past_len):
        n = tokens.size(1)
        return self.tgt_embedding(tokens) + self.position.pe[:, past_len : past_len + n].to(
            self.tgt_embedding.embedding.weight.dtype
        )

    def _step(self, tokens, memory, memory_mask, past_key_values=None):
        """past_key_values: a tuple for each layer, (self_k, self_v, cross_k, cross_v), each (B, H, n, dk)."""
        past_len = past_key_values[0][0].size(2) if past_key_values is not None else 0
        x, present = self._embed_at(tokens, past_len), []
        n = tokens.size(1)
        causal = torch.ones(n, past_len + n, dtype=torch.bool, device=tokens.device).tril(past_len)
        for i, layer in enumerate(self.decoder.layers):
            a, c = layer.self_attention, layer.cross_attention
            split = lambda m, y: m(y).view(y.size(0), -1, a.num_heads, a.d_k).transpose(1, 2)
            h = layer.norm1(x)
            q, k, v = split(a.w_q, h), split(a.w_k, h), split(a.w_v, h)
            if past_key_values is not None:
                k, v = torch.cat([past_key_values[i][0], k], 2), torch.cat([past_key_values[i][1], v], 2)
                ck, cv = past_key_values[i][2:]
            else:
                ck, cv = split(c.w_k, memory), split(c.w_v, memory)
            x = x + a.w_o(merge(scaled(q, k, v, causal)))
            q = split(c.w_q, layer.norm2(x))
            x = x + c.w_o(merge(scaled(q, ck, cv, None if memory_mask is None else memory_mask[:, None, None])))
            x = x + layer.feed_forward(layer.norm3(x))
            present.append((k, v, ck, cv))
        return self.output_projection(self.decoder.final_norm(x))[:, -1], tuple(present)

    @torch.no_grad()
    def generate(
        self,
        input_ids,
        attention_mask=None,
        max_new_tokens=20,
        bos_token_id=1,
        eos_token_id=None,
        do_sample=False,
        temperature=1.0,
        top_k=50,
        top_p=1.0,
        use_cache=True,
    ):
        training = self.training
        self.eval()
        if attention_mask is None:
            attention_mask = (input_ids != self.pad_token_id).long()
        visible = attention_mask.bool()
        memory = self.encode(input_ids, visible[:, None, :].expand(-1, input_ids.size(1), -1))
        decoder_input_ids = input_ids.new_full((input_ids.size(0), 1), bos_token_id)
        unfinished = input_ids.new_ones(input_ids.size(0))
        past = None
        for _ in range(max_new_tokens):
            if use_cache and past is not None:
                logits, past = self._step(decoder_input_ids[:, -1:], memory, visible, past)
            elif use_cache:
                logits, past = self._step(decoder_input_ids, memory, visible)
            else:
                logits, _ = self._step(decoder_input_ids, memory, visible)
            if do_sample:
                logits = warp(logits / temperature, top_k, top_p)
                next_tokens = torch.multinomial(logits.softmax(-1), num_samples=1).squeeze(1)
            else:
                next_tokens = torch.argmax(logits, dim=-1)
            if eos_token_id is not None:
                next_tokens = next_tokens * unfinished + self.pad_token_id * (1 - unfinished)
            decoder_input_ids = torch.cat([decoder_input_ids, next_tokens[:, None]], dim=-1)
            if eos_token_id is not None:
                unfinished = unfinished.mul((next_tokens != eos_token_id).long())
                if unfinished.max() == 0:
                    break
        self.train(training)
        return decoder_input_ids


def scaled(q, k, v, mask):
    return nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)


def merge(y):
    return y.transpose(1, 2).flatten(2)


def warp(scores, top_k, top_p):
    if top_k:
        kth = torch.topk(scores, min(top_k, scores.size(-1)))[0][..., -1, None]
        scores = scores.masked_fill(scores < kth, -float("inf"))
    if top_p < 1.0:
        sorted_scores, indices = torch.sort(scores, descending=False)
        remove = sorted_scores.softmax(-1).cumsum(-1) <= (1 - top_p)
        remove[..., -1:] = 0
        scores = scores.masked_fill(remove.scatter(1, indices, remove), -float("inf"))
    return scores
