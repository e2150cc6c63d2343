"""What the code that generates text needs of a language model.

    ids (B, T)  →  logits (B, T, V)        logits[b, t] are about the id that follows ids[b, t]

Sampling, the cache and beam search are written against this Protocol, so that they do not import the model, which
imports them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from torch import Tensor, nn

__all__ = ["LanguageModel", "WithModes"]


class WithModes(Protocol):
    """A module whose parts are in training mode or in evaluation mode, as every `nn.Module` is."""

    def modules(self) -> Iterator[nn.Module]:
        """Return the module itself and all modules inside it."""
        ...

    def eval(self) -> object:
        """Put all of them into evaluation mode."""
        ...


class LanguageModel(WithModes, Protocol):
    """A decoder-only model, here TinyTransformerLM: its call, and the parts that the cache runs one by one.

    Shapes: ids (B, T), T at most block_size → logits (B, T, V)
    """

    block_size: int
    scale: float
    logit_cap: float
    embedding: nn.Embedding
    blocks: nn.ModuleList
    head: nn.Linear

    @property
    def positions(self) -> nn.Module:
        """What adds positions to the scaled embeddings: (B, T, D) → (B, T, D)."""
        ...

    @property
    def embedding_norm(self) -> nn.Module | None:
        """The norm before the first block, in a variant that has one."""
        ...

    @property
    def norm(self) -> nn.Module | None:
        """The norm after the last block, in a variant that has one."""
        ...

    def __call__(self, ids: Tensor, /) -> Tensor:
        """Map ids (B, T) to logits (B, T, V)."""
        ...

    def check_ids(self, ids: Tensor) -> None:
        """Refuse what is not a batch of rows of token ids."""
        ...
