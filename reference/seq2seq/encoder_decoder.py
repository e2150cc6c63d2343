"""What the code that writes targets needs of an encoder-decoder.

    memory = encode(src)        logits = decode(tgt, memory)        logits[b, t] are about the id that follows tgt[b, t]

Generation, caches, beam search and initialization are written against this Protocol, so that they do not import the
model, which imports them.
"""

from __future__ import annotations

from typing import Protocol

from torch import Tensor, nn

from conformkit.reference.language_model import WithModes
from conformkit.reference.seq2seq.decoder import Decoder
from conformkit.reference.seq2seq.embedding import TokenEmbedding

__all__ = ["EncoderDecoder"]


class EncoderDecoder(WithModes, Protocol):
    """An encoder-decoder, here Transformer: its two halves, and the parts that the cache runs one by one.

    Shapes: src (B, S), tgt (B, T), S and T at most max_len → memory (B, S, D), logits (B, T, V_tgt)
    """

    tgt_vocab_size: int
    max_len: int
    pad_id: int
    src_embedding: TokenEmbedding
    tgt_embedding: TokenEmbedding
    decoder: Decoder
    head: nn.Linear

    @property
    def src_positions(self) -> nn.Module:
        """What adds positions to an embedded source: (B, S, D) → (B, S, D)."""
        ...

    @property
    def tgt_positions(self) -> nn.Module:
        """What adds positions to an embedded target: (B, T, D) → (B, T, D)."""
        ...

    @property
    def tgt_embedding_norm(self) -> nn.Module | None:
        """The norm before the decoder, in a variant that has one."""
        ...

    def encode(self, src: Tensor, src_mask: Tensor | None = None) -> Tensor:
        """Read a source: ids (B, S) → memory (B, S, D). Without a mask, padding is hidden."""
        ...

    def decode(
        self, tgt: Tensor, memory: Tensor, tgt_mask: Tensor | None = None, memory_mask: Tensor | None = None
    ) -> Tensor:
        """Continue a target: ids (B, T), memory (B, S, D) → logits (B, T, V_tgt)."""
        ...
