"""Sequence-first encoder-decoder; padding is found from the padding index, and handed on as encoder_padding_mask."""

import math
from typing import Dict, List, Optional

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class MultiheadAttention(nn.Module):
    """Inputs are Time x Batch x Channel."""

    def __init__(self, embed_dim, num_heads, dropout=0.0):
        super().__init__()
        self.embed_dim = embed_dim
        self.num_heads = num_heads
        self.dropout = dropout
        self.head_dim = embed_dim // num_heads
        if self.head_dim * num_heads != embed_dim:
            raise ValueError("embed_dim must be divisible by num_heads")
        self.scaling = self.head_dim**-0.5
        self.q_proj = nn.Linear(embed_dim, embed_dim)
        self.k_proj = nn.Linear(embed_dim, embed_dim)
        self.v_proj = nn.Linear(embed_dim, embed_dim)
        self.out_proj = nn.Linear(embed_dim, embed_dim)
        self.reset_parameters()

    def reset_parameters(self):
        for proj in (self.q_proj, self.k_proj, self.v_proj):
            nn.init.xavier_uniform_(proj.weight, gain=1 / math.sqrt(2))
            nn.init.zeros_(proj.bias)
        nn.init.xavier_uniform_(self.out_proj.weight)
        nn.init.zeros_(self.out_proj.bias)

    def forward(self, query, key, value, key_padding_mask: Optional[Tensor] = None, attn_mask: Optional[Tensor] = None):
        """key_padding_mask: (B, S), True for padding; attn_mask: (T, S), added to the scores."""
        tgt_len, bsz, embed_dim = query.size()
        src_len = key.size(0)
        q = self.q_proj(query) * self.scaling
        k = self.k_proj(key)
        v = self.v_proj(value)
        q = q.contiguous().view(tgt_len, bsz * self.num_heads, self.head_dim).transpose(0, 1)
        k = k.contiguous().view(src_len, bsz * self.num_heads, self.head_dim).transpose(0, 1)
        v = v.contiguous().view(src_len, bsz * self.num_heads, self.head_dim).transpose(0, 1)
        attn_weights = torch.bmm(q, k.transpose(1, 2))
        if attn_mask is not None:
            attn_weights = attn_weights + attn_mask.to(attn_weights.dtype).unsqueeze(0)
        if key_padding_mask is not None:
            attn_weights = attn_weights.view(bsz, self.num_heads, tgt_len, src_len)
            attn_weights = attn_weights.masked_fill(key_padding_mask[:, None, None, :], float("-inf"))
            attn_weights = attn_weights.view(bsz * self.num_heads, tgt_len, src_len)
        attn_weights = F.softmax(attn_weights, dim=-1)
        attn_probs = F.dropout(attn_weights, p=self.dropout, training=self.training)
        attn = torch.bmm(attn_probs, v)
        attn = attn.transpose(0, 1).contiguous().view(tgt_len, bsz, embed_dim)
        return self.out_proj(attn), attn_weights.view(bsz, self.num_heads, tgt_len, src_len)


class TransformerEncoderLayer(nn.Module):
    def __init__(self, embed_dim, ffn_embed_dim, attention_heads, dropout=0.0, normalize_before=False):
        super().__init__()
        self.normalize_before = normalize_before
        self.self_attn = MultiheadAttention(embed_dim, attention_heads, dropout)
        self.self_attn_layer_norm = nn.LayerNorm(embed_dim)
        self.dropout = nn.Dropout(dropout)
        self.fc1 = nn.Linear(embed_dim, ffn_embed_dim)
        self.fc2 = nn.Linear(ffn_embed_dim, embed_dim)
        self.final_layer_norm = nn.LayerNorm(embed_dim)

    def forward(self, x, encoder_padding_mask=None):
        residual = x
        if self.normalize_before:
            x = self.self_attn_layer_norm(x)
        x, _ = self.self_attn(x, x, x, key_padding_mask=encoder_padding_mask)
        x = residual + self.dropout(x)
        if not self.normalize_before:
            x = self.self_attn_layer_norm(x)
        residual = x
        if self.normalize_before:
            x = self.final_layer_norm(x)
        x = self.fc2(F.relu(self.fc1(x)))
        x = residual + self.dropout(x)
        if not self.normalize_before:
            x = self.final_layer_norm(x)
        return x


class TransformerDecoderLayer(nn.Module):
    def __init__(self, embed_dim, ffn_embed_dim, attention_heads, dropout=0.0, normalize_before=False):
        super().__init__()
        self.normalize_before = normalize_before
        self.self_attn = MultiheadAttention(embed_dim, attention_heads, dropout)
        self.self_attn_layer_norm = nn.LayerNorm(embed_dim)
        self.encoder_attn = MultiheadAttention(embed_dim, attention_heads, dropout)
        self.encoder_attn_layer_norm = nn.LayerNorm(embed_dim)
        self.dropout = nn.Dropout(dropout)
        self.fc1 = nn.Linear(embed_dim, ffn_embed_dim)
        self.fc2 = nn.Linear(ffn_embed_dim, embed_dim)
        self.final_layer_norm = nn.LayerNorm(embed_dim)

    def maybe_norm(self, norm, x, before):
        return norm(x) if before == self.normalize_before else x

    def forward(
        self, x, encoder_out, encoder_padding_mask=None, self_attn_mask=None, self_attn_padding_mask=None
    ):
        residual = x
        x = self.maybe_norm(self.self_attn_layer_norm, x, before=True)
        x, _ = self.self_attn(x, x, x, self_attn_padding_mask, self_attn_mask)
        x = self.maybe_norm(self.self_attn_layer_norm, residual + self.dropout(x), before=False)
        residual = x
        x = self.maybe_norm(self.encoder_attn_layer_norm, x, before=True)
        x, attn = self.encoder_attn(x, encoder_out, encoder_out, key_padding_mask=encoder_padding_mask)
        x = self.maybe_norm(self.encoder_attn_layer_norm, residual + self.dropout(x), before=False)
        residual = x
        x = self.maybe_norm(self.final_layer_norm, x, before=True)
        x = self.fc2(F.relu(self.fc1(x)))
        x = self.maybe_norm(self.final_layer_norm, residual + self.dropout(x), before=False)
        return x, attn


def Embedding(num_embeddings, embedding_dim, padding_idx):
    m = nn.Embedding(num_embeddings, embedding_dim, padding_idx=padding_idx)
    nn.init.normal_(m.weight, mean=0, std=embedding_dim**-0.5)
    nn.init.constant_(m.weight[padding_idx], 0)
    return m


class TransformerEncoder(nn.Module):
    def __init__(self, embed_tokens, embed_positions, layers, dropout):
        super().__init__()
        self.padding_idx = embed_tokens.padding_idx
        self.embed_scale = math.sqrt(embed_tokens.embedding_dim)
        self.embed_tokens = embed_tokens
        self.embed_positions = embed_positions
        self.dropout = nn.Dropout(dropout)
        self.layers = nn.ModuleList(layers)

    def forward(self, src_tokens) -> Dict[str, Tensor]:
        places = torch.arange(src_tokens.size(1), device=src_tokens.device)
        x = self.embed_scale * self.embed_tokens(src_tokens) + self.embed_positions(places)
        x = self.dropout(x).transpose(0, 1)  # B x T x C -> T x B x C
        padding = src_tokens.eq(self.padding_idx)
        for layer in self.layers:
            x = layer(x, padding)
        return {"encoder_out": x, "encoder_padding_mask": padding}


class TransformerDecoder(nn.Module):
    def __init__(self, embed_tokens, embed_positions, layers, dropout):
        super().__init__()
        self.padding_idx = embed_tokens.padding_idx
        self.embed_scale = math.sqrt(embed_tokens.embedding_dim)
        self.embed_tokens = embed_tokens
        self.embed_positions = embed_positions
        self.dropout = nn.Dropout(dropout)
        self.layers = nn.ModuleList(layers)
        self.output_projection = nn.Linear(embed_tokens.embedding_dim, embed_tokens.num_embeddings, bias=False)
        self.output_projection.weight = embed_tokens.weight

    def buffered_future_mask(self, x):
        dim = x.size(0)
        return torch.triu(x.new_full((dim, dim), float("-inf")), 1)

    def forward(self, prev_output_tokens, encoder_out):
        places = torch.arange(prev_output_tokens.size(1), device=prev_output_tokens.device)
        x = self.embed_scale * self.embed_tokens(prev_output_tokens) + self.embed_positions(places)
        x = self.dropout(x).transpose(0, 1)
        padding = prev_output_tokens.eq(self.padding_idx)
        attn: List[Tensor] = []
        for layer in self.layers:
            x, weights = layer(
                x,
                encoder_out["encoder_out"],
                encoder_out["encoder_padding_mask"],
                self_attn_mask=self.buffered_future_mask(x),
                self_attn_padding_mask=padding if padding.any() else None,
            )
            attn.append(weights)
        return self.output_projection(x.transpose(0, 1)), {"attn": attn}


class TransformerModel(nn.Module):
    """forward(src_tokens, prev_output_tokens) -> (logits, extra)"""

    def __init__(self, encoder, decoder):
        super().__init__()
        self.encoder = encoder
        self.decoder = decoder

    @classmethod
    def build_model(
        cls, src_dict_size, tgt_dict_size, embed_dim, ffn_embed_dim, heads, encoder_layers, decoder_layers,
        max_positions, dropout=0.0, padding_idx=0, normalize_before=False,
    ):  # fmt: skip
        common = (embed_dim, ffn_embed_dim, heads, dropout, normalize_before)
        if normalize_before:
            raise NotImplementedError("a pre-norm stack needs a last norm, which is not built here")
        encoder = TransformerEncoder(
            Embedding(src_dict_size, embed_dim, padding_idx),
            nn.Embedding(max_positions, embed_dim),
            [TransformerEncoderLayer(*common) for _ in range(encoder_layers)],
            dropout,
        )
        decoder = TransformerDecoder(
            Embedding(tgt_dict_size, embed_dim, padding_idx),
            nn.Embedding(max_positions, embed_dim),
            [TransformerDecoderLayer(*common) for _ in range(decoder_layers)],
            dropout,
        )
        for table in (encoder.embed_positions, decoder.embed_positions):
            nn.init.normal_(table.weight, mean=0, std=embed_dim**-0.5)
        return cls(encoder, decoder)

    def forward(self, src_tokens, prev_output_tokens):
        return self.decoder(prev_output_tokens, self.encoder(src_tokens))


class SequenceGenerator:
    """Greedy search over a batch; rows that are done are filled with padding."""

    def __init__(self, model, bos, eos, max_len):
        self.model, self.bos, self.eos, self.max_len = model, bos, eos, max_len

    @torch.no_grad()
    def generate(self, src_tokens):
        model = self.model
        training = model.training
        model.eval()
        encoder_out = model.encoder(src_tokens)
        tokens = src_tokens.new_full((src_tokens.size(0), 1), self.bos)
        done = torch.zeros(src_tokens.size(0), dtype=torch.bool, device=src_tokens.device)
        for _ in range(self.max_len):
            logits, _ = model.decoder(tokens, encoder_out)
            step = logits[:, -1].argmax(dim=-1).masked_fill(done, model.decoder.padding_idx)
            tokens = torch.cat([tokens, step.unsqueeze(1)], dim=1)
            if self.eos is not None:
                done |= step.eq(self.eos)
            if done.all():
                break
        model.train(training)
        return tokens[:, 1:]


def translate(model, src_tokens, max_len, bos, eos=None):
    return SequenceGenerator(model, bos, eos, max_len).generate(src_tokens)


def build_model(*sizes, **options):
    return TransformerModel.build_model(*sizes, **options)
