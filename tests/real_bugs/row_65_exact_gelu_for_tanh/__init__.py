"""A network with exact GELU for weights that were trained with its tanh approximation."""

from right_code import FeedForward

__all__ = ["FeedForward"]
