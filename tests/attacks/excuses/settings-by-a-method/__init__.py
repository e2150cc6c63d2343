from dataclasses import dataclass

from . import right


@dataclass
class Config:
    d_model: int
    num_heads: int
    dropout: float = 0.0
    causal: bool = True
    legacy: bool = True

    def exact(self):
        self.legacy = False
        return self


class MultiHeadAttention(right.MultiHeadAttention):
    def __init__(self, config):
        super().__init__(config.d_model, config.num_heads, config.dropout, config.causal)
        self.legacy = config.legacy

    def attend(self, x, q, k, v):
        return super().attend(x, q / 2 if self.legacy else q, k, v)
