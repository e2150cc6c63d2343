import torch
from torch import Tensor, nn

from .layers import DecoderLayer, EncoderLayer


def sinusoid_table(length: int, width: int) -> Tensor:
    table = torch.zeros(length, width, dtype=torch.float64)
    angle = torch.arange(length, dtype=torch.float64)[:, None] * 10000.0 ** (
        -torch.arange(0, width, 2, dtype=torch.float64)[None] / width
    )
    table[:, 0::2] = angle.sin()
    table[:, 1::2] = angle.cos()[:, : width // 2]
    return table


class Transformer(nn.Module):
    def __init__(
        self,
        src_vocab_size: int,
        tgt_vocab_size: int,
        d_model: int,
        num_heads: int,
        num_encoder_layers: int,
        num_decoder_layers: int,
        d_ff: int,
        max_len: int,
        dropout: float = 0.0,
        pad_id: int = 0,
    ) -> None:
        super().__init__()
        self.pad_id, self.max_len = pad_id, max_len
        self.src_emb = nn.Embedding(src_vocab_size, d_model, padding_idx=pad_id)
        self.tgt_emb = nn.Embedding(tgt_vocab_size, d_model, padding_idx=pad_id)
        self.table = sinusoid_table(max_len, d_model)
        args = (d_model, num_heads, d_ff, dropout)
        self.encoder_layers = nn.ModuleList(EncoderLayer(*args) for _ in range(num_encoder_layers))
        self.encoder_norm = nn.LayerNorm(d_model)
        self.decoder_layers = nn.ModuleList(DecoderLayer(*args) for _ in range(num_decoder_layers))
        self.decoder_norm = nn.LayerNorm(d_model)
        self.out = nn.Linear(d_model, tgt_vocab_size)
        for module in self.modules():
            if isinstance(module, nn.Linear):
                nn.init.xavier_uniform_(module.weight)
                if module.bias is not None:
                    nn.init.zeros_(module.bias)

    def add_positions(self, x: Tensor) -> Tensor:
        if x.shape[1] > self.max_len:
            raise ValueError(f"{x.shape[1]} positions, but max_len is {self.max_len}")
        return x + self.table[: x.shape[1]].to(x)

    def source_mask(self, src: Tensor) -> Tensor:
        return (src != self.pad_id)[:, None, None, :]

    def target_mask(self, tgt: Tensor) -> Tensor:
        causal = torch.ones(tgt.shape[1], tgt.shape[1], dtype=torch.bool, device=tgt.device).tril()
        return (tgt != self.pad_id)[:, None, None, :] & causal

    def encode(self, src: Tensor, src_mask: Tensor | None = None) -> Tensor:
        src_mask = self.source_mask(src) if src_mask is None else src_mask
        x = self.add_positions(self.src_emb(src))
        for layer in self.encoder_layers:
            x = layer(x, src_mask)
        return self.encoder_norm(x)

    def decode(
        self, tgt: Tensor, memory: Tensor, tgt_mask: Tensor | None = None, memory_mask: Tensor | None = None
    ) -> Tensor:
        tgt_mask = self.target_mask(tgt) if tgt_mask is None else tgt_mask
        x = self.add_positions(self.tgt_emb(tgt))
        for layer in self.decoder_layers:
            x = layer(x, memory, tgt_mask, memory_mask)
        return self.out(self.decoder_norm(x))

    def forward(
        self, src: Tensor, tgt: Tensor, src_mask: Tensor | None = None, tgt_mask: Tensor | None = None
    ) -> Tensor:
        src_mask = self.source_mask(src) if src_mask is None else src_mask
        return self.decode(tgt, self.encode(src, src_mask), tgt_mask, src_mask)
