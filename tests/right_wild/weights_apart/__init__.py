import numpy as np


def softmax(z):
    z = z - np.max(z, axis=-1, keepdims=True)
    e = np.exp(z)
    return e / np.sum(e, axis=-1, keepdims=True)


def layer_norm(x, gamma, beta, eps=1e-5):
    mean = np.mean(x, axis=-1, keepdims=True)
    var = np.mean((x - mean) ** 2, axis=-1, keepdims=True)
    return gamma * (x - mean) / np.sqrt(var + eps) + beta


def scaled_dot_product_attention(Q, K, V, mask=None):
    d_k = Q.shape[-1]
    scores = np.matmul(Q, np.swapaxes(K, -1, -2)) / np.sqrt(d_k)
    if mask is not None:
        scores = np.where(mask, scores, -1e30)
    return np.matmul(softmax(scores), V)


def split_heads(x, n_heads):
    b, t, d = x.shape
    return x.reshape(b, t, n_heads, d // n_heads).transpose(0, 2, 1, 3)


def multi_head_attention(x, W_q, W_k, W_v, W_o, n_heads, causal=True):
    b, t, d = x.shape
    q = split_heads(x @ W_q, n_heads)
    k = split_heads(x @ W_k, n_heads)
    v = split_heads(x @ W_v, n_heads)
    mask = np.tril(np.ones((t, t), dtype=bool)) if causal else None
    out = scaled_dot_product_attention(q, k, v, mask)
    return out.transpose(0, 2, 1, 3).reshape(b, t, d) @ W_o


def feed_forward(x, W1, b1, W2, b2):
    return np.maximum(0, x @ W1 + b1) @ W2 + b2


def positional_encoding(seq_len, d_model):
    pos = np.arange(seq_len)[:, None]
    i = np.arange(d_model)[None, :]
    angle = pos / np.power(10000, (2 * (i // 2)) / d_model)
    pe = np.zeros((seq_len, d_model))
    pe[:, 0::2] = np.sin(angle[:, 0::2])
    pe[:, 1::2] = np.cos(angle[:, 1::2])
    return pe


def transformer_block(x, W_q, W_k, W_v, W_o, W1, b1, W2, b2, g1, be1, g2, be2, n_heads, causal=True):
    x = x + multi_head_attention(layer_norm(x, g1, be1), W_q, W_k, W_v, W_o, n_heads, causal)
    return x + feed_forward(layer_norm(x, g2, be2), W1, b1, W2, b2)
