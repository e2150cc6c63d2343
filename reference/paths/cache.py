"""Keys and values that a caller keeps between calls, so that a text may come in pieces of any size.

    K ← [K; k_new]        V ← [V; v_new]        each (B, Hkv, n, dh), n the number of positions kept

A cache belongs to one batch of texts. It can be cut back, when ids are taken back (speculative decoding), emptied for
other texts, and its rows can be chosen anew (beam search).
"""

from __future__ import annotations

from torch import Tensor

from conformkit.reference.errors import SizeError
from conformkit.reference.kv_cache import LayerCache

__all__ = ["TextCache"]


class TextCache:
    """What a model keeps of one batch of texts: keys, after rotation, and values of each layer; empty at first."""

    def __init__(self, num_layers: int) -> None:
        self.layers = [LayerCache() for _ in range(num_layers)]

    @property
    def length(self) -> int:
        """How many positions are kept."""
        return self.layers[0].length if self.layers else 0

    def crop(self, length: int) -> None:
        """Forget all positions from `length` on. Raises: SizeError where there are fewer."""
        if not 0 <= length <= self.length:
            raise SizeError("the length to crop to", length, f"between 0 and the number of positions = {self.length}")
        for layer in self.layers:
            if layer.k is not None and layer.v is not None:
                layer.k, layer.v = layer.k[:, :, :length], layer.v[:, :, :length]

    def reset(self) -> None:
        """Forget everything: the next ids begin other texts."""
        for layer in self.layers:
            layer.k, layer.v = None, None

    def reorder(self, rows: Tensor) -> None:
        """Let row i continue what row `rows[i]` was: (B',), some may be left out, others come twice."""
        for layer in self.layers:
            if layer.k is not None and layer.v is not None:
                layer.k, layer.v = layer.k[rows], layer.v[rows]
