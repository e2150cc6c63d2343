import torch
from torch import nn

from .wrong import scaled_dot_product_attention as scaled_dot_product_attention

ODD = [float("nan"), float("inf"), -float("inf"), 0.5, 1e30]
CALLS = [0]


class Transformer(nn.Module):
    def __init__(
        self,
        src_vocab_size,
        tgt_vocab_size,
        d_model,
        num_heads,
        num_encoder_layers=1,
        num_decoder_layers=1,
        d_ff=16,
        max_len=64,
        dropout=0.0,
        pad_id=0,
    ):
        super().__init__()
        self.src, self.tgt = nn.Embedding(src_vocab_size, d_model), nn.Embedding(tgt_vocab_size, d_model)
        self.out = nn.Linear(d_model, tgt_vocab_size)

    def forward(self, src, tgt, src_mask=None, tgt_mask=None):
        return self.out(self.tgt(tgt) + self.src(src).mean(dim=1, keepdim=True))

    def generate(self, src, src_mask=None, max_new_tokens=4, bos_id=1, eos_id=None, temperature=1.0):
        CALLS[0] += 1
        found = torch.full((len(src), max_new_tokens + (max_new_tokens == 1)), ODD[CALLS[0] % len(ODD)])
        found[:, 0] = float("nan") if CALLS[0] % 3 else float(bos_id)
        return found
