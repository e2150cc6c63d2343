"""BERT with the two heads that it is pretrained with.

    logits = LN(act(H W_Tᵀ + b_T)) Eᵀ + b        next = tanh(H[:, 0] W_Pᵀ + b_P) W_Nᵀ + b_N

E is the table of token embeddings, which the masked-language head shares; next ∈ ℝ^(B×2), its first entry for a second
segment that follows the first one. Devlin et al. 2019, §3.1; the transform before the shared matrix is in its code
(`cls/predictions/transform`), not in the paper.
"""

from __future__ import annotations

from torch import Tensor, nn

from conformkit.reference.encoder.model import BertModel, Pooler, initialize
from conformkit.reference.feed_forward import ACTIVATIONS
from conformkit.reference.norms import norm_for
from conformkit.spec.variants import BERT, Variant

__all__ = ["BertForPreTraining", "MaskedLanguageHead"]


class MaskedLanguageHead(nn.Module):
    """Guess the id of each position from its row.

    Shapes: (B, T, D) → logits (B, T, V)
    Units:  logits are unnormalized log-probabilities, in nats.
    Source: Devlin et al. 2019, §3.1, and its code.
    """

    def __init__(self, vocab_size: int, d_model: int, *, variant: Variant = BERT) -> None:
        super().__init__()
        self.transform = nn.Linear(d_model, d_model) if variant.head_transform else None
        self.norm = norm_for(d_model, variant) if variant.head_transform else None
        self.activation = ACTIVATIONS[variant.activation]
        self.decoder = nn.Linear(d_model, vocab_size, bias=variant.head_bias)

    def forward(self, hidden: Tensor) -> Tensor:
        """Map (B, T, D) to (B, T, V)."""
        if self.transform is not None and self.norm is not None:
            hidden = self.norm(self.activation(self.transform(hidden)))  # (B, T, D)
        logits: Tensor = self.decoder(hidden)  # (B, T, V)
        return logits


class BertForPreTraining(nn.Module):
    """Guess hidden ids, and whether the second segment follows the first one.

    Shapes: ids (B, T), segments (B, T), mask (B, 1, 1, T) → logits (B, T, V), next sentence (B, 2)
    Units:  both are unnormalized log-probabilities, in nats.
    Raises: as BertModel.
    Source: Devlin et al. 2019, §3.1. Without the variant's next sentence logits alone; without its pooler that head
             reads the first row.
    """

    def __init__(
        self,
        vocab_size: int,
        d_model: int,
        num_heads: int,
        num_layers: int,
        d_ff: int,
        max_len: int,
        num_segments: int = 2,
        dropout: float = 0.0,
        pad_id: int = 0,
        *,
        variant: Variant = BERT,
    ) -> None:
        super().__init__()
        self.bert = BertModel(
            vocab_size, d_model, num_heads, num_layers, d_ff, max_len, num_segments, dropout, pad_id,
            variant=variant.but(pooler=False),
        )  # fmt: skip
        self.head = MaskedLanguageHead(vocab_size, d_model, variant=variant)
        self.pooler = Pooler(d_model) if variant.pooler else None
        self.next_sentence = nn.Linear(d_model, 2) if variant.next_sentence_head else None
        self.log_probabilities = variant.log_probabilities
        initialize(self)
        if variant.tied:
            self.head.decoder.weight = self.bert.embeddings.tokens.weight

    def forward(
        self, ids: Tensor, segments: Tensor | None = None, mask: Tensor | None = None
    ) -> tuple[Tensor, Tensor] | Tensor:
        """Map ids (B, T) to logits (B, T, V), and to (B, 2) for the next sentence where there is such a head."""
        hidden = self.bert.hidden(ids, segments, mask)  # (B, T, D)
        logits = self.head(hidden)  # (B, T, V)
        found: tuple[Tensor, ...] = (logits,)
        if self.pooler is not None and self.next_sentence is not None:
            found = logits, self.next_sentence(self.pooler(hidden))  # (B, T, V), (B, 2)
        elif self.next_sentence is not None:
            found = logits, self.next_sentence(hidden[:, 0])  # (B, T, V), (B, 2)
        if self.log_probabilities:
            found = tuple(each.log_softmax(dim=-1) for each in found)
        return found[0] if len(found) == 1 else (found[0], found[1])
