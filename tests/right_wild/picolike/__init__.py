"""GPT in NumPy, a few lines each, one sequence at a time (no batch axis)."""
import numpy as np


def gelu(x):
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


def softmax(x):
    exp_x = np.exp(x - np.max(x, axis=-1, keepdims=True))
    return exp_x / np.sum(exp_x, axis=-1, keepdims=True)


def layer_norm(x, g, b, eps: float = 1e-5):
    mean = np.mean(x, axis=-1, keepdims=True)
    variance = np.var(x, axis=-1, keepdims=True)
    return g * (x - mean) / np.sqrt(variance + eps) + b


def linear(x, w, b):  # [m, in], [in, out], [out] -> [m, out]
    return x @ w + b


def ffn(x, c_fc, c_proj):  # [n_seq, n_embd] -> [n_seq, n_embd]
    return linear(gelu(linear(x, **c_fc)), **c_proj)


def attention(q, k, v, mask):  # [n_q, d_k], [n_k, d_k], [n_k, d_v], [n_q, n_k] -> [n_q, d_v]
    return softmax(q @ k.T / np.sqrt(q.shape[-1]) + mask) @ v


def causal_mask(n, dtype=np.float64):
    return np.triu(np.full((n, n), -np.inf, dtype=dtype), k=1)


def mha(x, c_attn, c_proj, n_head):  # [n_seq, n_embd] -> [n_seq, n_embd]
    qkv = np.split(linear(x, **c_attn), 3, axis=-1)
    q_heads, k_heads, v_heads = [np.split(t, n_head, axis=-1) for t in qkv]
    mask = causal_mask(x.shape[0], x.dtype)
    out = [attention(q, k, v, mask) for q, k, v in zip(q_heads, k_heads, v_heads)]
    return linear(np.hstack(out), **c_proj)


def transformer_block(x, mlp, attn, ln_1, ln_2, n_head):
    x = x + mha(layer_norm(x, **ln_1), **attn, n_head=n_head)
    x = x + ffn(layer_norm(x, **ln_2), **mlp)
    return x


def gpt2(inputs, wte, wpe, blocks, ln_f, n_head):  # [n_seq] -> [n_seq, n_vocab]
    x = wte[inputs] + wpe[range(len(inputs))]
    for block in blocks:
        x = transformer_block(x, **block, n_head=n_head)
    return layer_norm(x, **ln_f) @ wte.T


def generate(inputs, params, n_head, n_tokens_to_generate):
    """Greedy; returns the new ids only."""
    inputs = list(inputs)
    n_ctx = len(params["wpe"])
    for _ in range(n_tokens_to_generate):
        logits = gpt2(np.array(inputs[-n_ctx:]), **params, n_head=n_head)
        inputs.append(int(np.argmax(logits[-1])))
    return inputs[len(inputs) - n_tokens_to_generate:]


def random_params(n_vocab, n_ctx, n_embd, n_layer, seed=0):
    rng = np.random.default_rng(seed)

    def lin(m, n):
        return {"w": rng.normal(0, 0.02, (m, n)), "b": np.zeros(n)}

    def ln():
        return {"g": np.ones(n_embd), "b": np.zeros(n_embd)}

    return {
        "wte": rng.normal(0, 0.02, (n_vocab, n_embd)),
        "wpe": rng.normal(0, 0.02, (n_ctx, n_embd)),
        "blocks": [
            {
                "mlp": {"c_fc": lin(n_embd, 4 * n_embd), "c_proj": lin(4 * n_embd, n_embd)},
                "attn": {"c_attn": lin(n_embd, 3 * n_embd), "c_proj": lin(n_embd, n_embd)},
                "ln_1": ln(),
                "ln_2": ln(),
            }
            for _ in range(n_layer)
        ],
        "ln_f": ln(),
    }


class GPT:
    """The functions above with their parameters, for a batch of equally long sequences."""

    def __init__(self, n_vocab, n_ctx, n_embd, n_head, n_layer, seed=0):
        assert n_embd % n_head == 0
        self.n_head = n_head
        self.params = random_params(n_vocab, n_ctx, n_embd, n_layer, seed)

    def __call__(self, ids):
        if ids.shape[1] > len(self.params["wpe"]):
            raise ValueError("more ids than n_ctx")
        return np.stack([gpt2(row, **self.params, n_head=self.n_head) for row in ids])
