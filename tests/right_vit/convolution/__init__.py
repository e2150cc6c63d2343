"""A convolution cuts the patches, nn.TransformerEncoder reads them; the contract's names."""

import torch
from torch import nn


class PatchEmbedding(nn.Module):
    def __init__(self, image_size, patch_size, channels, d_model):
        super().__init__()
        assert image_size % patch_size == 0
        self.expected = (channels, image_size, image_size)
        self.proj = nn.Conv2d(channels, d_model, patch_size, patch_size)

    def forward(self, images):
        if tuple(images.shape[1:]) != self.expected:
            raise ValueError(f"images are {tuple(images.shape[1:])}, expected {self.expected}")
        return self.proj(images).flatten(2).transpose(1, 2)


class VisionTransformer(nn.Module):
    def __init__(
        self, image_size, patch_size, channels, num_classes, d_model, num_heads, num_layers, d_ff, dropout=0.0
    ):
        super().__init__()
        self.patch_embedding = PatchEmbedding(image_size, patch_size, channels, d_model)
        self.class_token = nn.Parameter(torch.zeros(1, 1, d_model))
        self.positions = nn.Parameter(torch.randn(1, (image_size // patch_size) ** 2 + 1, d_model) * 0.02)
        self.drop = nn.Dropout(dropout)
        layer = nn.TransformerEncoderLayer(d_model, num_heads, d_ff, dropout, "gelu", batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, num_layers, nn.LayerNorm(d_model), enable_nested_tensor=False)
        self.head = nn.Linear(d_model, num_classes)

    def forward(self, images):
        x = self.patch_embedding(images)
        x = torch.cat([self.class_token.expand(len(x), -1, -1), x], dim=1)
        return self.head(self.encoder(self.drop(x + self.positions))[:, 0])
