"""Everything is about one sequence, a matrix (T, d): no array has a batch axis, and ids are a vector."""

from .matrices import Attention, Rewrite, Step, Text, attend

__all__ = ["Attention", "Rewrite", "Step", "Text", "attend"]
