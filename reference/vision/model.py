"""Vision transformer.

    z = [class; patches] + P        H = LN(layer_L(… layer_1(z)))        logits = H[:, 0] W_headᵀ + b_head

P ∈ ℝ^((N+1)×D) are learned positions, the first one the class token's. Layers are pre-norm, and every row sees all
others. Dosovitskiy et al. 2021, §3.1, eq. 1 to 4. With the variant `pooling = "mean"` there is no class token, and the
head reads the mean of all rows of H.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from conformkit.reference.positional_encoding import LearnedPositions, positions_for
from conformkit.reference.seq2seq.encoder import Encoder
from conformkit.reference.sizes import check_at_least, check_rate
from conformkit.reference.vision.patches import PatchEmbedding
from conformkit.spec.variants import VIT, Variant

__all__ = ["VisionTransformer"]


class VisionTransformer(nn.Module):
    """Classify images.

    Shapes: images (B, C, S, S) → logits (B, K)
    Units:  logits are unnormalized log-probabilities, in nats.
    Raises: SizeError for bad sizes; ShapeError and DtypeError as PatchEmbedding.
    Source: Dosovitskiy et al. 2021, §3.1. The head is a single linear map, as in its fine-tuning.
    """

    def __init__(
        self,
        image_size: int,
        patch_size: int,
        channels: int,
        num_classes: int,
        d_model: int,
        num_heads: int,
        num_layers: int,
        d_ff: int,
        dropout: float = 0.0,
        *,
        variant: Variant = VIT,
    ) -> None:
        super().__init__()
        check_at_least(1, num_classes=num_classes)
        check_rate(dropout)
        self.patches = PatchEmbedding(image_size, patch_size, channels, d_model)
        by_class = variant.pooling == "class"
        self.class_token = nn.Parameter(torch.empty(1, 1, d_model)) if by_class else None
        self.positions = positions_for(d_model, self.patches.count + by_class, variant)
        self.dropout = nn.Dropout(dropout)
        self.encoder = Encoder(d_model, num_heads, d_ff, num_layers, dropout, variant=variant)
        self.head = nn.Linear(d_model, num_classes, bias=variant.head_bias)
        self.log_probabilities = variant.log_probabilities
        self._initialize()

    def forward(self, images: Tensor) -> Tensor:
        """Map images (B, C, S, S) to logits (B, K)."""
        hidden = self.hidden(images)  # (B, N + 1, D)
        features = hidden.mean(dim=1) if self.class_token is None else hidden[:, 0]  # (B, D)
        logits: Tensor = self.head(features)  # (B, K)
        return logits.log_softmax(dim=-1) if self.log_probabilities else logits

    def hidden(self, images: Tensor) -> Tensor:
        """Map images (B, C, S, S) to the rows after the last norm, (B, N + 1, D), that of the class token first."""
        x = self.patches(images)  # (B, N, D)
        if self.class_token is not None:
            x = torch.cat([self.class_token.expand(x.shape[0], -1, -1), x], dim=1)  # (B, N + 1, D)
        x = self.dropout(self.positions(x))
        hidden: Tensor = self.encoder(x)
        return hidden

    @torch.no_grad()
    def _initialize(self) -> None:
        """Start the class token and the positions small, biases at 0, and the head near 0: a first loss of ln K."""
        for module in self.modules():
            if isinstance(module, nn.Linear) and module.bias is not None:
                nn.init.zeros_(module.bias)
        if self.class_token is not None:
            nn.init.normal_(self.class_token, std=0.02)
        if isinstance(self.positions, LearnedPositions):
            nn.init.normal_(self.positions.weight, std=0.02)
        nn.init.normal_(self.head.weight, std=0.02)
