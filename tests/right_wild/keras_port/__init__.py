"""Keras layers, ported to torch: MultiHeadAttention(num_heads, key_dim), Dense kernels of shape (in, …)."""
import math

import torch
from torch import nn


def glorot_uniform(*shape, fan_in, fan_out):
    limit = math.sqrt(6.0 / (fan_in + fan_out))
    return nn.Parameter(torch.empty(*shape).uniform_(-limit, limit))


class EinsumDense(nn.Module):
    """kernel (in, heads, dim): (b, t, in) -> (b, t, heads, dim), or its transpose for the output."""

    def __init__(self, equation, kernel_shape, bias_shape, fan_in, fan_out):
        super().__init__()
        self.equation = equation
        self.kernel = glorot_uniform(*kernel_shape, fan_in=fan_in, fan_out=fan_out)
        self.bias = nn.Parameter(torch.zeros(bias_shape)) if bias_shape is not None else None

    def forward(self, inputs):
        outputs = torch.einsum(self.equation, inputs, self.kernel)
        return outputs if self.bias is None else outputs + self.bias


class Dense(nn.Module):
    def __init__(self, input_dim, units, activation=None):
        super().__init__()
        self.kernel = glorot_uniform(input_dim, units, fan_in=input_dim, fan_out=units)
        self.bias = nn.Parameter(torch.zeros(units))
        self.activation = activation

    def forward(self, inputs):
        outputs = inputs @ self.kernel + self.bias
        return outputs if self.activation is None else self.activation(outputs)


class MultiHeadAttention(nn.Module):
    """`key_dim` is the size of each head for query and key; `value_dim` that for value, key_dim by default."""

    def __init__(self, input_dim, num_heads, key_dim, value_dim=None, dropout=0.0, use_bias=True):
        super().__init__()
        value_dim = value_dim or key_dim
        self.num_heads, self.key_dim, self.value_dim = num_heads, key_dim, value_dim

        def projection(dim):
            return EinsumDense("btd,dhk->bthk", (input_dim, num_heads, dim), (num_heads, dim) if use_bias else None,
                               input_dim, num_heads * dim)

        self.query_dense = projection(key_dim)
        self.key_dense = projection(key_dim)
        self.value_dense = projection(value_dim)
        self.output_dense = EinsumDense("bthk,hkd->btd", (num_heads, value_dim, input_dim),
                                        (input_dim,) if use_bias else None, num_heads * value_dim, input_dim)
        self.dropout_layer = nn.Dropout(dropout)

    def compute_attention(self, query, key, value, attention_mask=None):
        query = query * (1.0 / math.sqrt(float(self.key_dim)))
        scores = torch.einsum("bshk,bthk->bhts", key, query)
        if attention_mask is not None:
            scores = scores.masked_fill(~attention_mask, -torch.inf)
        scores = torch.softmax(scores, dim=-1)
        return torch.einsum("bhts,bshk->bthk", self.dropout_layer(scores), value), scores

    def forward(self, query, value, key=None, attention_mask=None, return_attention_scores=False, use_causal_mask=False):
        key = value if key is None else key
        q, k, v = self.query_dense(query), self.key_dense(key), self.value_dense(value)
        if attention_mask is not None and attention_mask.dim() == 3:
            attention_mask = attention_mask[:, None].bool()  # (B, T, S) -> (B, 1, T, S)
        if use_causal_mask:
            t, s = query.shape[1], value.shape[1]
            rows = torch.arange(t, device=query.device)[:, None]
            columns = torch.arange(s, device=query.device)[None, :]
            causal = rows >= columns
            attention_mask = causal if attention_mask is None else attention_mask & causal
        output, scores = self.compute_attention(q, k, v, attention_mask)
        output = self.output_dense(output)
        return (output, scores) if return_attention_scores else output


class FeedForward(nn.Module):
    def __init__(self, embed_dim, ff_dim, rate=0.1):
        super().__init__()
        self.dense_1 = Dense(embed_dim, ff_dim, activation=torch.relu)
        self.dense_2 = Dense(ff_dim, embed_dim)
        self.dropout = nn.Dropout(rate)

    def forward(self, inputs):
        return self.dropout(self.dense_2(self.dense_1(inputs)))


class LayerNormalization(nn.Module):
    def __init__(self, dim, epsilon=1e-6):
        super().__init__()
        self.gamma = nn.Parameter(torch.ones(dim))
        self.beta = nn.Parameter(torch.zeros(dim))
        self.epsilon = epsilon

    def forward(self, inputs):
        variance, mean = torch.var_mean(inputs, dim=-1, correction=0, keepdim=True)
        return (inputs - mean) * torch.rsqrt(variance + self.epsilon) * self.gamma + self.beta


class TransformerBlock(nn.Module):
    def __init__(self, embed_dim, num_heads, ff_dim, rate=0.1):
        super().__init__()
        self.att = MultiHeadAttention(embed_dim, num_heads, key_dim=embed_dim // num_heads)
        self.ffn = FeedForward(embed_dim, ff_dim, rate)
        self.layernorm1 = LayerNormalization(embed_dim, epsilon=1e-6)
        self.layernorm2 = LayerNormalization(embed_dim, epsilon=1e-6)
        self.dropout1 = nn.Dropout(rate)

    def forward(self, inputs):
        attention_output = self.dropout1(self.att(inputs, inputs, use_causal_mask=True))
        out1 = self.layernorm1(inputs + attention_output)
        return self.layernorm2(out1 + self.ffn(out1))


class PositionEmbedding(nn.Module):
    def __init__(self, maxlen, embed_dim):
        super().__init__()
        self.pos_emb = nn.Embedding(maxlen, embed_dim)
        nn.init.uniform_(self.pos_emb.weight, -0.05, 0.05)

    def forward(self, inputs):
        positions = torch.arange(0, inputs.shape[1], device=inputs.device)
        return inputs + self.pos_emb(positions)
