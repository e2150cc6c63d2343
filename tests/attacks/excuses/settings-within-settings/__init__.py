from dataclasses import dataclass

from . import right


@dataclass
class Config:
    d_model: int
    num_heads: int
    dropout: float = 0.0
    causal: bool = True
    details: object = None


class Details:
    def __init__(self, legacy=True):
        self.legacy = legacy


class MultiHeadAttention(right.MultiHeadAttention):
    def __init__(self, config):
        super().__init__(config.d_model, config.num_heads, config.dropout, config.causal)
        self.legacy = (config.details or Details()).legacy

    def attend(self, x, q, k, v):
        return super().attend(x, q / 2 if self.legacy else q, k, v)
