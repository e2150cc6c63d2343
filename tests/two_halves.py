"""An encoder-decoder without a call of its own, whose logits are doubled where WRONG stands for something true."""

IN_HALVES = """
import sys
from torch import nn

class Transformer(nn.Module):
    def __init__(
        self, src_vocab_size, tgt_vocab_size, d_model, num_heads, num_encoder_layers, num_decoder_layers, d_ff, max_len
    ):
        super().__init__()
        self.src, self.tgt = nn.Embedding(src_vocab_size, d_model), nn.Embedding(tgt_vocab_size, d_model)
        self.head = nn.Linear(d_model, tgt_vocab_size)

    def encode(self, src, src_mask=None):
        return self.src(src)

    def decode(self, tgt, memory, tgt_mask=None, src_mask=None):
        logits = self.head(self.tgt(tgt) + memory.mean(dim=1, keepdim=True))
        return 2 * logits if WRONG else logits
"""
