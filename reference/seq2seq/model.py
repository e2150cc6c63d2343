"""The encoder-decoder transformer.

    M = Encoder(E_src[src] + PE)        logits = Decoder(E_tgt[tgt] + PE, M) W_headᵀ + b_head

src ∈ {0, …, V_src-1}^(B×S), tgt ∈ {0, …, V_tgt-1}^(B×T), logits ∈ ℝ^(B×T×V_tgt), unnormalized, for every position of
the target: those at t are about the id that follows tgt[t]. Vaswani et al. 2017, figure 1.
"""

from __future__ import annotations

from torch import Tensor, nn

from conformkit.reference.errors import ShapeError, SizeError
from conformkit.reference.masks import combine_masks
from conformkit.reference.norms import norm_for
from conformkit.reference.positional_encoding import LearnedPositions, positions_for
from conformkit.reference.seq2seq.beam import seq2seq_beam_search
from conformkit.reference.seq2seq.decoder import Decoder
from conformkit.reference.seq2seq.embedding import TokenEmbedding
from conformkit.reference.seq2seq.encoder import Encoder
from conformkit.reference.seq2seq.generation import generate
from conformkit.reference.seq2seq.initialization import initialize
from conformkit.reference.seq2seq.masks import create_causal_mask, create_padding_mask
from conformkit.reference.sizes import check_at_least
from conformkit.reference.tied_head import scaled
from conformkit.spec.variants import CANONICAL, Variant

__all__ = ["Transformer"]


class Transformer(nn.Module):
    """Predict each next target id from a source and the target so far.

    Shapes: src (B, S), tgt (B, T), S and T at most max_len, src_mask (B, 1, 1, S), tgt_mask (B, 1, T, T) → logits
            (B, T, V_tgt)
    Units:  logits are unnormalized log-probabilities, in nats.
    Raises: SizeError for bad sizes, or tables that cannot be shared; ShapeError when ids are not (B, T), too long or of
            different batches; DtypeError and TokenError as TokenEmbedding.
    Source: Vaswani et al. 2017, figure 1. Differs: a mask that is missing is built.
    """

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
        *,
        variant: Variant = CANONICAL,
    ) -> None:
        super().__init__()
        check_at_least(1, src_vocab_size=src_vocab_size, tgt_vocab_size=tgt_vocab_size, max_len=max_len)
        check_at_least(0, num_encoder_layers=num_encoder_layers, num_decoder_layers=num_decoder_layers)
        self.tgt_vocab_size, self.max_len, self.pad_id = tgt_vocab_size, max_len, pad_id
        self.src_embedding = TokenEmbedding(src_vocab_size, d_model, pad_id, variant=variant)
        self.src_positions = positions_for(d_model, max_len, variant, pad_id)
        self.src_embedding_norm = norm_for(d_model, variant) if variant.embedding_norm else None
        self.encoder = Encoder(d_model, num_heads, d_ff, num_encoder_layers, dropout, variant=variant)
        self.tgt_embedding = TokenEmbedding(tgt_vocab_size, d_model, pad_id, variant=variant)
        self.tgt_positions = positions_for(d_model, max_len, variant, pad_id)
        self.tgt_embedding_norm = norm_for(d_model, variant) if variant.embedding_norm else None
        self.decoder = Decoder(d_model, num_heads, d_ff, num_decoder_layers, dropout, variant=variant)
        self.embedding_dropout = nn.Dropout(0.0)
        self.head = nn.Linear(d_model, tgt_vocab_size, bias=variant.head_bias)
        self.log_probabilities = variant.log_probabilities
        initialize(self, variant)
        self._share(variant)

    def forward(
        self, src: Tensor, tgt: Tensor, src_mask: Tensor | None = None, tgt_mask: Tensor | None = None
    ) -> Tensor:
        """Map a source (B, S) and a target that was shifted right (B, T) to logits (B, T, V_tgt)."""
        memory = self.encode(src, src_mask)  # (B, S, D)
        memory_mask = create_padding_mask(src, self.pad_id) if src_mask is None else src_mask  # (B, 1, 1, S)
        return self.decode(tgt, memory, tgt_mask, memory_mask)

    def encode(self, src: Tensor, src_mask: Tensor | None = None) -> Tensor:
        """Read a source: ids (B, S) → memory (B, S, D). Without a mask, padding is hidden."""
        x = self.src_embedding(src)  # (B, S, D)
        self._check_length(src, "source")
        if src_mask is None:
            src_mask = create_padding_mask(src, self.pad_id)  # (B, 1, 1, S)
        x = self.src_positions(x)
        if self.src_embedding_norm is not None:
            x = self.src_embedding_norm(x)
        x = self.embedding_dropout(x)
        memory: Tensor = self.encoder(x, src_mask)  # (B, S, D)
        return memory

    def decode(
        self, tgt: Tensor, memory: Tensor, tgt_mask: Tensor | None = None, memory_mask: Tensor | None = None
    ) -> Tensor:
        """Continue a target: ids (B, T), memory (B, S, D) → logits (B, T, V_tgt).

        Causality always holds. Without `tgt_mask`, padding of the target is hidden; without `memory_mask`, nothing of
        the memory is, which does not show its own padding.
        """
        x = self.tgt_embedding(tgt)  # (B, T, D)
        self._check_length(tgt, "target")
        if len(tgt) != len(memory):
            raise ShapeError("the batch of the target", len(tgt), f"that of the source = {len(memory)}")
        if tgt_mask is None:
            tgt_mask = create_padding_mask(tgt, self.pad_id)  # (B, 1, 1, T)
        tgt_mask = combine_masks(tgt_mask, create_causal_mask(tgt.shape[1], device=tgt.device))  # (B, 1, T, T)
        x = self.tgt_positions(x)
        if self.tgt_embedding_norm is not None:
            x = self.tgt_embedding_norm(x)
        x = self.embedding_dropout(x)
        x = self.decoder(x, memory, tgt_mask, memory_mask)  # (B, T, D)
        logits: Tensor = self.head(x)  # (B, T, V_tgt)
        if self.log_probabilities:
            logits = logits.log_softmax(dim=-1)
        return logits

    def generate(
        self,
        src: Tensor,
        max_new_tokens: int,
        bos_id: int,
        eos_id: int | None = None,
        src_mask: Tensor | None = None,
        temperature: float = 0.0,
        top_k: int | None = None,
        top_p: float | None = None,
        use_cache: bool = False,
    ) -> Tensor:
        """Write a target for each source; see `conformkit.reference.seq2seq.generation.generate`."""
        return generate(self, src, max_new_tokens, bos_id, eos_id, src_mask, temperature, top_k, top_p, use_cache)

    def beam_search(
        self,
        src: Tensor,
        max_new_tokens: int,
        bos_id: int,
        beam_width: int,
        length_penalty: float = 0.0,
        eos_id: int | None = None,
        src_mask: Tensor | None = None,
    ) -> tuple[Tensor, Tensor]:
        """Find the best targets of each source; see `conformkit.reference.seq2seq.beam.seq2seq_beam_search`."""
        return seq2seq_beam_search(self, src, max_new_tokens, bos_id, beam_width, length_penalty, eos_id, src_mask)

    def _check_length(self, ids: Tensor, name: str) -> None:
        if ids.shape[1] > self.max_len:
            raise ShapeError(f"the length of the {name}", ids.shape[1], f"at most max_len = {self.max_len}")

    def _share(self, variant: Variant) -> None:
        """Let tables be one parameter where the variant says so: source and target, target and head, or all three."""
        if variant.shared_embeddings:
            if self.src_embedding.vocab_size != self.tgt_vocab_size:
                want = f"src_vocab_size = {self.src_embedding.vocab_size}, since both share one table"
                raise SizeError("tgt_vocab_size", self.tgt_vocab_size, want)
            self.tgt_embedding.weight = self.src_embedding.weight
        if variant.shared_positions and isinstance(self.src_positions, LearnedPositions):
            self.tgt_positions.weight = self.src_positions.weight
        if variant.tied:
            self.head.weight = self.tgt_embedding.weight
            self.head = scaled(self.head) if variant.tied_scale else self.head
