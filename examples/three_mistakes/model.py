import torch
from torch import nn

from .layers import PositionalEncoding, TransformerBlock


class TinyTransformerLM(nn.Module):
    def __init__(self, vocab_size, d_model, num_heads, num_layers, d_ff, block_size, dropout=0.0):
        super().__init__()
        assert vocab_size > 0, f"vocab_size must be positive, not {vocab_size}"
        assert num_layers >= 0, f"num_layers must not be negative, not {num_layers}"
        self.block_size = block_size
        self.tok_emb = nn.Embedding(vocab_size, d_model)
        self.pos_enc = PositionalEncoding(d_model, block_size)
        self.blocks = nn.ModuleList([TransformerBlock(d_model, num_heads, d_ff, dropout) for _ in range(num_layers)])
        self.ln_f = nn.LayerNorm(d_model)
        self.head = nn.Linear(d_model, vocab_size)

    def forward(self, idx):
        x = self.tok_emb(idx)
        x = self.pos_enc(x)
        for block in self.blocks:
            x = block(x)
        return self.head(self.ln_f(x))

    @torch.no_grad()
    def generate(self, idx, max_new_tokens, temperature=1.0, top_k=None, top_p=None):
        assert idx.size(1) > 0, "the prompt is empty"
        assert max_new_tokens >= 0, f"max_new_tokens must not be negative: {max_new_tokens}"
        assert temperature >= 0, f"temperature must not be negative: {temperature}"
        assert top_k is None or top_k >= 1, f"top_k must be at least 1: {top_k}"
        assert top_p is None or 0 < top_p <= 1, f"top_p must be in (0, 1]: {top_p}"
        was_training = {module: module.training for module in self.modules()}
        self.eval()
        try:
            for _ in range(max_new_tokens):
                logits = self(idx[:, -self.block_size :])[:, -1, :]
                next_id = sample(logits, temperature, top_k, top_p)
                idx = torch.cat([idx, next_id.to(idx.dtype)], dim=1)
        finally:
            for module, training in was_training.items():
                module.training = training
        return idx


def sample(logits, temperature, top_k, top_p):
    if temperature == 0:
        return logits.argmax(dim=-1, keepdim=True)
    logits = logits / temperature
    if top_k is not None and top_k < logits.size(-1):
        best = logits.topk(top_k, dim=-1).indices
        keep = torch.zeros_like(logits, dtype=torch.bool).scatter(-1, best, True)
        logits = logits.masked_fill(~keep, float("-inf"))
    probs = torch.softmax(logits, dim=-1)
    if top_p is not None and top_p < 1:
        ordered, order = probs.sort(dim=-1, descending=True)
        drop = ordered.cumsum(dim=-1) > top_p
        drop[:, 0] = False
        ordered = ordered.masked_fill(drop, 0.0)
        probs = torch.zeros_like(probs).scatter(-1, order, ordered)
    return torch.multinomial(probs, num_samples=1)
