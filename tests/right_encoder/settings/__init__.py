"""A settings object, dictionaries as results, a mask of 1 and 0 (B, T); pre-norm, ReLU, untied."""

from .net import Heads, Settings, TextEncoder

__all__ = ["Heads", "Settings", "TextEncoder"]
